package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

// usualAudit is how many entries are read where no number is asked for.
const usualAudit = 100

func (s *Server) audit(r *http.Request) (any, error) {
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
	entries, err := s.hub.Audit(r.Context(), r.PathValue("agent"), asked)
	if err != nil {
		return nil, err
	}
	return each(entries, func(e session.AuditEntry) api.AuditEntry {
		return api.AuditEntry{At: e.At, Owner: e.Owner, Role: e.Role, Device: e.Device, From: e.From, Method: e.Method,
			Session: string(e.Session), Target: e.Target, Outcome: e.Outcome, Count: e.Count, Security: e.Security}
	}), nil
}

func (s *Server) limits(r *http.Request) (any, error) {
	limits, err := s.hub.Limits(r.Context(), r.PathValue("agent"))
	if err != nil {
		return nil, err
	}
	out := api.PersonLimits{Limits: map[string]api.PersonLimit{}}
	for owner, l := range limits {
		out.Limits[owner] = api.PersonLimit{Sessions: l.Sessions, CPU: l.CPU, Memory: int64(l.Memory), GPU: int(l.GPU),
			Processes: l.Processes, Folders: l.Folders, Logins: l.Logins}
	}
	return out, nil
}

func (s *Server) setLimit(r *http.Request) (any, error) {
	req, err := decode[api.PersonLimit](r)
	if err != nil {
		return nil, err
	}
	limit := session.Allowance{Sessions: req.Sessions, CPU: req.CPU, Memory: gpu.Bytes(req.Memory),
		GPU:       gpu.Share(req.GPU),
		Processes: req.Processes, Folders: req.Folders, Logins: req.Logins}
	return nil, s.hub.SetLimit(r.Context(), r.PathValue("agent"), r.PathValue("owner"), &limit)
}

func (s *Server) unsetLimit(r *http.Request) (any, error) {
	return nil, s.hub.SetLimit(r.Context(), r.PathValue("agent"), r.PathValue("owner"), nil)
}
