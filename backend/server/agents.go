package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// agentRoutes are the routes of agents and long operations.
type agentRoutes struct {
	hub *hub.Hub
}

func (s agentRoutes) answers() map[string]answer {
	return map[string]answer{
		"operations":        s.listOperations,
		"operation":         s.getOperation,
		"operation-answer":  s.answerOperation,
		"operation-cancel":  s.cancelOperation,
		"agents":            s.listAgents,
		"agent":             s.getAgent,
		"agent-add":         s.addAgent,
		"agent-update":      s.updateAgent,
		"agent-remove":      s.removeAgent,
		"agent-probe":       s.probeAgent,
		"agent-upgrade":     s.upgradeAgent,
		"agent-reconnect":   s.reconnectAgent,
		"agent-answer":      s.answerAgent,
		"paired-devices":    s.pairedDevices,
		"device-revoke":     s.revokeDevice,
		"pair-code":         s.pairCode,
		"agent-audit":       s.audit,
		"agent-limits":      s.limits,
		"agent-limit-set":   s.setLimit,
		"agent-limit-unset": s.unsetLimit,
		"agent-rotate":      s.rotateAgent,
		"key-rotate":        s.rotateKey,
	}
}

func (s agentRoutes) streams() map[string]streamed { return nil }

func (s agentRoutes) listAgents(*http.Request) (any, error) {
	return each(s.hub.Agents(), agentOut), nil
}

func (s agentRoutes) getAgent(r *http.Request) (any, error) {
	return shown(s.hub.Agent(r.PathValue("agent")))
}

func (s agentRoutes) addAgent(r *http.Request) (any, error) {
	req, err := decode[api.AgentRequest](r)
	if err != nil {
		return nil, err
	}
	if req.Probe {
		operation, err := s.hub.ProbeAddress(req.Address, req.Dir)
		return starts(s.hub, r, operation, err)
	}
	operation, err := s.hub.AddAgent(req.AgentRequest)
	return starts(s.hub, r, operation, err)
}

// begun answers with an operation, or says why there is none.
func begun(operation hub.Operation, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return operationOut(operation), nil
}

// starts answers with an operation that a request began. Where whoever asked has
// gone meanwhile, nobody learns of it, and it is cancelled.
func starts(h *hub.Hub, r *http.Request, operation hub.Operation, err error) (any, error) {
	if err == nil && r.Context().Err() != nil {
		operation, err = h.CancelOperation(operation.ID)
	}
	return begun(operation, err)
}

// shown answers with an agent, or says why there is none.
func shown(agent hub.Agent, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return agentOut(agent), nil
}

func (s agentRoutes) updateAgent(r *http.Request) (any, error) {
	req, err := decode[api.AgentUpdate](r)
	if err != nil {
		return nil, err
	}
	return shown(s.hub.UpdateAgent(r.PathValue("agent"), hub.AgentUpdate(req)))
}

func (s agentRoutes) removeAgent(r *http.Request) (any, error) {
	req, err := decode[api.AgentRemoval](r)
	if err != nil {
		return nil, err
	}
	operation, err := s.hub.RemoveAgent(r.PathValue("agent"), req.Uninstall)
	return starts(s.hub, r, operation, err)
}

func (s agentRoutes) probeAgent(r *http.Request) (any, error) {
	operation, err := s.hub.ProbeAgent(r.PathValue("agent"))
	return starts(s.hub, r, operation, err)
}

func (s agentRoutes) upgradeAgent(r *http.Request) (any, error) {
	operation, err := s.hub.UpgradeAgent(r.PathValue("agent"))
	return starts(s.hub, r, operation, err)
}

func (s agentRoutes) reconnectAgent(r *http.Request) (any, error) {
	operation, err := s.hub.ReconnectAgent(r.PathValue("agent"))
	return starts(s.hub, r, operation, err)
}

func (s agentRoutes) answerAgent(r *http.Request) (any, error) {
	req, err := decode[api.AgentAnswer](r)
	if err != nil {
		return nil, err
	}
	return shown(s.hub.AnswerAgent(r.Context(), r.PathValue("agent"), req.Accept, req.Found))
}

func (s agentRoutes) pairedDevices(r *http.Request) (any, error) {
	devices, err := s.hub.PairedDevices(r.Context(), r.PathValue("agent"))
	if err != nil {
		return nil, err
	}
	return each(devices, pairedOut), nil
}

func (s agentRoutes) revokeDevice(r *http.Request) (any, error) {
	return nil, s.hub.RevokeDevice(r.Context(), r.PathValue("agent"), r.PathValue("fingerprint"))
}

func (s agentRoutes) pairCode(r *http.Request) (any, error) {
	req, err := decode[api.PairRequest](r)
	if err != nil {
		return nil, err
	}
	code, err := s.hub.PairCode(r.Context(), r.PathValue("agent"),
		session.PairRequest{Owner: req.Owner, Role: session.Role(req.Role)})
	if err != nil {
		return nil, err
	}
	return api.PairCode{Code: code.Code, Address: code.Address, ExpiresAt: code.Expires}, nil
}

func (s agentRoutes) rotateAgent(r *http.Request) (any, error) {
	return rotated(s.hub.RotateAgentKey(r.Context(), r.PathValue("agent")))
}

func (s agentRoutes) rotateKey(r *http.Request) (any, error) {
	return rotated(s.hub.RotateOwnKey(r.Context()))
}

func rotated(rotation hub.Rotation, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	// The slices of the API are never null.
	return api.KeyRotation{Before: rotation.Before, Fingerprint: rotation.Fingerprint,
		Told: append([]string{}, rotation.Told...), Later: append([]string{}, rotation.Later...)}, nil
}

func (s agentRoutes) listOperations(*http.Request) (any, error) {
	return each(s.hub.Operations(), operationOut), nil
}

func (s agentRoutes) getOperation(r *http.Request) (any, error) {
	return begun(s.hub.Operation(r.PathValue("id")))
}

// answerOperation passes on what a person answers. It may be a password:
// nothing of it is kept or logged.
func (s agentRoutes) answerOperation(r *http.Request) (any, error) {
	req, err := decode[api.PromptAnswer](r)
	if err != nil {
		return nil, err
	}
	return begun(s.hub.AnswerOperation(r.PathValue("id"), req.Prompt, req.Text))
}

func (s agentRoutes) cancelOperation(r *http.Request) (any, error) {
	return begun(s.hub.CancelOperation(r.PathValue("id")))
}
