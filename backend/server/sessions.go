package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

type sessionRoutes struct{ hub *hub.Hub }

func (s sessionRoutes) mount(m *mounts) {
	takeDraft(m, route.PresetCreate, decodeDraft,
		func(_ *http.Request, req hub.PresetContent, wrong []session.FieldError) (hub.Preset, error) {
			if len(wrong) > 0 {
				return hub.Preset{}, session.Refused(session.CodeSettingsInvalid, wrong...)
			}
			return s.hub.AddPreset(req)
		})
	takeDraft(m, route.PresetUpdate, decodeDraft,
		func(r *http.Request, req hub.PresetUpdate, wrong []session.FieldError) (hub.Preset, error) {
			if len(wrong) > 0 {
				return hub.Preset{}, session.Refused(session.CodeSettingsInvalid, wrong...)
			}
			return s.hub.UpdatePreset(r.PathValue("id"), req)
		})
	answer(m, route.PresetDelete, func(r *http.Request) (none, error) {
		return none{}, s.hub.DeletePreset(r.PathValue("id"))
	})
	answer(m, route.Queue, func(r *http.Request) ([]api.Session, error) {
		return eachAs(s.hub.View)(s.hub.Waiting(r.Context(), r.FormValue("agent")))
	})
	answer(m, route.Sessions, func(r *http.Request) ([]api.Session, error) {
		filter, err := filterIn(r)
		if err != nil {
			return nil, err
		}
		return eachAs(s.hub.View)(s.hub.List(r.Context(), r.FormValue("agent"), filter))
	})
	takeDraft(m, route.Launch, decodeDraft, s.launch)
	takeDraft(m, route.LaunchMany, decodeDraft, s.launchMany)
	takeDraft(m, route.Preview, decodeWhatFits, s.preview)
	answer(m, route.Session, s.getSession)
	take(m, route.SessionUpdate, sendInSession(s.hub, s.updateSession))
	take(m, route.Keep, sendInSession(s.hub, s.keep))
	takeDraft(m, route.IdleSimulation, decodeDraft, s.simulateIdle)
	s.mountMoves(m)
	take(m, route.Terminate, func(r *http.Request, req api.TerminateRequest) (api.Session, error) {
		return as(s.hub.View)(s.hub.Terminate(r.Context(), r.PathValue("id"), req.Forced, req.Undo))
	})
	answer(m, route.TerminateUndo, func(r *http.Request) (api.Session, error) {
		return as(s.hub.View)(s.hub.UndoTerminate(r.Context(), r.PathValue("id")))
	})
	answer(m, route.Loss, func(r *http.Request) (hub.Loss, error) {
		return s.hub.Loss(r.Context(), r.PathValue("id"))
	})
	answer(m, route.History, inSession(s.hub, s.history))
	answer(m, route.Usage, inSession(s.hub,
		func(r *http.Request, agent session.Agent, id session.ID) ([]session.Usage, error) {
			since, err := timeIn(r, "since", time.Time{})
			if err != nil {
				return nil, err
			}
			return agent.Usage(r.Context(), id, since)
		}))
	answer(m, route.LastSuccess, s.lastSuccess)
	m.stream(route.Logs.Endpoint, s.logs)
}

const maxKey = 128 // bytes of an idempotency key

func filterIn(r *http.Request) (session.Filter, error) {
	var filter session.Filter
	switch state := r.FormValue("state"); state {
	case "", "all":
	case "live":
		filter.Live = true
	case "finished":
		filter.Finished = true
	default:
		return filter, badQuery("state", fmt.Sprintf("%q is not a state to list by.", clip(state)),
			"Choose live, finished or all.")
	}
	var err error
	if filter.Limit, err = countIn(r, "limit"); err != nil {
		return filter, err
	}
	filter.Offset, err = countIn(r, "offset")
	return filter, err
}

func (s sessionRoutes) launch(r *http.Request, req hub.LaunchRequest, wrong []session.FieldError) (api.Session,
	error) {
	if wrong = append(wrong, checkLaunch(req)...); len(wrong) > 0 {
		return api.Session{}, s.refuse(r, req, wrong)
	}
	return as(s.hub.View)(s.hub.Launch(r.Context(), req))
}

func checkLaunch(req hub.LaunchRequest) []session.FieldError {
	wrong := checkHidden(req.Spec.Env)
	if len(req.Key) > maxKey {
		wrong = append(wrong, wrongField("key", fmt.Sprintf("The key is longer than %d bytes.", maxKey),
			"A random text of 20 letters is enough."))
	}
	return wrong
}

