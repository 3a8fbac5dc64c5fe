package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// agentRoutes are the routes of agents and long operations.
type agentRoutes struct{ hub *hub.Hub }

func (s agentRoutes) mount(m *mounts) {
	answer(m, route.Operations, always(s.hub.Operations))
	answer(m, route.Operation, named("id", s.hub.Operation))
	take(m, route.OperationAnswer, s.answerOperation)
	answer(m, route.OperationCancel, named("id", s.hub.CancelOperation))
	answer(m, route.Agents, always(s.hub.Agents))
	answer(m, route.Agent, named("agent", s.hub.Agent))
	take(m, route.AgentAdd, s.addAgent)
	take(m, route.AgentUpdate, s.updateAgent)
	take(m, route.AgentRemove, s.removeAgent)
	answer(m, route.AgentProbe, s.begin(s.hub.ProbeAgent))
	answer(m, route.AgentUpgrade, s.begin(s.hub.UpgradeAgent))
	answer(m, route.AgentReconnect, s.begin(s.hub.ReconnectAgent))
	take(m, route.AgentAnswer, s.answerAgent)
	answer(m, route.PairedClients, s.pairedClients)
	answer(m, route.ClientRevoke, s.revokeClient)
	take(m, route.PairCode, s.pairCode)
	answer(m, route.AgentAudit, s.audit)
	answer(m, route.AgentLimits, s.limits)
	take(m, route.AgentLimitSet, s.setLimit)
	answer(m, route.AgentLimitUnset, s.unsetLimit)
	answer(m, route.AgentRotate, s.rotateAgent)
	answer(m, route.KeyRotate, s.rotateKey)
}

func (s agentRoutes) addAgent(r *http.Request, req api.AgentRequest) (api.Operation, error) {
	if req.Probe {
		return starts(s.hub, r)(s.hub.ProbeAddress(req.Address, req.Dir))
	}
	return starts(s.hub, r)(s.hub.AddAgent(req.AgentRequest))
}

// starts returns the operation that a request began. If the client has disconnected in the meantime, it cancels the
// operation.
func starts(h *hub.Hub, r *http.Request) func(hub.Operation, error) (api.Operation, error) {
	return func(operation hub.Operation, err error) (api.Operation, error) {
		if err == nil && r.Context().Err() != nil {
			operation, err = h.CancelOperation(operation.ID)
		}
		return operation, err
	}
}

func (s agentRoutes) updateAgent(r *http.Request, req api.AgentUpdate) (api.Agent, error) {
	return s.hub.UpdateAgent(r.PathValue("agent"), req)
}

func (s agentRoutes) removeAgent(r *http.Request, req api.AgentRemoval) (api.Operation, error) {
	return starts(s.hub, r)(s.hub.RemoveAgent(r.PathValue("agent"), req.Uninstall))
}

// begin returns a handler that starts an operation on the agent in the path.
func (s agentRoutes) begin(start func(name string) (hub.Operation, error)) func(*http.Request) (api.Operation, error) {
	return func(r *http.Request) (api.Operation, error) { return starts(s.hub, r)(start(r.PathValue("agent"))) }
}

func (s agentRoutes) answerAgent(r *http.Request, req api.AgentAnswer) (api.Agent, error) {
	return s.hub.AnswerAgent(r.Context(), r.PathValue("agent"), req.Accept, req.Found)
}

func (s agentRoutes) pairedClients(r *http.Request) ([]api.PairedClient, error) {
	return eachAs(pairedOut)(s.hub.PairedClients(r.Context(), r.PathValue("agent")))
}

func pairedOut(d hub.PairedClient) api.PairedClient {
	return api.PairedClient{Name: d.Name, Fingerprint: d.Key, Owner: d.Owner, Role: string(d.Role), This: d.This,
		AddedAt: d.Added, LastSeen: hub.Moment(d.Seen)}
}

func (s agentRoutes) revokeClient(r *http.Request) (none, error) {
	admin, err := s.hub.Admin(r.PathValue("agent"))
	if err != nil {
		return none{}, err
	}
	return none{}, admin.RevokeClient(r.Context(), r.PathValue("fingerprint"))
}

func (s agentRoutes) pairCode(r *http.Request, req api.PairRequest) (api.PairCode, error) {
	code, err := s.hub.PairCode(r.Context(), r.PathValue("agent"),
		session.PairRequest{Owner: req.Owner, Role: session.Role(req.Role)})
	return api.PairCode{Code: code.Code, Address: code.Address, ExpiresAt: code.Expires}, err
}

func (s agentRoutes) rotateAgent(r *http.Request) (api.KeyRotation, error) {
	return s.hub.RotateAgentKey(r.Context(), r.PathValue("agent"))
}

func (s agentRoutes) rotateKey(r *http.Request) (api.KeyRotation, error) {
	return s.hub.RotateOwnKey(r.Context())
}

// answerOperation passes a person's answer on. It may be a password, so it is neither stored nor logged.
func (s agentRoutes) answerOperation(r *http.Request, req api.PromptAnswer) (api.Operation, error) {
	return s.hub.AnswerOperation(r.PathValue("id"), req.Prompt, req.Text)
}
