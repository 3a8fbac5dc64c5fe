package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (s sessionRoutes) queue(r *http.Request) ([]api.Session, error) {
	return eachAs(s.withUsage)(s.hub.Waiting(r.Context(), r.FormValue("agent")))
}

func (s sessionRoutes) keep(r *http.Request, agent session.Queue, id session.ID, req api.KeepRequest) (api.Session,
	error) {
	length, err := keepIn(req.For)
	if err != nil {
		return api.Session{}, err
	}
	return as(s.withUsage)(agent.Keep(r.Context(), id, length))
}

func (s sessionRoutes) simulateIdle(r *http.Request, policy session.IdlePolicy,
	wrong []session.FieldError) (session.IdleSimulation, error) {
	if len(wrong) == 0 {
		wrong = policy.Validate("")
	}
	if len(wrong) > 0 {
		return session.IdleSimulation{}, refusal(session.CodeSessionInvalid, wrong)
	}
	agent, id, err := s.hub.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return session.IdleSimulation{}, err
	}
	return agent.SimulateIdle(r.Context(), id, policy)
}

func (s sessionRoutes) createPreset(r *http.Request, req hub.PresetContent, wrong []session.FieldError) (hub.Preset,
	error) {
	if len(wrong) > 0 {
		return hub.Preset{}, refusal(session.CodeSettingsInvalid, wrong)
	}
	return s.hub.AddPreset(req)
}

func (s sessionRoutes) updatePreset(r *http.Request, req hub.PresetUpdate, wrong []session.FieldError) (hub.Preset,
	error) {
	if len(wrong) > 0 {
		return hub.Preset{}, refusal(session.CodeSettingsInvalid, wrong)
	}
	return s.hub.UpdatePreset(r.PathValue("id"), req)
}

func refusal(code session.Code, wrong []session.FieldError) error {
	return &session.Error{Code: code, Message: wrong[0].Message, Hint: wrong[0].Hint, Fields: wrong}
}

func (s sessionRoutes) deletePreset(r *http.Request) (none, error) {
	return none{}, s.hub.DeletePreset(r.PathValue("id"))
}
