package hubtest

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Machine answers at any time, since the hub asks it while the way to the agent
// comes up.
func (a *Agent) Machine(context.Context) (session.Machine, error) { return a.itself(), nil }

func (a *Agent) itself() session.Machine {
	return session.Machine{Agent: a.Name, Instance: a.Instance, Owner: a.Owner, Role: a.Role, Engine: "fake", CPUs: 8,
		Memory: 16 << 30}
}

func (a *Agent) preview(_ context.Context, _ string, spec session.Spec) (session.Preview, error) {
	m := a.itself()
	p := session.Preview{Spec: spec.WithDefaults(),
		Errors: spec.Validate(time.Now(), session.Limits{CPUs: m.CPUs, Memory: m.Memory})}
	if share := p.Spec.Accelerator.Shares; share%gpu.DefaultQuantum != 0 {
		p.Errors = append(p.Errors, session.FieldError{Field: "accelerator", Code: session.CodeRoundedAccelerator,
			Message: "Shares are given in multiples of 0.1.", Hint: "Ask for such a one."})
	}
	for _, image := range a.images {
		if slices.Contains(image.Refs, spec.Image) {
			p.Image = &image
		}
	}
	return p, nil
}

func (a *Agent) launch(ctx context.Context, req session.LaunchRequest) (session.Session, error) {
	p, err := a.preview(ctx, req.Owner, req.Spec)
	if err == nil && len(p.Errors) > 0 {
		err = &session.Error{Code: session.CodeInvalid, Message: p.Errors[0].Message, Hint: p.Errors[0].Hint,
			Fields: p.Errors}
	}
	if err != nil {
		return session.Session{}, err
	}
	if id, ok := a.keys[req.Key]; ok && req.Key != "" {
		return a.sessions[a.index(id)], nil
	}
	if err := a.refused[req.Spec.Name]; err != nil {
		return session.Session{}, err
	}
	s := session.Session{ID: session.NewID(), Name: req.Spec.Name, Owner: req.Owner, Spec: p.Spec,
		Status: session.Pending, Result: session.ResultUndefined, CreatedAt: time.Now(),
		Priority: session.DefaultPriority}
	if req.Spec.Priority != nil {
		s.Priority = *req.Spec.Priority
	}
	for _, other := range a.sessions {
		if slices.Contains(req.Spec.After, other.Name) || slices.Contains(req.Spec.After, string(other.ID)) {
			s.DependsOn = append(s.DependsOn, other.ID)
		}
	}
	if s.Name == "" {
		s.Name = session.RandomName()
	}
	if req.Key != "" {
		a.keys[req.Key] = s.ID
	}
	a.launches++
	return a.put(s), nil
}

func (a *Agent) get(_ context.Context, id session.ID) (session.Session, error) {
	if i := a.index(id); i >= 0 {
		return a.sessions[i], nil
	}
	return session.Session{}, session.NoSession(id)
}

func (a *Agent) list(_ context.Context, filter session.Filter) ([]session.Session, error) {
	found := slices.DeleteFunc(slices.Clone(a.sessions), func(s session.Session) bool {
		return filter.Live && !s.Status.Live() || filter.Finished && s.Status.Live()
	})
	slices.SortStableFunc(found, func(x, y session.Session) int { return y.CreatedAt.Compare(x.CreatedAt) })
	found = found[min(filter.Offset, len(found)):]
	if filter.Limit > 0 {
		found = found[:min(filter.Limit, len(found))]
	}
	return found, nil
}

// change changes a session and tells of it.
func (a *Agent) change(ctx context.Context, id session.ID, do func(*session.Session)) (session.Session, error) {
	s, err := a.get(ctx, id)
	if err != nil {
		return s, err
	}
	do(&s)
	return a.put(s), nil
}

func (a *Agent) rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	if wrong := session.ValidateName(name); wrong != nil {
		return session.Session{}, &session.Error{Code: session.CodeInvalid, Message: wrong.Message, Hint: wrong.Hint,
			Fields: []session.FieldError{*wrong}}
	}
	return a.change(ctx, id, func(s *session.Session) { s.Name = name })
}

func (a *Agent) setTags(ctx context.Context, id session.ID, tags []string) (session.Session, error) {
	clean, err := session.CleanTags(tags)
	if err != nil {
		return session.Session{}, err
	}
	return a.change(ctx, id, func(s *session.Session) { s.Tags = clean })
}

// terminate ends a session at once.
func (a *Agent) terminate(ctx context.Context, id session.ID, forced bool) (session.Session, error) {
	return a.change(ctx, id, func(s *session.Session) {
		s.Status, s.Reason = session.Terminated, session.ReasonUser
		if forced {
			s.Reason = session.ReasonForced
		}
	})
}

func (a *Agent) setPriority(ctx context.Context, id session.ID, priority int) (session.Session, error) {
	if s, err := a.get(ctx, id); err == nil && s.Status != session.Pending {
		return s, failed("session_update_conflict", s.Name+" is "+string(s.Status)+" and waits no more.")
	}
	return a.change(ctx, id, func(s *session.Session) { s.Priority = priority })
}

// keep keeps a session for a time that begins at its creation.
func (a *Agent) keep(ctx context.Context, id session.ID, length session.Duration) (session.Session, error) {
	return a.change(ctx, id, func(s *session.Session) {
		until := s.CreatedAt.Add(time.Duration(length))
		s.KeepUntil = &until
	})
}

// simulateIdle ends a session by its lifetime, which begins at its creation.
func (a *Agent) simulateIdle(ctx context.Context, id session.ID,
	policy session.IdlePolicy) (session.IdleSimulation, error) {
	s, err := a.get(ctx, id)
	if err != nil || policy.Lifetime == 0 {
		return session.IdleSimulation{Since: s.CreatedAt, Message: "It would not have ended."}, err
	}
	at := s.CreatedAt.Add(time.Duration(policy.Lifetime))
	return session.IdleSimulation{Ended: true, At: &at, Checker: session.CheckLifetime, Since: s.CreatedAt,
		Message: "It would have lived as long as it may."}, nil
}

func (a *Agent) watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for {
		var batch []session.Event
		switch {
		case a.down:
			return a.unavailable()
		case after.Epoch != a.epoch || after.Seq > a.seq:
			reset := session.Reset{Machine: a.itself(), Sessions: slices.Clone(a.sessions), Devices: a.board}
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

func (a *Agent) history(ctx context.Context, id session.ID) ([]session.Phase, error) {
	_, err := a.get(ctx, id)
	if err != nil || a.phases != nil {
		return a.phases, err
	}
	return []session.Phase{{ID: "1", Session: id, Phase: session.PhaseSchedule, Result: session.OutcomeSuccess}}, nil
}

func (a *Agent) logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	if _, err := a.Get(ctx, id); err != nil {
		return nil, err
	}
	if a.Log != nil {
		return a.Log(ctx, opts)
	}
	return io.NopCloser(strings.NewReader("one\ntwo\n")), nil
}

func (a *Agent) usage(ctx context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	_, err := a.get(ctx, id)
	return []session.Usage{{Session: id, At: since.Add(time.Second), CPU: 0.5}}, err
}
