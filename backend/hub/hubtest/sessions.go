package hubtest

import (
	"cmp"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type sessions struct {
	*base
	machine *machine
	// Log is what Logs returns.
	Log func(context.Context, session.LogOptions) (io.ReadCloser, error)

	all      []session.Session // guarded by mu, like the fields below
	keys     map[string]session.ID
	moved    map[session.ID]session.ID
	phases   []session.Phase
	refused  map[string]error // by the name of the session
	launches int
	chosen   map[session.ID]bool // preferred ones
	choices  int
}

// put is called with mu held.
func (a *sessions) put(s session.Session) session.Session {
	s.Agent = a.Name
	s.Revision++
	if i := a.index(s.ID); i >= 0 {
		a.all[i] = s
	} else {
		a.all = append(a.all, s)
	}
	a.tell(session.Event{Session: new(s)})
	return s
}

// index is called with mu held.
func (a *sessions) index(id session.ID) int {
	return slices.IndexFunc(a.all, func(s session.Session) bool { return s.ID == id })
}

func (a *sessions) Put(s session.Session) (stored session.Session) {
	a.do(func() { stored = a.put(s) })
	return stored
}

// Change changes a session, if it is there, and sends an event.
func (a *sessions) Change(id session.ID, change func(*session.Session)) {
	a.do(func() { _, _ = a.change(context.Background(), id, change) }) // it fails only if it is gone
}

// Fill stores many sessions without events.
func (a *sessions) Fill(sessions []session.Session) {
	a.do(func() { a.all = append(a.all, sessions...) })
}

// Remove removes a session and sends an event.
func (a *sessions) Remove(id session.ID) {
	a.do(func() {
		a.all = slices.DeleteFunc(a.all, func(s session.Session) bool { return s.ID == id })
		a.tell(session.Event{Removed: &id})
	})
}

// SetHistory sets what History returns for every session.
func (a *sessions) SetHistory(phases ...session.Phase) { a.do(func() { a.phases = phases }) }

// Refuse makes Launch fail with err for sessions of that name.
func (a *sessions) Refuse(name string, err error) { a.do(func() { a.refused[name] = err }) }

// Launches returns how many sessions Launch has created.
func (a *sessions) Launches() int { return read(a.base, &a.launches) }

func (a *sessions) preview(_ context.Context, _ string, spec session.Spec, count int) (session.Preview, error) {
	m := a.itself()
	p := session.Preview{Spec: spec.WithDefaults(),
		Errors:  spec.Validate(time.Now(), session.Limits{CPUs: m.CPUs, Memory: m.Memory}),
		Further: make([]session.Forecast, max(count, 1)-1)}
	if share := p.Spec.Accelerator.Shares; share%gpu.DefaultQuantum != 0 {
		p.Errors = append(p.Errors, session.FieldError{Field: "accelerator", Kind: session.KindRounded,
			Message: "Shares are given in multiples of 0.1.", Hint: "Ask for such a one."})
	}
	for _, image := range a.machine.images {
		if slices.Contains(image.Refs, spec.Image) {
			p.Image = &image
		}
	}
	return p, nil
}

func (a *sessions) launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	req.From = ""
	return a.accept(ctx, req)
}

func (a *sessions) accept(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	p, _ := a.preview(ctx, req.Owner, req.Spec, 1) // it never fails
	if len(p.Errors) > 0 {
		return session.Session{}, session.Refused(session.CodeInvalid, p.Errors...)
	}
	if id, ok := a.keys[req.Key]; ok && req.Key != "" {
		i := a.index(id)
		if i >= 0 {
			return a.all[i], nil
		}
		if a.moved[id] != "" && req.From == "" {
			return session.Session{}, session.NewError(session.CodeSessionConflict, "The session was moved.", "")
		}
	}
	if err := a.refused[req.Spec.Name]; err != nil {
		return session.Session{}, err
	}
	if err := a.free(req.Owner, req.Spec.Name); err != nil {
		return session.Session{}, err
	}
	s := session.Session{ID: session.NewID(), Name: cmp.Or(req.Spec.Name, session.RandomName()), Owner: req.Owner,
		Spec: p.Spec, Status: session.Pending, End: session.End{Result: session.ResultUndefined}, CreatedAt: time.Now(),
		Resolved: session.Resolved{Priority: session.DefaultPriority, Launch: req.Launch, Key: req.Key},
		Move:     session.Move{Floats: req.Floats, From: req.From, Held: req.From != ""}, Tags: req.Tags}
	if req.Spec.Priority != nil {
		s.Priority = *req.Spec.Priority
	}
	for _, other := range a.all {
		if slices.Contains(req.Spec.After, other.Name) || slices.Contains(req.Spec.After, string(other.ID)) {
			s.DependsOn = append(s.DependsOn, other.ID)
		}
	}
	if req.Key != "" {
		a.keys[req.Key] = s.ID
	}
	a.launches++
	return a.put(s), nil
}

