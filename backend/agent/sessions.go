package agent

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

const (
	codeTooMany = session.Code("session_create_too-many")
	// mostLive is how many sessions of one person may wait or run at a time, so
	// that one person cannot slow the queue down for all.
	mostLive = 2000
)

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// check returns everything that is wrong with a spec of somebody's on this
// machine, apart from its name being taken.
func (a *Agent) check(owner string, spec session.Spec) []session.FieldError {
	info := a.health.State().Info
	wrong := spec.Validate(a.clock.Now(), session.Limits{CPUs: info.CPUs, Memory: info.Memory})
	if spec.Agent != "" && spec.Agent != a.config.Name {
		wrong = append(wrong, session.FieldError{Field: "agent", Code: session.CodeInvalidAgent,
			Message: fmt.Sprintf("This agent is %s, not %s.", a.config.Name, spec.Agent),
			Hint:    "Leave it empty to let Slipway choose."})
	}
	wrong = append(wrong, a.queue.Check(spec.WithDefaults(), info)...)
	for _, e := range wrong {
		if e.Code == session.CodeInvalidSource {
			return wrong
		}
	}
	for i, m := range spec.Mounts {
		if m.Folder != "" {
			continue
		}
		if e := a.folders.CheckSource(owner, m.Source); e != nil {
			e.Field = fmt.Sprintf("mounts[%d].source", i)
			wrong = append(wrong, *e)
		}
	}
	return wrong
}

func (a *Agent) Preview(ctx context.Context, owner string, spec session.Spec) (session.Preview, error) {
	if owner == "" {
		owner = a.config.Owner
	}
	spec, mounted, missing, err := a.folders.Find(owner, spec)
	if err != nil {
		return session.Preview{}, err
	}
	full := spec.WithDefaults()
	p := session.Preview{Spec: full, Folders: mounted, Errors: slices.Concat(a.check(owner, spec), missing,
		a.people.Check(owner, full)), Warnings: advise(full)}
	live, books, err := a.store.Live()
	if err != nil {
		return p, err
	}
	for _, s := range live {
		if spec.Name != "" && s.Name == spec.Name && s.Owner == owner {
			p.Errors = append(p.Errors, session.FieldError{Field: "name", Code: session.CodeNameTaken,
				Message: fmt.Sprintf("A live session named %q exists already.", spec.Name),
				Hint:    "Choose another name, or leave it empty for a random one."})
		}
	}
	depends, wrong := a.queue.Dependencies(owner, spec.After)
	p.Errors = append(p.Errors, wrong...)
	if !a.health.State().Up {
		p.Wait = a.health.Wait()
		return p, nil
	}
	if queue.Plannable(full) {
		would := a.newSession(session.LaunchRequest{Owner: owner, Spec: full})
		would.Name, would.DependsOn = "this session", depends
		if err := a.queue.Preview(&p, would, live, books); err != nil {
			return p, err
		}
	}
	err = a.images.Preview(ctx, &p)
	return p, err
}

// advise returns what is allowed and probably not wanted.
func advise(spec session.Spec) []session.FieldError {
	var advice []session.FieldError
	if r := spec.Resources; r.Memory-r.Shm < 2*r.Shm && r.Shm > 64*gpu.MiB {
		advice = append(advice, session.FieldError{Field: "resources.shm", Code: "session_create_little-memory",
			Message: fmt.Sprintf("Shared memory may use up %s of the %s of memory.", r.Shm, r.Memory),
			Hint:    "Programs fail when the rest is not enough for them."})
	}
	if len(spec.Mounts) == 0 {
		advice = append(advice, session.FieldError{Field: "mounts", Code: "session_create_no-mounts",
			Message: "No folder is mounted.", Hint: "The session's home is deleted when it ends."})
	}
	return advice
}

func (a *Agent) Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	if req.Owner == "" {
		req.Owner = a.config.Owner
	}
	spec, mounted, missing, err := a.folders.Find(req.Owner, req.Spec)
	if err != nil {
		return session.Session{}, err
	}
	req.Spec = spec
	depends, unknown := a.queue.Dependencies(req.Owner, req.Spec.After)
	wrong := slices.Concat(a.check(req.Owner, spec), missing, a.people.Check(req.Owner, spec.WithDefaults()), unknown,
		a.images.Check(ctx, spec.Image))
	if len(wrong) > 0 && !a.launched(req) {
		return session.Session{}, session.Invalid(wrong)
	}
	named := req.Spec.Name != ""
	for try := 0; ; try++ {
		s := a.newSession(req)
		s.DependsOn, s.Folders = depends, mounted
		stored, err := a.create(s, req.Key)
		if session.CodeOf(err) == store.CodeNameTaken && !named && try < 20 {
			continue // a random name that is in use
		}
		if err != nil {
			return session.Session{}, err
		}
		a.queue.Wake()
		return a.dress(stored), nil
	}
}