// launchMany answers with a result for each session, unless the whole request is wrong.
func (s sessionRoutes) launchMany(r *http.Request, req api.LaunchManyRequest,
	wrong []session.FieldError) ([]api.Launched, error) {
	if wrong = append(wrong, checkLaunch(req.LaunchRequest)...); len(wrong) > 0 {
		return nil, s.refuse(r, req.LaunchRequest, wrong)
	}
	outcomes, err := s.hub.LaunchMany(r.Context(), req.LaunchRequest, cmp.Or(req.Count, 1))
	if err != nil {
		return nil, err
	}
	return each(outcomes, func(o hub.Launched) api.Launched {
		if o.Err != nil {
			return api.Launched{Problem: asError(o.Err)}
		}
		return api.Launched{Session: new(s.hub.View(o.Session))}
	}), nil
}

func fromSpec(err error) error {
	var e *session.Error
	if !errors.As(err, &e) {
		return err
	}
	for i, field := range e.Fields {
		e.Fields[i].Field = strings.TrimPrefix(field.Field, "spec.")
	}
	return e
}

// refuse returns the error of a launch: what is wrong with the request, and everything that the agent finds wrong with
// the rest.
func (s sessionRoutes) refuse(r *http.Request, req hub.LaunchRequest, wrong []session.FieldError) error {
	if preview, err := s.hub.Preview(r.Context(), req.Owner, req.Spec, 1); err == nil {
		wrong = append(wrong, preview.Errors...)
	}
	return session.Invalid(wrong)
}

func (s sessionRoutes) preview(r *http.Request, spec session.Spec, wrong []session.FieldError) (api.Preview,
	error) {
	wrong = append(wrong, checkHidden(spec.Env)...)
	count, err := countIn(r, "count")
	if err == nil && count > session.MostLaunches {
		err = badQuery("count", fmt.Sprintf("%d sessions are more than %d.", count, session.MostLaunches),
			"Launch more after these.")
	}
	if err != nil {
		return api.Preview{}, err
	}
	count = max(count, 1)
	p, err := s.hub.Preview(r.Context(), r.FormValue("owner"), spec, count)
	if err != nil {
		return api.Preview{}, err
	}
	out := api.Preview{Preview: p.Preview, Agent: p.Agent, Command: commandLine(spec, count),
		Rounded: s.rounded(p, spec), Placements: s.placements(p.Agent, p.GPUs)}
	out.Spec, out.Errors, out.Further = p.Spec.Redacted(session.Hidden), append(wrong, p.Errors...), nil
	for _, one := range p.All {
		placements := s.placements(one.Agent, one.GPUs)
		one.GPUs = nil
		out.Forecasts = append(out.Forecasts, api.LaunchForecast{Forecast: one, Placements: placements})
	}
	if p.Image != nil {
		out.Image = &hub.Image{Image: imageOut(*p.Image), Agent: p.Agent}
	}
	return out, nil
}

func (s sessionRoutes) placements(agent string, grants []gpu.Grant) []api.Placement {
	return each(grants, func(g gpu.Grant) api.Placement {
		return api.Placement{Grant: g, Name: s.hub.DeviceName(agent, g.Device)}
	})
}

// rounded returns what would be allocated instead of what is requested. If the launch is refused because of rounding,
// this is the nearest valid amount: the multiple of the quantum below, or the quantum itself.
func (s sessionRoutes) rounded(p hub.Preview, spec session.Spec) *api.Rounding {
	if p.Rounded != nil {
		return new(roundingOut(*p.Rounded))
	}
	quantum, asked := s.hub.Quantum(p.Agent), spec.Accelerator.Shares
	i := slices.IndexFunc(p.Errors, func(e session.FieldError) bool { return e.Kind == session.KindRounded })
	if quantum == 0 || asked == 0 || i < 0 {
		return nil
	}
	given := max(quantum, asked/quantum*quantum)
	return new(roundingOut(gpu.Rounding{Asked: asked, Given: given, Less: given < asked, Why: p.Errors[i].Message}))
}

// roundingOut adds the text that requests the rounded amount.
func roundingOut(r gpu.Rounding) api.Rounding {
	return api.Rounding{Rounding: r, Accept: requestOut(gpu.Request{Shares: r.Given})}
}

func (s sessionRoutes) getSession(r *http.Request) (api.Session, error) {
	one, at, err := s.hub.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return api.Session{}, err
	}
	out := s.hub.View(one)
	if at != nil {
		out.LastHeard, out.Usage = at, nil
	}
	return out, nil
}

