package server

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (s sessionRoutes) queue(r *http.Request) (any, error) {
	waiting, err := s.hub.Waiting(r.Context(), r.FormValue("agent"))
	if err != nil {
		return nil, err
	}
	return each(waiting, s.withUsage), nil
}

func (s sessionRoutes) keep(r *http.Request) (any, error) {
	req, err := decode[api.KeepRequest](r)
	if err != nil {
		return nil, err
	}
	length, err := keepIn(req.For)
	if err != nil {
		return nil, err
	}
	agent, id, err := s.hub.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	one, err := agent.Keep(r.Context(), id, length)
	if err != nil {
		return nil, err
	}
	return s.withUsage(one), nil
}

func (s sessionRoutes) simulateIdle(r *http.Request) (any, error) {
	policy, wrong, err := decodeDraft[session.IdlePolicy](r)
	if err != nil {
		return nil, err
	}
	if len(wrong) == 0 {
		wrong = policy.Validate("")
	}
	if len(wrong) > 0 {
		return nil, &session.Error{Code: "session_simulate_invalid", Message: wrong[0].Message, Hint: wrong[0].Hint,
			Fields: wrong}
	}
	agent, id, err := s.hub.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	simulation, err := agent.SimulateIdle(r.Context(), id, policy)
	if err != nil {
		return nil, err
	}
	return simulation, nil
}

func (s sessionRoutes) createPreset(r *http.Request) (any, error) {
	req, wrong, err := decodeDraft[hub.PresetContent](r)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, presetFault("preset_create_invalid", wrong)
	}
	preset, err := s.hub.AddPreset(req)
	if err != nil {
		return nil, err
	}
	return preset, nil
}

func (s sessionRoutes) updatePreset(r *http.Request) (any, error) {
	req, wrong, err := decodeDraft[hub.PresetUpdate](r)
	if err != nil {
		return nil, err
	}
	if len(wrong) > 0 {
		return nil, presetFault("preset_update_invalid", wrong)
	}
	preset, err := s.hub.UpdatePreset(r.PathValue("id"), req)
	if err != nil {
		return nil, err
	}
	return preset, nil
}

func presetFault(code session.Code, wrong []session.FieldError) error {
	return &session.Error{Code: code, Message: wrong[0].Message, Hint: wrong[0].Hint, Fields: wrong}
}

func (s sessionRoutes) deletePreset(r *http.Request) (any, error) {
	return nil, s.hub.DeletePreset(r.PathValue("id"))
}