// launched reports whether a launch was asked for before: then it is answered
// whatever has become of the fields meanwhile, a start time now past, say.
func (a *Agent) launched(req session.LaunchRequest) bool {
	if req.Key == "" {
		return false
	}
	_, found, err := a.store.ByKey(req.Owner, req.Key)
	return err == nil && found
}

func (a *Agent) newSession(req session.LaunchRequest) session.Session {
	return records.NewSession(req, a.config.NewID(req), a.config.Name, a.clock.Now().UTC())
}

// create stores a session with the first row of its history, or returns the
// one that was stored under the key.
func (a *Agent) create(s session.Session, key string) (session.Session, error) {
	fresh := true
	err := a.records.Update(func(tx *store.Tx) error {
		fresh = true
		if key != "" {
			known, found, err := tx.ByKey(s.Owner, key)
			if err != nil {
				return err
			}
			if found {
				s, fresh = known, false
				return nil
			}
		}
		if tx.LiveOf(s.Owner) >= mostLive {
			message := fmt.Sprintf("%d of your sessions have not ended.", mostLive)
			return &session.Error{Code: codeTooMany, Message: message, Hint: "Terminate some of them first."}
		}
		if err := folders.StillThere(tx, s); err != nil {
			return err
		}
		return records.Create(tx, &s, key)
	})
	if err == nil && fresh {
		a.publishVersions([]session.Session{s})
	}
	return s, err
}

func (a *Agent) Get(_ context.Context, id session.ID) (session.Session, error) {
	s, err := a.store.Get(id)
	return a.dress(s), err
}

func (a *Agent) List(_ context.Context, filter session.Filter) ([]session.Session, error) {
	list, err := a.store.List(filter)
	for i := range list {
		list[i] = a.dress(list[i])
	}
	return list, err
}

// Rename implements [session.Sessions]. It fails with session_rename_invalid,
// session_rename_conflict where the session has ended, or
// session_create_already-exists.
func (a *Agent) Rename(_ context.Context, id session.ID, name string) (session.Session, error) {
	if wrong := session.ValidateName(name); wrong != nil {
		return session.Session{}, &session.Error{Code: "session_rename_invalid", Message: wrong.Message,
			Hint: wrong.Hint, Fields: []session.FieldError{*wrong}}
	}
	return a.records.Change(id, func(d *records.Draft) error {
		if !d.Status.Live() {
			return &session.Error{Code: "session_rename_conflict", Message: "The session has ended.",
				Hint: "Only a live session can be renamed."}
		}
		d.Name = name
		return nil
	})
}

func (a *Agent) SetTags(_ context.Context, id session.ID, tags []string) (session.Session, error) {
	clean, err := session.CleanTags(tags)
	if err != nil {
		return session.Session{}, err
	}
	return a.records.Change(id, func(d *records.Draft) error {
		d.Tags = clean
		return nil
	})
}

func (a *Agent) Terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error) {
	reason := session.ReasonUser
	if forced {
		reason = session.ReasonForced
	}
	s, err := a.launch.Terminate(id, reason, forced)
	if err == nil && forced && s.KeepsContainer() {
		return a.images.DropKept(ctx, id)
	}
	return s, err
}

// History implements [session.Sessions]. The steps of the phase under way are
// as they are now.
func (a *Agent) History(_ context.Context, id session.ID) ([]session.Phase, error) {
	phases, err := a.store.History(id)
	if err != nil || len(phases) == 0 {
		return phases, err
	}
	last := &phases[len(phases)-1]
	if last.Result != session.OutcomeRunning {
		return phases, nil
	}
	if wait := a.queue.Wait(id); wait != nil && last.Phase == session.PhaseSchedule {
		last.Steps = queue.WaitSteps(*last, wait)
	}
	if steps := a.launch.Steps(id); len(steps) > 0 {
		last.Steps = steps
	}
	return phases, nil
}

// FindImage describes an image that is on this machine, by whatever it can be
// called; engine_image_not-found.
func (a *Agent) FindImage(ctx context.Context, ref string) (session.Image, error) {
	return a.images.FindImage(ctx, ref)
}

// Arrivals takes the images that a person brings. A name that is another
// image's stays that one's, unless the person says to replace it.
func (a *Agent) Arrivals(owner string) session.ImageArrivals { return a.images.Arrivals(owner) }

func (a *Agent) Logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	return a.logs.Read(ctx, id, opts)
}

func (a *Agent) SetPriority(_ context.Context, id session.ID, priority int) (session.Session, error) {
	return a.queue.SetPriority(id, priority)
}