// updateSession changes the priority first: a session that no longer waits refuses it, and then nothing has changed.
func (s sessionRoutes) updateSession(r *http.Request, agent session.Agent, id session.ID,
	req api.SessionUpdate) (api.Session, error) {
	var one session.Session
	err := checkUpdate(req)
	if err == nil && req.Priority != nil {
		one, err = agent.SetPriority(r.Context(), id, *req.Priority)
	}
	if err == nil && req.Accelerator != nil {
		one, err = agent.SetAccelerator(r.Context(), id, *req.Accelerator)
	}
	if err == nil && req.Reminder != nil {
		one, err = s.hub.Remind(r.Context(), string(id), *req.Reminder)
	}
	if err == nil && req.Tags != nil {
		one, err = agent.SetTags(r.Context(), id, *req.Tags)
	}
	if err == nil && req.Name != nil {
		one, err = s.hub.Rename(r.Context(), id, *req.Name)
	}
	return as(s.hub.View)(one, err)
}

func checkUpdate(req api.SessionUpdate) error {
	var wrong []session.FieldError
	if req == (api.SessionUpdate{}) {
		wrong = append(wrong, wrongField("name", "Nothing to change.", "Send a name, a priority, devices or tags."))
	}
	if req.Name != nil {
		if e := session.SessionNames.Check(*req.Name); e != nil {
			wrong = append(wrong, *e)
		}
	}
	if req.Tags != nil {
		if _, err := session.CleanTags(*req.Tags); err != nil {
			wrong = append(wrong, asError(err).Fields...)
		}
	}
	if req.Priority != nil {
		if e := session.ValidatePriority(*req.Priority); e != nil {
			wrong = append(wrong, *e)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return session.Refused(session.CodeSessionInvalid, wrong...)
}

func (s sessionRoutes) keep(r *http.Request, agent session.Agent, id session.ID, req api.KeepRequest) (api.Session,
	error) {
	length, err := session.ParseDuration(req.For)
	if err != nil {
		return api.Session{}, session.Refused(session.CodeSessionInvalid,
			wrongField("for", err.Error()+".", "Write for example 4h."))
	}
	return as(s.hub.View)(agent.Keep(r.Context(), id, length))
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

// logs streams the log of a kernel unchanged. If the client pauses, the rest stays with the agent.
func (s sessionRoutes) logs(w http.ResponseWriter, r *http.Request) error {
	options := session.LogOptions{Kernel: r.FormValue("kernel")}
	var err error
	if options.Follow, err = flagIn(r, "follow"); err != nil {
		return err
	}
	if options.Timestamps, err = flagIn(r, "timestamps"); err != nil {
		return err
	}
	if options.Tail, err = countIn(r, "tail"); err != nil {
		return err
	}
	agent, id, err := s.hub.Find(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	reader, err := agent.Logs(r.Context(), id, options)
	if err != nil {
		return err
	}
	defer reader.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	copyFlushing(w, reader)
	return nil
}

// copyFlushing copies until either side ends and flushes each piece.
func copyFlushing(w http.ResponseWriter, reader io.Reader) {
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := reader.Read(buffer)
		if n > 0 {
			if _, writeErr := w.Write(buffer[:n]); writeErr != nil || control.Flush() != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// mountMoves are the routes that take sessions away and back.
func (s sessionRoutes) mountMoves(m *mounts) {
	answer(m, route.MoveOffers, func(r *http.Request) ([]hub.MoveOffer, error) {
		return s.hub.MoveOffers(r.Context(), r.PathValue("id"))
	})
	take(m, route.Move, func(r *http.Request, req api.MoveRequest) (api.Session, error) {
		if req.Agent == "" {
			return api.Session{}, noMachine()
		}
		return as(s.hub.View)(s.hub.Move(r.Context(), r.PathValue("id"), req.Agent))
	})
	answer(m, route.RelocationPlan, func(r *http.Request) (hub.RelocationPlan, error) {
		query := r.URL.Query()
		req := hub.Relocating{Agent: query.Get("agent"), Copy: query.Get("copy") == "1", Name: query.Get("name")}
		if req.Agent == "" {
			return hub.RelocationPlan{}, noMachine()
		}
		return s.hub.PlanRelocation(r.Context(), r.PathValue("id"), req)
	})
	take(m, route.Relocate, func(r *http.Request, req api.Relocating) (api.Operation, error) {
		if req.Agent == "" {
			return api.Operation{}, noMachine()
		}
		return s.hub.Relocate(r.Context(), r.PathValue("id"), req)
	})
	answer(m, route.Park, func(r *http.Request) (api.Session, error) {
		return as(s.hub.View)(s.hub.Park(r.Context(), r.PathValue("id")))
	})
	answer(m, route.Continue, func(r *http.Request) (api.Session, error) {
		return as(s.hub.View)(s.hub.Continue(r.Context(), r.PathValue("id")))
	})
}

func noMachine() error {
	return session.Refused(session.CodeSessionInvalid,
		wrongField("agent", "The machine is missing.", "Name the machine to move to."))
}
