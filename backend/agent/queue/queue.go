// Package queue decides which sessions may start: it checks what is asked of the machine, plans with the scheduler
// whenever something changes, and stores what a plan decides.
//
// It takes a snapshot of what is allocated and what waits, calls [scheduler.Plan] without a lock, and stores all
// placements in one transaction, provided that the books are still the same: SCHEDULED, the grants and PREPARING. The
// reason why a session waits is kept in memory only.
package queue

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/host"
	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/records"
	"slipway/backend/pace"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// People says what each person may have.
type People interface {
	Allowance(owner string) session.Allowance
	// Processes is the limit of processes in each container of a person.
	Processes(owner string) int
}

// Config configures a Queue.
type Config struct {
	host.Host
	Giving   gpu.Config
	Others   *ledger.Others
	Launch   *launch.Runner // starts what was placed
	People   People
	Devices  *devices.Devices
	Attached *devices.Attachment
	Busy     func() map[int]float64 // of each CPU
	Purge    func() error           // called after each plan
	Planner  Planner                // nil: the scheduler of the agent decides
}

// Queue places the waiting sessions of a machine.
type Queue struct {
	config Config
	wake   chan struct{} // of capacity 1: the queue or the books changed
	runs   runs

	mu             sync.Mutex // guards everything below
	waits          map[session.ID]*session.Wait
	contradictions []string  // in what sessions hold, as last logged
	refused        []string  // placements that were refused last
	refusedAt      time.Time // zero: never
}

// New returns a queue. Run places its sessions.
func New(config Config) *Queue {
	return &Queue{config: config, wake: make(chan struct{}, 1), waits: map[session.ID]*session.Wait{}}
}

func (q *Queue) Wake() { pace.Signal(q.wake) }

// Wait is why a session waits, nil if unknown.
func (q *Queue) Wait(id session.ID) *session.Wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waits[id]
}

func (q *Queue) Forget(id session.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waits, id)
}

func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waits)
}

func (q *Queue) Ended(s session.Session) { q.runs.ended(s) }

// Run places waiting sessions whenever something has changed or a planned time has come, until ctx ends.
func (q *Queue) Run(ctx context.Context) {
	const longest = time.Hour // after which a clock that was set is noticed
	var tasks sync.WaitGroup
	defer tasks.Wait()
	if q.config.Planner != nil {
		tasks.Go(func() { q.follow(ctx) })
	}
	for ctx.Err() == nil {
		next, err := q.place(ctx)
		wait := longest
		if err != nil {
			q.config.Log.Warn("the queue is delayed", "err", err)
			wait = q.config.Limits.Pause(1)
		} else if !next.IsZero() {
			wait = min(wait, max(0, q.config.Clock.Until(next)))
		}
		if err := q.config.Purge(); err != nil {
			q.config.Log.Warn("records of ended sessions are not removed", "err", err)
		}
		host.Wait(ctx, q.config.Clock.Timer(wait), q.wake)
	}
}

// place makes one plan, stores it and starts what it places. It returns when to plan again; zero: unknown.
func (q *Queue) place(ctx context.Context) (next time.Time, err error) {
	live, books, err := q.config.Records.Live()
	if err != nil {
		return next, err
	}
	q.forgetWaits(live)
	for _, s := range live {
		if s.Held {
			q.showWait(s, waitHeld())
		}
	}
	watched := q.config.Others.Look(ctx, live)
	snapshot, err := q.snapshot(live, books)
	if err != nil || len(snapshot.Queue) == 0 && q.config.Planner == nil {
		return next, err
	}
	up := q.config.Health.State().Up
	now := q.config.Clock.Now().UTC()
	var plan scheduler.Schedule
	switch {
	case !up:
		plan = scheduler.Ends(snapshot, now)
	case q.config.Planner != nil:
		if plan, err = q.delegate(ctx, snapshot, live, now); err != nil {
			return next, err
		}
	default:
		plan = scheduler.Plan(snapshot, now)
		if q.heedAudit(plan) {
			q.config.PublishMachine()
		}
	}
	if err := q.storePlan(ctx, snapshot, plan.Decisions); err != nil {
		if session.CodeOf(err) == session.CodeStoreConflict {
			q.Wake() // the books changed meanwhile: plan again
			return next, nil
		}
		return next, err
	}
	if !up {
		q.allWait(live, plan.Decisions)
		return plan.Next, nil
	}
	pending := map[session.ID]session.Session{}
	for _, s := range live {
		pending[s.ID] = s
	}
	for _, d := range plan.Decisions {
		if d.Wait != nil {
			q.showWait(pending[d.Session], d.Wait)
		}
	}
	if soon := now.Add(ledger.LookAgain); watched && (plan.Next.IsZero() || plan.Next.After(soon)) {
		plan.Next = soon // the end of another agent's session is not announced
	}
	return plan.Next, nil
}

