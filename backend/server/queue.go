package server

import (
	"fmt"
	"net/http"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func (s sessionRoutes) queue(r *http.Request) ([]api.Session, error) {
	return eachAs(s.hub.View)(s.hub.Waiting(r.Context(), r.FormValue("agent")))
}

func (s sessionRoutes) keep(r *http.Request, agent session.Queue, id session.ID, req api.KeepRequest) (api.Session,
	error) {
	length, err := keepIn(req.For)
	if err != nil {
		return api.Session{}, err
	}
	return as(s.hub.View)(agent.Keep(r.Context(), id, length))
}

// maxKeep is the longest time that one request keeps a session.
const maxKeep = session.Duration(7 * 24 * time.Hour)

// keepIn parses how long to keep a session: more than 0 and at most a week.
func keepIn(text string) (session.Duration, error) {
	d, err := session.ParseDuration(text)
	var message string
	switch {
	case text == "":
		message = "The duration is missing."
	case err != nil:
		message = err.Error() + "."
	case d <= 0 || d > maxKeep:
		message = fmt.Sprintf("%s is not between 1 s and %s.", d, maxKeep)
	default:
		return d, nil
	}
	return 0, session.Refused(session.CodeSessionInvalid, wrongField("for", message, "Write for example 4h."))
}

func (s sessionRoutes) simulateIdle(r *http.Request, policy session.IdlePolicy,
	wrong []session.FieldError) (session.IdleSimulation, error) {
	if len(wrong) == 0 {
		wrong = policy.Validate("")
	}
	if len(wrong) > 0 {
		return session.IdleSimulation{}, session.Refused(session.CodeSessionInvalid, wrong...)
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
		return hub.Preset{}, session.Refused(session.CodeSettingsInvalid, wrong...)
	}
	return s.hub.AddPreset(req)
}

func (s sessionRoutes) updatePreset(r *http.Request, req hub.PresetUpdate, wrong []session.FieldError) (hub.Preset,
	error) {
	if len(wrong) > 0 {
		return hub.Preset{}, session.Refused(session.CodeSettingsInvalid, wrong...)
	}
	return s.hub.UpdatePreset(r.PathValue("id"), req)
}

func (s sessionRoutes) deletePreset(r *http.Request) (none, error) {
	return none{}, s.hub.DeletePreset(r.PathValue("id"))
}
