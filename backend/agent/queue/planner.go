package queue

import (
	"context"
	"slices"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// Planner decides which sessions start where another scheduler has the resources. What does not depend on them is
// decided before it is asked: start times, dependencies and limits of people.
type Planner interface {
	// Plan declares all sessions that are to start, in the order of their turns, and all live ones that hold resources.
	// The planner asks the other scheduler for those of wanted that it has not asked for, takes back what it has asked
	// for any other session or attempt, and returns one decision for each of wanted. It is called again and again, also
	// with nothing wanted, and after a crash with what it was called with before. No session is planned meanwhile, so
	// it returns within seconds. After an error, everything stays as it is.
	Plan(ctx context.Context, wanted []engine.Wanted, live []session.Session) (scheduler.Schedule, error)
	// Check returns why the other scheduler would refuse a spec with defaults, and nothing if it does not answer.
	Check(ctx context.Context, spec session.Spec) []session.FieldError
	// Script is what the other scheduler would be given for a spec with defaults, for people; empty: unknown.
	Script(ctx context.Context, spec session.Spec) string
	// Changed receives when Plan would decide otherwise.
	Changed() <-chan struct{}
	// Until is when the other scheduler ends a running session; zero: unknown, or never.
	Until(s session.Session) time.Time
	// Extend has the other scheduler end a running session at a time or later. It fails with what that says against it.
	Extend(ctx context.Context, s session.Session, until time.Time) error
}

// follow plans again whenever the planner has changed, until ctx ends.
func (q *Queue) follow(ctx context.Context) {
	for {
		select {
		case <-q.config.Planner.Changed():
			q.Wake()
		case <-ctx.Done():
			return
		}
	}
}

// delegate makes a plan with the planner: it decides on the sessions that are due and ready.
func (q *Queue) delegate(ctx context.Context, snapshot scheduler.Snapshot, live []session.Session,
	now time.Time) (scheduler.Schedule, error) {
	due, decided := scheduler.Due(snapshot, now)
	byID, holders := map[session.ID]session.Session{}, []session.Session{}
	for _, s := range live {
		byID[s.ID] = s
		if s.Status.HoldsResources() {
			holders = append(holders, s)
		}
	}
	waiting := make([]session.Session, len(due))
	for i, id := range due {
		waiting[i] = byID[id]
	}
	ready, err := q.config.Launch.Ahead(ctx, waiting)
	if err != nil {
		return scheduler.Schedule{}, err
	}
	var wanted []engine.Wanted
	var unready []scheduler.Decision
	for _, one := range ready {
		if one.Kernels == nil {
			unready = append(unready, scheduler.Decision{Session: one.Session.ID, Wait: one.Wait, End: one.End})
			continue
		}
		wanted = append(wanted, engine.Wanted{Session: one.Session, Kernels: one.Kernels})
	}
	given, err := q.config.Planner.Plan(ctx, wanted, holders)
	if err != nil {
		return scheduler.Schedule{}, q.config.Health.Heed(err)
	}
	given.Decisions = slices.Concat(unready, given.Decisions)
	return decided.With(due, given), nil
}

// foresee adds to a preview what the sessions of a launch would wait for, where a planner decides.
func (q *Queue) foresee(p *session.Preview, would []session.Session, snapshot scheduler.Snapshot) {
	due, decided := scheduler.Due(snapshot, q.config.Clock.Now().UTC())
	said := session.Say("slurmDecides")
	asked := scheduler.Schedule{Decisions: make([]scheduler.Decision, len(due))}
	for i, id := range due {
		asked.Decisions[i] = scheduler.Decision{Session: id, Wait: &session.Wait{Code: session.CodeWaitResources,
			Message: said.English(), Said: []session.Phrase{said}}}
	}
	all := make([]session.Forecast, len(would))
	for _, d := range decided.With(due, asked).Decisions {
		if i := slices.IndexFunc(would, func(s session.Session) bool { return s.ID == d.Session }); i >= 0 {
			all[i].Wait = d.Wait
		}
	}
	p.Wait, p.Further = all[0].Wait, all[1:]
}
