package router

import (
	"crypto/subtle"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"slipway/backend/session"
)

// table has the services in the order in which they were set.
type table struct {
	services []*service
	sticky   sticky
}

// service is a [Service] with its state. The mutex of the router guards it.
type service struct {
	Service
	replicas []*replica
	waiting  []*waiter // in the order in which they came; empty while a replica is ready
	turn     int       // where the search among equal replicas begins
	callers  map[string]*caller
	arrivals arrivals
	last     time.Time
	busy     int // requests, waiting or under way
	idle     time.Time
}

// replica is a [Replica] with its state. The mutex of the router guards up, out and outstanding; id, revision and port
// never change.
type replica struct {
	id          session.ID
	revision    int
	port        int
	up          bool // Replica.Ready
	out         bool // no connection could be opened since the last Set
	outstanding int
	moved       atomic.Int64 // Unix time in nanoseconds of the last byte
	parked      lot
}

func (r *replica) is(given Replica) bool {
	return r.id == given.ID && r.revision == given.Revision && r.port == given.Port
}

func (t *table) named(name string) *service {
	for _, s := range t.services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (t *table) replace(services []Service, now time.Time) {
	before := t.services
	t.services = nil
	for _, given := range services {
		if len(given.Models) == 0 {
			given.Models = []string{given.Name}
		}
		given.Models, given.Tokens = slices.Clone(given.Models), slices.Clone(given.Tokens)
		given.Limits = given.Limits.orDefault()
		s := &service{callers: map[string]*caller{}, idle: now}
		if at := slices.IndexFunc(before, func(old *service) bool { return old.Name == given.Name }); at >= 0 {
			s = before[at]
			before = slices.Delete(slices.Clone(before), at, at+1)
		}
		s.replace(given, &t.sticky)
		t.services = append(t.services, s)
	}
	for _, gone := range before {
		gone.refuse(func(*waiter) *problem { return noService(gone.Name) })
	}
}

func (s *service) replace(given Service, sticky *sticky) {
	slept := s.Asleep
	s.Service = given
	replicas := make([]*replica, 0, len(given.Replicas))
	for _, g := range given.Replicas {
		one := &replica{id: g.ID, revision: g.Revision, port: g.Port}
		if at := slices.IndexFunc(s.replicas, func(old *replica) bool { return old.is(g) }); at >= 0 {
			one = s.replicas[at]
		}
		one.up, one.out = g.Ready, false
		replicas = append(replicas, one)
	}
	s.replicas = replicas
	valid := map[string]bool{"": true}
	for _, token := range given.Tokens {
		valid[token.ID] = true
	}
	maps.DeleteFunc(s.callers, func(id string, c *caller) bool { return !valid[id] && c.under == 0 })
	s.refuse(func(w *waiter) *problem {
		if !valid[w.token] {
			return wrongToken()
		}
		return nil
	})
	if slept != given.Asleep {
		for _, w := range s.waiting {
			w.timer.Reset(s.patience())
		}
	}
	s.wake(sticky)
}

// patience is how long a request that comes now waits.
func (s *service) patience() time.Duration {
	if s.Asleep {
		return s.Limits.Waking
	}
	return s.Limits.Hold
}

func (r *replica) ready() bool { return r.up && !r.out }

// answers reports whether the service can answer, perhaps after it woke.
func (s *service) answers() bool {
	return s.Asleep || slices.ContainsFunc(s.replicas, (*replica).ready)
}

// pick takes a place at the ready replica with the fewest requests, or at the one that has the conversation if that is
// not busier by more than one. It avoids one replica if there is another. It returns nil if none is ready.
func (s *service) pick(sticky *sticky, key conversation, avoid session.ID) *replica {
	var best, home *replica
	at := sticky.get(key)
	for i := range s.replicas {
		one := s.replicas[(s.turn+i)%len(s.replicas)]
		if !one.ready() {
			continue
		}
		if one.id == at && one.id != avoid {
			home = one
		}
		if best == nil || best.id == avoid || one.id != avoid && one.outstanding < best.outstanding {
			best = one
		}
	}
	if best == nil {
		return nil
	}
	if home != nil && home.outstanding <= best.outstanding+1 {
		best = home
	} else {
		s.turn = (slices.Index(s.replicas, best) + 1) % len(s.replicas)
	}
	sticky.put(key, best.id)
	best.outstanding++
	return best
}

// verdict says whether a service accepts a visitor.
type verdict int

const (
	stranger verdict = iota
	expired
	welcome
)

// admit returns the token of a visitor, nil if a public service needs none. Its time does not depend on which token
// matches.
func (s *service) admit(v visitor, now time.Time) (*Token, verdict) {
	var found *Token
	for i := range s.Tokens {
		if subtle.ConstantTimeCompare(s.Tokens[i].Hash[:], v.hash[:]) == 1 && v.presented {
			found = &s.Tokens[i]
		}
	}
	late := found != nil && !found.Expires.IsZero() && !now.Before(found.Expires)
	switch {
	case found != nil && !late:
		return found, welcome
	case s.Public:
		return nil, welcome
	case late:
		return nil, expired
	}
	return nil, stranger
}

// enter counts a request of a token, or returns why it must not come now.
func (s *service) enter(token *Token, now time.Time) *problem {
	if token != nil {
		c := s.callers[token.ID]
		if c == nil {
			c = &caller{}
			s.callers[token.ID] = c
		}
		if p := c.enter(*token, now); p != nil {
			return p
		}
	}
	s.busy++
	s.last = now
	s.arrivals.add(now)
	return nil
}

// leave takes back what enter counted.
func (s *service) leave(token string, now time.Time) {
	if c := s.callers[token]; c != nil {
		c.under--
	}
	if s.busy--; s.busy == 0 {
		s.idle = now
	}
}

func (s *service) traffic(now time.Time) Traffic {
	t := Traffic{Replicas: map[session.ID]Load{}, Waiting: len(s.waiting), Last: s.last}
	t.LastSecond, t.Last30 = s.arrivals.since(now, time.Second), s.arrivals.since(now, 30*time.Second)
	if s.busy == 0 {
		t.IdleSince = s.idle
	}
	for _, one := range s.replicas {
		load := Load{Outstanding: one.outstanding}
		if at := one.moved.Load(); at != 0 {
			load.LastByte = time.Unix(0, at)
		}
		t.Replicas[one.id] = load
	}
	return t
}