// forgetWaits drops what is known of sessions that are no longer live.
func (q *Queue) forgetWaits(live []session.Session) {
	alive := make(map[session.ID]bool, len(live))
	for _, s := range live {
		alive[s.ID] = true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.waits, func(id session.ID, _ *session.Wait) bool { return !alive[id] })
}

// storePlan stores all placements and ends of a plan in one transaction, if the books have not changed, and starts it.
func (q *Queue) storePlan(ctx context.Context, snapshot scheduler.Snapshot, plan []scheduler.Decision) error {
	var drafts []*records.Draft
	if !slices.ContainsFunc(plan, func(d scheduler.Decision) bool { return d.Wait == nil }) {
		return nil
	}
	err := q.config.Records.Update(func(tx *store.Tx) error {
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
			d := q.config.Records.Draft(tx, s)
			if decision.End != nil {
				err = d.EndPending(*decision.End)
			} else {
				d.Processes = q.config.People.Processes(s.Owner)
				err = d.Place(*decision.Place, q.enforcement(s, snapshot.Machine.Devices, decision.Place.Total()))
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
		q.Forget(d.ID)
		q.config.Records.Tell(d.Versions())
		if d.Status.HoldsResources() {
			q.config.Launch.Start(ctx, d.ID)
		} else {
			q.Wake() // another session may have waited for it
		}
	}
	q.config.PublishMachine()
	return nil
}

// WaitSteps are the steps of a waiting session up to the newest decision on it.
func WaitSteps(p session.Phase, w *session.Wait) []session.Step {
	done := func(name, message string) session.Step {
		return session.Step{Step: name, Result: session.OutcomeSuccess, Message: message, StartedAt: p.UpdatedAt}
	}
	last := session.Step{Step: scheduler.StepChoose, Result: session.OutcomeNeedRetry, Code: w.Code, Message: w.Message,
		Said: slices.Concat(w.Said, w.Details), StartedAt: p.UpdatedAt}
	switch w.Code {
	case session.CodeWaitStart, session.CodeWaitDependency, session.CodeWaitMachine:
		last.Step = scheduler.StepValidate
		return []session.Step{last}
	}
	return []session.Step{
		done(scheduler.StepOrder, fmt.Sprintf("Number %d in line.", w.Position)),
		done(scheduler.StepValidate, "It waits for no time and no other session."), last,
	}
}

// showWait publishes why a session waits, if that is news.
func (q *Queue) showWait(s session.Session, wait *session.Wait) {
	q.mu.Lock()
	news := isNews(q.waits[s.ID], wait)
	q.waits[s.ID] = wait
	q.mu.Unlock()
	if news {
		s.Wait = wait
		q.config.Publish(session.Event{Session: &s})
	}
}

// waitHeld is why a held session waits.
func waitHeld() *session.Wait {
	said := session.Say("handover")
	return &session.Wait{Code: session.CodeWaitDependency, Message: said.English(), Said: []session.Phrase{said}}
}

// isNews reports whether a reason to wait differs from the one before. Said and Details repeat the message.
func isNews(before, now *session.Wait) bool {
	if before == nil || now == nil {
		return before != now
	}
	a, b := *before, *now
	a.Said, a.Details, b.Said, b.Details = nil, nil, nil, nil
	return !reflect.DeepEqual(a, b)
}

// allWait shows every queued session that was not ended that the engine does not answer.
func (q *Queue) allWait(live []session.Session, ended []scheduler.Decision) {
	over := map[session.ID]bool{}
	for _, d := range ended {
		over[d.Session] = true
	}
	position := 0
	for _, s := range live {
		if s.Status != session.Pending || s.Held || over[s.ID] {
			continue
		}
		position++
		wait := q.config.Health.Wait()
		wait.Position = position
		q.showWait(s, wait)
	}
}

const refusedTold = time.Hour // for which a refused placement is reported

// heedAudit logs once what the audit of a plan found. It reports whether a placement was refused.
func (q *Queue) heedAudit(plan scheduler.Schedule) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, what := range plan.Contradictions {
		if !slices.Contains(q.contradictions, what) {
			q.config.Log.Warn("more of a device is allocated than it has", "what", what)
		}
	}
	q.contradictions = plan.Contradictions
	for _, what := range plan.Refused {
		if !slices.Contains(q.refused, what) {
			q.config.Log.Error("a placement was refused: it would have allocated something twice", "what", what)
		}
	}
	if len(plan.Refused) > 0 {
		q.refused, q.refusedAt = plan.Refused, q.config.Clock.Now()
	}
	return len(plan.Refused) > 0
}

// Warning reports placements that were refused lately.
func (q *Queue) Warning() (session.Warning, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.refusedAt.IsZero() || q.config.Clock.Since(q.refusedAt) > refusedTold {
		return session.Warning{}, false
	}
	return session.Warning{
		Code: session.CodePlanRefused, At: q.refusedAt,
		Title: "A session was not started, because its resources are allocated already",
		Text: "This is an error in Slipway. Nothing was allocated twice. Report it with the agent's log: " +
			strings.Join(q.refused, "; ") + ".",
	}, true
}