func (a *sessions) yield(_ context.Context, id, to session.ID) error {
	if before, ok := a.moved[id]; ok {
		if before != to {
			return session.NewError(session.CodeSessionConflict, "The session has been moved already.", "")
		}
		return nil
	}
	i := a.index(id)
	if i < 0 {
		return session.NoSession(id)
	}
	if a.all[i].Status != session.Pending {
		return session.NewError(session.CodeSessionConflict, "The session does not wait any more.", "")
	}
	a.all, a.moved[id] = slices.Delete(a.all, i, i+1), to
	a.tell(session.Event{Removed: &id})
	return nil
}

func (a *sessions) release(ctx context.Context, id session.ID) (session.Session, error) {
	return a.change(ctx, id, func(s *session.Session) { s.Held = false })
}

func (a *sessions) get(_ context.Context, id session.ID) (session.Session, error) {
	if i := a.index(id); i >= 0 {
		return a.all[i], nil
	}
	return session.Session{}, session.NoSession(id)
}

func (a *sessions) list(_ context.Context, filter session.Filter) ([]session.Session, error) {
	found := slices.DeleteFunc(slices.Clone(a.all), func(s session.Session) bool {
		return filter.Live && !s.Status.Live() || filter.Finished && s.Status.Live() ||
			filter.Key != "" && s.Key != filter.Key
	})
	slices.SortStableFunc(found, func(x, y session.Session) int { return y.CreatedAt.Compare(x.CreatedAt) })
	found = found[min(filter.Offset, len(found)):]
	if filter.Limit > 0 {
		found = found[:min(filter.Limit, len(found))]
	}
	return found, nil
}

func (a *sessions) change(ctx context.Context, id session.ID, do func(*session.Session)) (session.Session, error) {
	s, err := a.get(ctx, id)
	if err != nil {
		return s, err
	}
	do(&s)
	return a.put(s), nil
}

// free fails if a live session of an owner has that name.
func (a *sessions) free(owner, name string) error {
	if slices.ContainsFunc(a.all, func(s session.Session) bool {
		return s.Name == name && s.Owner == owner && s.Status.Live()
	}) {
		return failed(session.CodeNameTaken, "There is a live session named "+name+".")
	}
	return nil
}

func (a *sessions) rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	if wrong := session.SessionNames.Check(name); wrong != nil {
		return session.Session{}, session.Refused(session.CodeInvalid, *wrong)
	}
	return a.change(ctx, id, func(s *session.Session) { s.Name = name })
}

func (a *sessions) setTags(ctx context.Context, id session.ID, tags []string) (session.Session, error) {
	clean, err := session.CleanTags(tags)
	if err != nil {
		return session.Session{}, err
	}
	return a.change(ctx, id, func(s *session.Session) { s.Tags = clean })
}

// terminate ends a session at once.
func (a *sessions) terminate(ctx context.Context, id session.ID, _ bool) (session.Session, error) {
	if s, err := a.get(ctx, id); err != nil || s.Status.Terminal() {
		return s, err
	}
	return a.change(ctx, id, func(s *session.Session) {
		s.Status, s.Reason, s.TerminatedAt = session.Terminated, session.ReasonUser, new(time.Now())
	})
}

// Preferred returns the preferred sessions, sorted, and how many calls said so.
func (a *sessions) Preferred() (ids []session.ID, calls int) {
	a.do(func() { ids, calls = slices.Sorted(maps.Keys(a.chosen)), a.choices })
	return ids, calls
}

// Forget has the agent know no preferred sessions, as after a restart.
func (a *sessions) Forget() { a.do(func() { clear(a.chosen) }) }

