package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// usualAudit is how many entries are read where no number is asked for.
const usualAudit = 100

func (s agentRoutes) audit(r *http.Request) ([]session.AuditEntry, error) {
	asked := session.AuditQuery{Limit: usualAudit, Owner: r.FormValue("owner"), Text: r.FormValue("text"),
		Failed: r.FormValue("failed") != "", Security: r.FormValue("security") != ""}
	if text := r.FormValue("limit"); text != "" {
		var err error
		if asked.Limit, err = strconv.Atoi(text); err != nil || asked.Check() != nil {
			return nil, badQuery("limit", fmt.Sprintf("limit=%s is no number from 1 to %d.", clip(text),
				session.MostAudit), "Leave it out for 100.")
		}
	}
	if text := r.FormValue("before"); text != "" {
		var err error
		if asked.Before, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, badQuery("before", fmt.Sprintf("before=%s is no time.", clip(text)),
				"Give the time of the oldest entry that is known, as it was answered.")
		}
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
