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
	return s.hub.Audit(r.Context(), r.PathValue("agent"), asked)
}

func (s agentRoutes) limits(r *http.Request) (api.PersonLimits, error) {
	limits, err := s.hub.Limits(r.Context(), r.PathValue("agent"))
	if err != nil {
		return api.PersonLimits{}, err
	}
	return api.PersonLimits{Limits: limits}, nil
}

func (s agentRoutes) setLimit(r *http.Request, limit session.Allowance) (none, error) {
	return none{}, s.hub.SetLimit(r.Context(), r.PathValue("agent"), r.PathValue("owner"), &limit)
}

func (s agentRoutes) unsetLimit(r *http.Request) (none, error) {
	return none{}, s.hub.SetLimit(r.Context(), r.PathValue("agent"), r.PathValue("owner"), nil)
}
