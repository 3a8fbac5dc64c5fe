package agent

import (
	"sync"
	"time"

	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
)

// runs is how long the newest of the ended sessions ran.
type runs struct {
	mu    sync.Mutex // guards everything below
	known bool       // those that had ended before this agent began are in list
	list  []scheduler.Run
	made  *scheduler.History // of list; nil: it changed
}

const keepRuns = 500

// history is what the scheduler estimates by.
func (r *runs) history(s *store.Store) (*scheduler.History, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known {
		ended, err := s.List(session.Filter{Finished: true, Limit: keepRuns})
		if err != nil {
			return nil, err
		}
		r.list = nil
		for i := len(ended) - 1; i >= 0; i-- {
			r.add(ended[i])
		}
		r.known = true
	}
	if r.made == nil {
		r.made = scheduler.NewHistory(r.list)
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
	r.list = append(r.list, scheduler.Run{Kinds: kindsOf(s), Length: max(length, time.Second)})
	if len(r.list) > keepRuns {
		r.list = append([]scheduler.Run(nil), r.list[len(r.list)-keepRuns:]...)
	}
	r.made = nil
}
