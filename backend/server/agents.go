package server

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

type agentRoutes struct{ hub *hub.Hub }

func (s agentRoutes) mount(m *mounts) {
	answer(m, route.Operations, always(s.hub.Operations))
	answer(m, route.Operation, named("id", s.hub.Operation))
	// An answer may be a password, so it is neither stored nor logged.
	take(m, route.OperationAnswer, func(r *http.Request, req api.PromptAnswer) (api.Operation, error) {
		return s.hub.AnswerOperation(r.PathValue("id"), req.Prompt, req.Text)
	})
	answer(m, route.OperationCancel, named("id", s.hub.CancelOperation))
	answer(m, route.Agents, always(s.hub.Agents))
	answer(m, route.Agent, named("agent", s.hub.Agent))
	take(m, route.AgentAdd, func(_ *http.Request, req api.AgentRequest) (api.Operation, error) {
		if req.Probe {
			return s.hub.ProbeAddress(req.Address, req.Dir)
		}
		return s.hub.AddAgent(req.AgentRequest)
	})
	take(m, route.AgentUpdate, sendNamed("agent", s.hub.UpdateAgent))
	take(m, route.AgentRemove, func(r *http.Request, req api.AgentRemoval) (api.Operation, error) {
		return s.hub.RemoveAgent(r.PathValue("agent"), req.Uninstall)
	})
	answer(m, route.AgentProbe, named("agent", s.hub.ProbeAgent))
	answer(m, route.AgentUpgrade, named("agent", s.hub.UpgradeAgent))
	answer(m, route.AgentReconnect, named("agent", s.hub.ReconnectAgent))
	take(m, route.AgentAnswer, func(r *http.Request, req api.AgentAnswer) (api.Agent, error) {
		return s.hub.AnswerAgent(r.Context(), r.PathValue("agent"), req.Accept, req.Found)
	})
	answer(m, route.AgentRotate, func(r *http.Request) (api.KeyRotation, error) {
		return s.hub.RotateAgentKey(r.Context(), r.PathValue("agent"))
	})
	answer(m, route.KeyRotate, func(r *http.Request) (api.KeyRotation, error) {
		return s.hub.RotateOwnKey(r.Context())
	})
	answer(m, route.PairedClients, func(r *http.Request) ([]api.PairedClient, error) {
		return eachAs(pairedOut)(s.hub.PairedClients(r.Context(), r.PathValue("agent")))
	})
	take(m, route.PairCode, s.pairCode)
	answer(m, route.ClientRevoke, asAdmin(s.hub, func(r *http.Request, admin session.Admin) (none, error) {
		return none{}, admin.RevokeClient(r.Context(), r.PathValue("fingerprint"))
	}))
	answer(m, route.AgentAudit, s.audit)
	answer(m, route.AgentLimits, asAdmin(s.hub, func(r *http.Request, admin session.Admin) (api.PersonLimits, error) {
		limits, err := admin.Limits(r.Context())
		return api.PersonLimits{Limits: limits}, err
	}))
	take(m, route.AgentLimitSet, func(r *http.Request, limit session.Allowance) (none, error) {
		return s.setLimit(r, &limit)
	})
	answer(m, route.AgentLimitUnset, func(r *http.Request) (none, error) { return s.setLimit(r, nil) })
}

// asAdmin returns a handler that administers the agent in the path.
func asAdmin[Out any](h *hub.Hub,
	handle func(*http.Request, session.Admin) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (out Out, err error) {
		admin, err := h.Admin(r.PathValue("agent"))
		if err != nil {
			return out, err
		}
		return handle(r, admin)
	}
}

func pairedOut(d hub.PairedClient) api.PairedClient {
	return api.PairedClient{Name: d.Name, Fingerprint: d.Key, Owner: d.Owner, Role: string(d.Role), This: d.This,
		AddedAt: d.Added, LastSeen: hub.Moment(d.Seen)}
}

func (s agentRoutes) pairCode(r *http.Request, req api.PairRequest) (api.PairCode, error) {
	code, err := s.hub.PairCode(r.Context(), r.PathValue("agent"),
		session.PairRequest{Owner: req.Owner, Role: session.Role(req.Role)})
	return api.PairCode{Code: code.Code, Address: code.Address, ExpiresAt: code.Expires}, err
}

// setLimit sets the limits of a person, or removes them if limit is nil.
func (s agentRoutes) setLimit(r *http.Request, limit *session.Allowance) (none, error) {
	return asAdmin(s.hub, func(r *http.Request, admin session.Admin) (none, error) {
		return none{}, admin.SetLimit(r.Context(), r.PathValue("owner"), limit)
	})(r)
}

// usualAudit is the number of entries that are returned by default.
const usualAudit = 100

func (s agentRoutes) audit(r *http.Request) ([]session.AuditEntry, error) {
	asked := session.AuditQuery{Owner: r.FormValue("owner"), Text: r.FormValue("text"),
		Failed: r.FormValue("failed") != "", Security: r.FormValue("security") != ""}
	var err error
	asked.Limit, err = queryIn(r, "limit", usualAudit, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		return n, cmp.Or(err, session.AuditQuery{Limit: n}.Check())
	}, fmt.Sprintf("is not a number from 1 to %d", session.MostAudit), "Omit it for 100.")
	if err != nil {
		return nil, err
	}
	asked.Before, err = queryIn(r, "before", time.Time{}, func(text string) (time.Time, error) {
		return time.Parse(time.RFC3339Nano, text)
	}, "is not a time", "Use the time of the oldest entry that you have, as it was returned.")
	if err != nil {
		return nil, err
	}
	return asAdmin(s.hub, func(r *http.Request, admin session.Admin) ([]session.AuditEntry, error) {
		return admin.Audit(r.Context(), asked)
	})(r)
}
