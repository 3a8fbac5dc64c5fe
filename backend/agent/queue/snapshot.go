package queue

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/ledger"
	"slipway/backend/agent/records"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

func (q *Queue) snapshot(live []session.Session, books uint64) (scheduler.Snapshot, error) {
	now := q.config.Clock.Now()
	info := q.config.Health.State().Info
	snapshot := scheduler.Snapshot{Revision: books, Ruler: q.config.Owner, Allowances: map[string]session.Allowance{},
		Machine: scheduler.Machine{Name: q.config.Agent, Memory: info.Memory, Busy: q.config.Busy(),
			Giving: q.config.Giving}}
	for cpu := range info.CPUs {
		snapshot.Machine.CPUs = append(snapshot.Machine.CPUs, cpu)
	}
	for _, s := range live {
		if s.Status.HoldsResources() {
			snapshot.Promised = append(snapshot.Promised, promiseOf(s, now))
			continue
		}
		if s.Held {
			continue
		}
		asks, err := q.request(s)
		if err != nil {
			return snapshot, err
		}
		snapshot.Queue = append(snapshot.Queue, asks)
		if allowance := q.config.People.Allowance(s.Owner); allowance.Limits() {
			snapshot.Allowances[s.Owner] = allowance
		}
	}
	if len(snapshot.Queue) == 0 {
		return snapshot, nil
	}
	snapshot.Promised = append(snapshot.Promised, q.config.Launch.Left()...)
	others := q.config.Others.List()
	for _, o := range others {
		snapshot.Promised = append(snapshot.Promised, scheduler.Promise{Session: o.Holder(), Name: o.String(),
			Grants: session.Grants{GPUs: o.Grants}, Since: o.Since()})
	}
	book := q.config.Devices.Now()
	snapshot.Machine.Devices, snapshot.Machine.NoDevices = book.Devices, book.Text
	snapshot.Machine.Unread, snapshot.Machine.WhyUnread = book.Unread, book.WhyUnread
	snapshot.Machine.Measured = ledger.New(book, q.config.Giving, live, others, now).Measured()
	history, err := q.runs.history(q.config.Records)
	snapshot.History = history
	return snapshot, err
}

func promiseOf(s session.Session, now time.Time) scheduler.Promise {
	// A session that is placed but does not run yet is assumed to start soon.
	const soon = time.Minute
	p := scheduler.Promise{Session: s.ID, Name: s.Name, Owner: s.Owner, Grants: s.Grants, Since: s.StartedAt,
		Kinds: scheduler.KindsOf(s)}
	if s.Spec.Timeout > 0 {
		ends := now.Add(time.Duration(s.Spec.Timeout) + soon)
		if s.StartedAt != nil {
			ends = s.StartedAt.Add(time.Duration(s.Spec.Timeout))
		} else if s.ScheduledAt != nil {
			ends = s.ScheduledAt.Add(time.Duration(s.Spec.Timeout) + soon)
		}
		p.Ends = &ends
	}
	return p
}

func (q *Queue) request(s session.Session) (scheduler.Request, error) {
	asks := scheduler.RequestOf(s)
	if s.Spec.PendingTimeout > 0 {
		from := s.CreatedAt
		if s.Spec.NotBefore != nil && s.Spec.NotBefore.After(from) {
			from = *s.Spec.NotBefore
		}
		asks.Deadline = new(from.Add(time.Duration(s.Spec.PendingTimeout)))
	}
	for _, id := range s.DependsOn {
		other, err := q.config.Records.Get(id)
		if err != nil && session.CodeOf(err) != session.CodeSessionNotFound {
			return asks, err
		}
		asks.After = append(asks.After, scheduler.Dependency{Session: id, Name: cmp.Or(other.Name, string(id)),
			Status: other.Status, Result: other.Result, Reason: other.Reason})
	}
	return asks, nil
}

// enforcement is the weakest level that enforces the grants of a session, empty if it holds no devices.
func (q *Queue) enforcement(s session.Session, devices []gpu.Device, grants session.Grants) gpu.Level {
	attached := q.config.Attached.Now()
	return ledger.Level(gpu.Enforcement{HardLimit: attached.HardLimit, MPS: s.Spec.MPS && attached.MPS, Guard: true},
		devices, grants)
}

// runs is how long the newest of the ended sessions ran.
type runs struct {
	mu    sync.Mutex         // guards everything below
	known bool               // list includes the sessions that ended before this agent started
	list  []ownRun           // in the order of their ends
	of    map[string]int     // number of runs by owner
	made  *scheduler.History // of list; nil: list has changed
}

type ownRun struct {
	scheduler.Run
	owner string
}

// keepRuns is the number of runs that are kept. Those of the owner with most go first, for the sake of the others.
const keepRuns = 500

// history is what the scheduler estimates by.
func (r *runs) history(records *records.Records) (*scheduler.History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		ended, err := records.List(session.Filter{Finished: true})
		if err != nil {
			return nil, err
		}
		r.list, r.of = nil, map[string]int{}
		for i := len(ended) - 1; i >= 0; i-- {
			r.add(ended[i])
		}
		r.known = true
	}
	if r.made == nil {
		list := make([]scheduler.Run, len(r.list))
		for i, one := range r.list {
			list[i] = one.Run
		}
		r.made = scheduler.NewHistory(list)
	}
	return r.made, nil
}

func (r *runs) ended(s session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known { // else it is found in the store
		r.add(s)
	}
}

// add keeps how long a session ran. The caller holds mu.
func (r *runs) add(s session.Session) {
	if s.StartedAt == nil || s.TerminatedAt == nil || s.Reason == session.ReasonLost ||
		s.Reason == session.ReasonPreempted {
		return
	}
	length := s.TerminatedAt.Sub(*s.StartedAt)
	run := scheduler.Run{Kinds: scheduler.KindsOf(s), Length: max(length, time.Second)}
	r.list = append(r.list, ownRun{run, s.Owner})
	r.of[s.Owner]++
	if len(r.list) > keepRuns {
		most := s.Owner
		for owner, n := range r.of {
			if n > r.of[most] {
				most = owner
			}
		}
		at := slices.IndexFunc(r.list, func(one ownRun) bool { return one.owner == most })
		r.list = slices.Delete(r.list, at, at+1)
		r.of[most]--
	}
	r.made = nil
}
