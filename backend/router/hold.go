package router

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// waiter is a request that waits for a ready replica. The mutex of the router guards its result, until done is closed.
type waiter struct {
	key     conversation
	token   string // its ID; empty: none was needed
	timer   *time.Timer
	done    chan struct{}
	replica *replica // with a place taken
	problem *problem
}

// heartbeat is how often a client that asked for a stream gets a sign of life while its request waits.
const heartbeat = 10 * time.Second

// place takes a place at a replica for a call, waiting until one is ready. Whoever gets the place releases it.
func (r *Router) place(ctx context.Context, c *call) (*replica, *problem) {
	r.mu.Lock()
	if !slices.Contains(r.table.services, c.service) {
		r.mu.Unlock()
		return nil, noService(c.record.Service)
	}
	one := c.service.pick(&r.table.sticky, c.key, c.avoid)
	if one != nil {
		r.mu.Unlock()
		return one, nil
	}
	if limit := c.service.Limits.Waiting; len(c.service.waiting) >= limit {
		r.mu.Unlock()
		return nil, unavailable(OutcomeLimited, fmt.Sprintf("%d requests wait for this service already.", limit))
	}
	if c.deadline.IsZero() {
		c.deadline = time.Now().Add(c.service.patience())
	}
	patience := min(time.Until(c.deadline), c.service.patience())
	w := &waiter{key: c.key, token: c.record.Token, timer: time.NewTimer(patience), done: make(chan struct{})}
	c.service.waiting = append(c.service.waiting, w)
	r.mu.Unlock()
	defer w.timer.Stop()
	r.config.Wake(c.record.Service)
	return r.wait(ctx, c, w)
}

func (r *Router) wait(ctx context.Context, c *call, w *waiter) (*replica, *problem) {
	var beat <-chan time.Time
	if c.stream {
		ticker := time.NewTicker(heartbeat)
		defer ticker.Stop()
		beat = ticker.C
	}
	for {
		select {
		case <-w.done:
			return w.replica, w.problem
		case <-beat:
			c.answer.beat()
		case <-w.timer.C:
			if !r.withdraw(c.service, w) {
				return w.replica, w.problem
			}
			return nil, unavailable(OutcomeFailed, "No replica of this service became ready in time.")
		case <-ctx.Done():
			if !r.withdraw(c.service, w) && w.replica != nil {
				r.release(w.replica)
			}
			return nil, left()
		}
	}
}

// withdraw ends a wait, and reports false if it had ended already.
func (r *Router) withdraw(s *service, w *waiter) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(s.waiting, w)
	if at < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	return true
}

// release gives a place back.
func (r *Router) release(one *replica) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one.outstanding--
}

// wake gives places to those that wait, in their order, if a replica is ready.
func (s *service) wake(sticky *sticky) {
	for len(s.waiting) > 0 {
		w := s.waiting[0]
		if w.replica = s.pick(sticky, w.key, ""); w.replica == nil {
			return
		}
		s.waiting = slices.Delete(s.waiting, 0, 1)
		close(w.done)
	}
}

// refuse ends the waits for which reason is not nil.
func (s *service) refuse(reason func(*waiter) *problem) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiter) bool {
		if w.problem = reason(w); w.problem == nil {
			return false
		}
		close(w.done)
		return true
	})
}
