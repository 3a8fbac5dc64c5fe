package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// usualAudit is the number of entries that are returned by default.
const usualAudit = 100

func (s agentRoutes) audit(r *http.Request) ([]session.AuditEntry, error) {
	asked := session.AuditQuery{Owner: r.FormValue("owner"), Text: r.FormValue("text"),
		Failed: r.FormValue("failed") != "", Security: r.FormValue("security") != ""}
	var err error
	asked.Limit, err = queryIn(r, "limit", usualAudit, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		return n, cmp.Or(err, session.AuditQuery{Limit: n}.Check())
	}, fmt.Sprintf("is not a number from 1 to %d", session.MostAudit), "Leave it out for 100.")
	if err != nil {
		return nil, err
	}
	asked.Before, err = queryIn(r, "before", time.Time{}, func(text string) (time.Time, error) {
		return time.Parse(time.RFC3339Nano, text)
	}, "is not a time", "Use the time of the oldest entry that you have, as it was returned.")
	if err != nil {
		return nil, err
	}
	admin, err := s.hub.Admin(r.PathValue("agent"))
	if err != nil {
		return nil, err
	}
	return admin.Audit(r.Context(), asked)
}

func (s agentRoutes) limits(r *http.Request) (api.PersonLimits, error) {
	admin, err := s.hub.Admin(r.PathValue("agent"))
	if err != nil {
		return api.PersonLimits{}, err
	}
	limits, err := admin.Limits(r.Context())
	return api.PersonLimits{Limits: limits}, err
}

func (s agentRoutes) setLimit(r *http.Request, limit session.Allowance) (none, error) {
	return s.changeLimit(r, &limit)
}

func (s agentRoutes) unsetLimit(r *http.Request) (none, error) {
	return s.changeLimit(r, nil)
}

func (s agentRoutes) changeLimit(r *http.Request, limit *session.Allowance) (none, error) {
	admin, err := s.hub.Admin(r.PathValue("agent"))
	if err != nil {
		return none{}, err
	}
	return none{}, admin.SetLimit(r.Context(), r.PathValue("owner"), limit)
}
