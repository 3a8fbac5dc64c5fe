package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// sessionRoutes are the routes of sessions, the queue and presets.
type sessionRoutes struct {
	hub *hub.Hub
}

func (s sessionRoutes) mount(m *mounts) {
	takeDraft(m, route.PresetCreate, decodeDraft, s.createPreset)
	takeDraft(m, route.PresetUpdate, decodeDraft, s.updatePreset)
	answer(m, route.PresetDelete, s.deletePreset)
	answer(m, route.Queue, s.queue)
	takeDraft(m, route.LaunchMany, decodeDraft, s.launchMany)
	take(m, route.Keep, sendInSession(s.hub, s.keep))
	takeDraft(m, route.IdleSimulation, decodeDraft, s.simulateIdle)
	answer(m, route.Sessions, s.listSessions)
	takeDraft(m, route.Launch, decodeDraft, s.launch)
	takeDraft(m, route.Preview, decodeWhatFits, s.preview)
	answer(m, route.Session, s.getSession)
	take(m, route.SessionUpdate, sendInSession(s.hub, s.updateSession))
	take(m, route.Terminate, sendInSession(s.hub, s.terminate))
	answer(m, route.History, inSession(s.hub, s.history))
	answer(m, route.Usage, inSession(s.hub, s.usage))
	m.stream(route.Logs.Endpoint, s.logs)
}

// maxKey is the longest idempotency key, in bytes.
const maxKey = 128

func (s sessionRoutes) listSessions(r *http.Request) ([]api.Session, error) {
	filter, err := filterIn(r)
	if err != nil {
		return nil, err
	}
	return eachAs(s.hub.View)(s.hub.ListOn(r.Context(), r.FormValue("agent"), filter))
}

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

// countIn reads a query parameter that is a whole number, 0 if it is absent.
func countIn(r *http.Request, name string) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badQuery(name, fmt.Sprintf("%s=%s is not a whole number.", name, clip(text)), "Write 0 or more.")
	}
	return n, nil
}

// flagIn reads a query parameter that is 1, 0 or absent.
func flagIn(r *http.Request, name string) (bool, error) {
	switch text := r.FormValue(name); text {
	case "", "0", "false":
		return false, nil
	case "1", "true":
		return true, nil
	default:
		return false, badQuery(name, fmt.Sprintf("%s=%s is neither 1 nor 0.", name, clip(text)),
			"Write 1, or leave it out.")
	}
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

// launchMany answers with an outcome for each session, unless the request as a
// whole is wrong.
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
		launched := s.hub.View(o.Session)
		return api.Launched{Session: &launched}
	}), nil
}

// fromSpec names fields as a spec alone does, however deep the request holds it.
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

// refuse says what is wrong with a launch: what the request could not say, and
// everything else that the agent finds in the rest of it.
func (s sessionRoutes) refuse(r *http.Request, req hub.LaunchRequest, wrong []session.FieldError) error {
	if preview, err := s.hub.Preview(r.Context(), req.Owner, req.Spec); err == nil {
		wrong = append(wrong, preview.Errors...)
	}
	return session.Invalid(wrong)
}

func (s sessionRoutes) preview(r *http.Request, spec session.Spec, wrong []session.FieldError) (api.Preview,
	error) {
	wrong = append(wrong, checkHidden(spec.Env)...)
	p, err := s.hub.Preview(r.Context(), r.FormValue("owner"), spec)
	if err != nil {
		return api.Preview{}, err
	}
	out := api.Preview{Preview: p.Preview, Agent: p.Agent, Command: commandLine(spec), Rounded: s.rounded(p, spec)}
	out.Spec, out.Errors = p.Spec.Redacted(session.Hidden), append(wrong, p.Errors...)
	for _, g := range p.GPUs {
		out.Placements = append(out.Placements, api.Placement{Grant: g, Name: s.hub.DeviceName(p.Agent, g.Device)})
	}
	if p.Image != nil {
		out.Image = &hub.Image{Image: imageOut(*p.Image), Agent: p.Agent}
	}
	return out, nil
}

// rounded says what would be given in place of what is asked. Where a launch is
// refused for that, it is the nearest that would not be: the multiple of the
// quantum below, or the quantum itself.
func (s sessionRoutes) rounded(p hub.Preview, spec session.Spec) *api.Rounding {
	quantum := s.hub.Quantum(p.Agent)
	if p.Rounded != nil || quantum == 0 || spec.Accelerator.Shares == 0 {
		if p.Rounded == nil {
			return nil
		}
		return new(roundingOut(*p.Rounded))
	}
	i := slices.IndexFunc(p.Errors, func(e session.FieldError) bool { return e.Kind == session.KindRounded })
	if i < 0 {
		return nil
	}
	given := max(quantum, spec.Accelerator.Shares/quantum*quantum)
	out := roundingOut(gpu.Rounding{Asked: spec.Accelerator.Shares, Given: given, Less: given < spec.Accelerator.Shares,
		Why: p.Errors[i].Message})
	return &out
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

// changer changes sessions and ends them.
type changer interface {
	SetPriority(ctx context.Context, id session.ID, priority int) (session.Session, error)
	SetTags(ctx context.Context, id session.ID, tags []string) (session.Session, error)
	Rename(ctx context.Context, id session.ID, name string) (session.Session, error)
	Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error)
}

// teller tells what became of a session.
type teller interface {
	History(ctx context.Context, id session.ID) ([]session.Phase, error)
	Usage(ctx context.Context, id session.ID, since time.Time) ([]session.Usage, error)
}

// updateSession changes the priority before the name, because a session that
// waits no more refuses the first, and then nothing is changed.
func (s sessionRoutes) updateSession(r *http.Request, agent changer, id session.ID,
	req api.SessionUpdate) (api.Session, error) {
	var one session.Session
	err := checkUpdate(req)
	if err == nil && req.Priority != nil {
		one, err = agent.SetPriority(r.Context(), id, *req.Priority)
	}
	if err == nil && req.Tags != nil {
		one, err = agent.SetTags(r.Context(), id, *req.Tags)
	}
	if err == nil && req.Name != nil {
		one, err = agent.Rename(r.Context(), id, *req.Name)
	}
	return as(s.hub.View)(one, err)
}

func checkUpdate(req api.SessionUpdate) error {
	var wrong []session.FieldError
	if req.Name == nil && req.Priority == nil && req.Tags == nil {
		wrong = append(wrong, wrongField("name", "Nothing to change.", "Send a name, a priority or tags."))
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

func (s sessionRoutes) terminate(r *http.Request, agent changer, id session.ID,
	req api.TerminateRequest) (api.Session, error) {
	return as(s.hub.View)(agent.Terminate(r.Context(), id, req.Forced))
}

func (s sessionRoutes) usage(r *http.Request, agent teller, id session.ID) ([]session.Usage, error) {
	since, err := timeIn(r, "since", time.Time{})
	if err != nil {
		return nil, err
	}
	return agent.Usage(r.Context(), id, since)
}

// logs copies a kernel's log as it is. A reader that pauses holds nothing but
// its own request: what it has not read stays with the agent.
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

// copyFlushing copies until either side ends, sending on each piece at once.
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
