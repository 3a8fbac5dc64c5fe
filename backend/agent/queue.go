package agent

import (
	"context"
	"reflect"
	"time"

	"slipway/backend/agent/others"
	"slipway/backend/agent/records"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
)

// runQueue places waiting sessions whenever something has changed and whenever
// a known moment has come, until ctx ends.
func (a *Agent) runQueue(ctx context.Context) {
	const longest = time.Hour // a clock that was set is noticed after this
	for ctx.Err() == nil {
		next, err := a.place(ctx)
		wait := longest
		if err != nil {
			a.log.Warn("the queue is held up", "err", err)
			wait = a.limits.Pause(1)
		} else if !next.IsZero() {
			wait = min(wait, max(0, a.clock.Until(next)))
		}
		if err := a.purge(); err != nil {
			a.log.Warn("records of ended sessions are not removed", "err", err)
		}
		timer := a.clock.Timer(wait)
		select {
		case <-a.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// place makes one plan, stores what it decides and starts the courses of those
// that it places. It returns when to plan again at the latest, if that is known.
func (a *Agent) place(ctx context.Context) (next time.Time, err error) {
	live, books, err := a.store.Live()
	if err != nil {
		return next, err
	}
	a.forgetNotes(live)
	watched := a.others.Look(ctx, live)
	snapshot, err := a.snapshot(live, books)
	if err != nil || len(snapshot.Queue) == 0 {
		return next, err
	}
	up := a.health.State().Up
	now := a.clock.Now().UTC()
	var plan scheduler.Schedule
	if up {
		plan = scheduler.Plan(snapshot, now)
		if a.heedAudit(plan) {
			a.publishMachine()
		}
	} else {
		plan = scheduler.Ends(snapshot, now)
	}
	if err := a.storePlan(ctx, snapshot, plan.Decisions); err != nil {
		if session.CodeOf(err) == store.CodeConflict {
			a.rouse() // the books changed meanwhile: plan again
			return next, nil
		}
		return next, err
	}
	if !up {
		a.allWait(live, plan.Decisions)
		return plan.Next, nil
	}
	pending := map[session.ID]session.Session{}
	for _, s := range live {
		pending[s.ID] = s
	}
	for _, d := range plan.Decisions {
		if d.Wait != nil {
			a.showWait(pending[d.Session], d.Wait)
		}
	}
	if soon := now.Add(others.LookAgain); watched && (plan.Next.IsZero() || plan.Next.After(soon)) {
		plan.Next = soon // nobody tells when another agent's session ends
	}
	return plan.Next, nil
}

// forgetNotes drops what is known of sessions that are no longer live. Nobody
// notes anything of a session that is not among live yet: it was not placed.
func (a *Agent) forgetNotes(live []session.Session) {
	known := make(map[session.ID]bool, len(live))
	for _, s := range live {
		known[s.ID] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.notes {
		if !known[id] {
			delete(a.notes, id)
		}
	}
}

// storePlan stores all placements and ends of a plan in one transaction,
// provided that the books are still those it was made from, and starts the
// courses of those that were placed.
func (a *Agent) storePlan(ctx context.Context, snapshot scheduler.Snapshot, plan []scheduler.Decision) error {
	var drafts []*records.Draft
	decided := false
	for _, d := range plan {
		decided = decided || d.Wait == nil
	}
	if !decided {
		return nil
	}
	err := a.records.Update(func(tx *store.Tx) error {
		drafts = nil
		if err := tx.Expect(snapshot.Revision); err != nil {
			return err
		}
		for _, decision := range plan {
			if decision.Wait != nil {
				continue
			}
			s, err := tx.Get(decision.Session)
			if err != nil {
				return err
			}
			d := a.records.Draft(tx, s)
			if decision.End != nil {
				err = d.EndPending(*decision.End)
			} else {
				d.Processes = a.processesOf(s.Owner)
				err = d.Place(*decision.Place, a.enforcement(s, snapshot.Machine.Devices, decision.Place.Total()))
			}
			if err != nil {
				return err
			}
			drafts = append(drafts, d)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range drafts {
		a.noteDown(d.ID, func(n *note) { n.wait = nil })
		a.publishVersions(d.Versions())
		if d.Status.HoldsResources() {
			a.launch.Start(ctx, d.ID)
		} else {
			a.rouse() // someone may have waited for it
		}
	}
	a.publishMachine()
	return nil
}

// waitSteps shows a session that waits the way to the newest decision on it.
func waitSteps(p session.Phase, w *session.Wait) []session.Step {
	at := p.UpdatedAt
	step := func(name string, result session.Outcome, message string) session.Step {
		return session.Step{Step: name, Result: result, Message: message, StartedAt: at}
	}
	switch w.Code {
	case scheduler.CodeWaitStart, scheduler.CodeWaitDependency, scheduler.CodeWaitMachine:
		last := step(scheduler.StepValidate, session.OutcomeNeedRetry, w.Message)
		last.Code = w.Code
		return []session.Step{last}
	}
	last := step(scheduler.StepChoose, session.OutcomeNeedRetry, w.Message)
	last.Code = w.Code
	return []session.Step{
		step(scheduler.StepOrder, session.OutcomeSuccess, positionText(w.Position)),
		step(scheduler.StepValidate, session.OutcomeSuccess, "It waits for no time and no other session."), last,
	}
}

// showWait tells watchers why a session waits, if that is news.
func (a *Agent) showWait(s session.Session, wait *session.Wait) {
	news := false
	a.noteDown(s.ID, func(n *note) {
		news = isNews(n.wait, wait)
		n.wait = wait
	})
	if news {
		s.Wait = wait
		a.stream.publish(session.Event{Session: &s})
	}
}

// isNews reports whether a reason to wait says something else than the one
// before. What it says in parts is in its message.
func isNews(before, now *session.Wait) bool {
	if before == nil || now == nil {
		return before != now
	}
	a, b := *before, *now
	a.Said, b.Said = nil, nil
	return !reflect.DeepEqual(a, b)
}

// allWait tells every queued session but those that were ended that the engine
// does not answer.
func (a *Agent) allWait(live []session.Session, ended []scheduler.Decision) {
	over := map[session.ID]bool{}
	for _, d := range ended {
		over[d.Session] = true
	}
	position := 0
	for _, s := range live {
		if s.Status != session.Pending || over[s.ID] {
			continue
		}
		position++
		wait := a.health.Wait()
		wait.Position = position
		a.showWait(s, wait)
	}
}

// purgeSlack is how many more records of ended sessions there may be than are
// kept, so that removing them happens seldom. At most purgeMost go at a time.
const (
	purgeSlack = 100
	purgeMost  = 1000
)

// purge removes the records of ended sessions that are too many, and their logs.
func (a *Agent) purge() error {
	count, err := a.store.Finished()
	if err != nil || count < a.config.KeepFinished+purgeSlack {
		return err
	}
	surplus, err := a.store.Surplus(a.config.KeepFinished, purgeMost)
	if err != nil || len(surplus) == 0 {
		return err
	}
	var removed []session.Session
	err = a.records.Update(func(tx *store.Tx) (err error) {
		removed, err = tx.Purge(surplus)
		return err
	})
	if err != nil {
		return err
	}
	for _, s := range removed {
		a.logs.Remove(s.ID)
		a.stream.publish(session.Event{Removed: &s.ID, Owner: s.Owner})
	}
	return nil
}
