package queue

import (
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// runs is how long the newest of the ended sessions ran.
type runs struct {
	mu    sync.Mutex         // guards everything below
	known bool               // those that had ended before this agent began are in list
	list  []ownRun           // in the order of their ends
	of    map[string]int     // how many there are of each owner
	made  *scheduler.History // of list; nil: it changed
}

// ownRun is a run with whose it was.
type ownRun struct {
	scheduler.Run
	owner string
}

// keepRuns is how many runs are kept: those of whoever has most go first, so
// that the estimates of other people's starts do not suffer.
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

// ended takes note of a session that has ended.
func (r *runs) ended(s session.Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known { // else it is found in the store
		r.add(s)
	}
}

// add keeps how long a session ran. The caller holds the lock.
func (r *runs) add(s session.Session) {
	if s.StartedAt == nil || s.TerminatedAt == nil || s.Reason == session.ReasonLost {
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