func (a *sessions) prefer(ctx context.Context, id session.ID, on bool) error {
	a.choices++
	if _, err := a.get(ctx, id); err != nil {
		return err
	}
	if on {
		a.chosen[id] = true
	} else {
		delete(a.chosen, id)
	}
	return nil
}

func (a *sessions) setPriority(ctx context.Context, id session.ID, priority int) (session.Session, error) {
	if s, err := a.get(ctx, id); err == nil && s.Status != session.Pending {
		return s, failed(session.CodeSessionConflict, s.Name+" is "+string(s.Status)+" and no longer waits.")
	}
	return a.change(ctx, id, func(s *session.Session) { s.Priority = priority })
}

func (a *sessions) setAccelerator(ctx context.Context, id session.ID, asked gpu.Request) (session.Session, error) {
	if s, err := a.get(ctx, id); err == nil && s.Status != session.Pending {
		return s, failed(session.CodeSessionConflict, s.Name+" is "+string(s.Status)+" and no longer waits.")
	}
	return a.change(ctx, id, func(s *session.Session) { s.Spec.Accelerator = asked })
}

// keep protects a session for some time after its creation.
func (a *sessions) keep(ctx context.Context, id session.ID, length session.Duration) (session.Session, error) {
	if err := session.CheckKeep(length); err != nil {
		return session.Session{}, err
	}
	return a.change(ctx, id, func(s *session.Session) {
		s.KeepUntil = nil
		if length > 0 {
			s.KeepUntil = new(s.CreatedAt.Add(time.Duration(length)))
		}
	})
}

// simulateIdle ends a session by its lifetime since its creation.
func (a *sessions) simulateIdle(ctx context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	s, err := a.get(ctx, id)
	if err != nil || policy.Lifetime == 0 {
		return session.IdleSimulation{Since: s.CreatedAt, Message: "It would not have ended."}, err
	}
	return session.IdleSimulation{Ended: true, At: new(s.CreatedAt.Add(time.Duration(policy.Lifetime))),
		Checker: session.CheckLifetime, Since: s.CreatedAt, Message: "It would have lived as long as it may."}, nil
}

func (a *sessions) history(ctx context.Context, id session.ID) ([]session.Phase, error) {
	_, err := a.get(ctx, id)
	if err != nil || a.phases != nil {
		return a.phases, err
	}
	return []session.Phase{{ID: "1", Session: id, Phase: session.PhaseSchedule, Result: session.OutcomeSuccess}}, nil
}

func (a *sessions) logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	var err error
	if a.do(func() { _, err = a.get(ctx, id) }); err != nil {
		return nil, err
	}
	if a.Log != nil {
		return a.Log(ctx, opts)
	}
	return io.NopCloser(strings.NewReader("one\ntwo\n")), nil
}

func (a *sessions) usage(ctx context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	_, err := a.get(ctx, id)
	return []session.Usage{{Session: id, At: since.Add(time.Second), CPU: 0.5}}, err
}

func (a *sessions) watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	cuts := a.cuts
	for {
		var batch []session.Event
		switch {
		case a.down || a.cuts != cuts: // it may be up again before this is scheduled
			return a.unavailable()
		case after.Epoch != a.epoch || after.Seq > a.seq:
			reset := session.Reset{Machine: a.itself(), Sessions: slices.Clone(a.all), Devices: a.machine.board}
			batch = []session.Event{{Epoch: a.epoch, Seq: a.seq, Reset: &reset}}
		case after.Seq == a.seq:
			if err := a.wait(ctx, a.changed); err != nil {
				return err
			}
			continue
		default:
			batch = slices.Clone(a.events[after.Seq:])
		}
		after = session.Cursor{Epoch: a.epoch, Seq: a.seq}
		a.mu.Unlock()
		for _, e := range batch {
			if err := fn(e); err != nil {
				a.mu.Lock()
				return err
			}
		}
		a.mu.Lock()
	}
}

func (a *sessions) commitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := a.get(ctx, id)
	if err != nil {
		return session.ImageWork{}, err
	}
	return a.machine.beginWork(session.ImageWork{Kind: session.WorkCommit, Ref: session.CommitRef(s.Owner, req.Name),
		Owner: s.Owner, Session: id})
}
