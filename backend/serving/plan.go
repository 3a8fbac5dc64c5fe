package serving

import (
	"reflect"
	"slices"
	"time"

	"slipway/backend/session"
)

// stopGrace is how long a process may take to end after SIGTERM.
const stopGrace = 10 * time.Second

// Plan decides what each service does next. The same snapshot and time give the same decision, and a plan of the
// decided records asks for the same actions again until a snapshot shows their effect.
func Plan(s Snapshot, now time.Time) Decision {
	plans := make([]*plan, 0, len(s.Services))
	for i := range s.Services {
		p := newPlan(&s.Services[i], now)
		p.meet()
		p.replace()
		p.forgive()
		p.wake()
		scaler{p}.retarget()
		p.doze()
		plans = append(plans, p)
	}
	switchOver(plans)
	var d Decision
	for _, p := range plans {
		p.converge()
		p.prune()
		p.complete()
		p.act(&d)
		d.Services = append(d.Services, p.outcome())
	}
	audit(s, &d, now)
	return d
}

// plan decides about one service.
type plan struct {
	service  *Service
	record   Record // as it will be stored
	now      time.Time
	replicas map[int]*Replica // by attempt
}

func newPlan(service *Service, now time.Time) *plan {
	p := &plan{service: service, record: service.Record, now: now,
		replicas: make(map[int]*Replica, len(service.Replicas))}
	p.record.Members = slices.Clone(service.Members)
	p.record.Scaling.Low = slices.Clone(service.Scaling.Low)
	for i := range service.Replicas {
		r := &service.Replicas[i]
		if other := p.replicas[r.Attempt]; other == nil || other.Phase == Ended {
			p.replicas[r.Attempt] = r
		}
	}
	return p
}

// meet compares the members with the replicas: it adopts replicas without a member, and removes members that ended.
func (p *plan) meet() {
	for i := range p.service.Replicas {
		r := &p.service.Replicas[i]
		if r.Phase == Ended || slices.ContainsFunc(p.record.Members,
			func(m Member) bool { return m.Attempt == r.Attempt }) {
			continue
		}
		p.record.Members = append(p.record.Members, Member{Attempt: r.Attempt, Revision: r.Revision})
		p.record.Attempt = max(p.record.Attempt, r.Attempt)
	}
	slices.SortStableFunc(p.record.Members, func(a, b Member) int { return a.Attempt - b.Attempt })
	members := p.record.Members
	p.record.Members = nil
	for _, m := range members {
		if p.note(&m) {
			p.record.Members = append(p.record.Members, m)
		}
	}
}

// note updates a member by its replica and reports whether it still exists.
func (p *plan) note(m *Member) bool {
	r := p.replicas[m.Attempt]
	switch {
	case r == nil:
		if m.Seen && !m.leaves() {
			p.fail(*m, p.now, session.Say("replicaGone"), nil)
		}
		return !m.Seen && !m.leaves()
	case r.Phase == Ended:
		if !m.leaves() && !r.End.Asked() {
			at, what := p.now, session.Say("replicaEnded")
			if r.End != nil {
				at, what = r.End.At, r.End.Said
			}
			p.fail(*m, at, what, r.Log)
		}
		return false
	}
	m.Seen = true
	switch r.Phase {
	case Healthy:
		if m.Passed = true; m.Healthy.IsZero() {
			m.Healthy = r.Since
		}
	case Unhealthy:
		m.Healthy = time.Time{}
	}
	return true
}

// resting reports whether the service wants no replicas.
func (p *plan) resting() bool { return p.record.Stopping || p.record.Sleeping.Asleep }

// staying are the members that do not leave.
func (p *plan) staying() []Member {
	return slices.DeleteFunc(slices.Clone(p.record.Members), Member.leaves)
}

// leaving are the members that leave and whose replica still exists.
func (p *plan) leaving() []Member {
	return slices.DeleteFunc(slices.Clone(p.record.Members),
		func(m Member) bool { return !m.leaves() || p.replicas[m.Attempt] == nil })
}

func (p *plan) isHealthy(m Member) bool {
	r := p.replicas[m.Attempt]
	return r != nil && r.Phase == Healthy && !m.leaves()
}

// healthy counts the replicas that get requests.
func (p *plan) healthy() (n int) {
	for _, m := range p.record.Members {
		if p.isHealthy(m) {
			n++
		}
	}
	return n
}

// live reports whether any replica exists.
func (p *plan) live() bool {
	return slices.ContainsFunc(p.service.Replicas, func(r Replica) bool { return r.Phase != Ended })
}

// leave drains a member until it has nothing under way, or until a deadline.
func (p *plan) leave(i int, deadline time.Time) {
	if m := &p.record.Members[i]; !m.leaves() {
		m.Drained, m.Deadline = p.now, deadline
	}
}

// drain lets the members leave that have these attempts.
func (p *plan) drain(members []Member) {
	for i, m := range p.record.Members {
		if slices.ContainsFunc(members, func(other Member) bool { return other.Attempt == m.Attempt }) {
			p.leave(i, p.now.Add(p.service.grace()))
		}
	}
}

func (p *plan) launch() {
	p.record.Attempt++
	p.record.Members = append(p.record.Members, Member{Attempt: p.record.Attempt, Revision: p.record.Wanted()})
}

// prune forgets members that leave before there is a replica. One that was being launched is adopted when it appears,
// and leaves then.
func (p *plan) prune() {
	p.record.Members = slices.DeleteFunc(p.record.Members,
		func(m Member) bool { return m.leaves() && p.replicas[m.Attempt] == nil })
}

// act asks for what the members need.
func (p *plan) act(d *Decision) {
	id := p.record.ID
	for _, m := range p.record.Members {
		r := p.replicas[m.Attempt]
		switch {
		case r == nil:
			d.Launches = append(d.Launches, Launch{Service: id, Revision: m.Revision, Attempt: m.Attempt})
			continue
		case !m.leaves():
			continue
		case r.Phase == Warming || r.Phase == Healthy || r.Phase == Unhealthy:
			d.Drains = append(d.Drains, Drain{Service: id, Replica: r.ID, Attempt: m.Attempt})
		}
		// It is quiet only once no new request can reach it.
		quiet := r.Outstanding == 0 && (r.Phase == Draining || r.Phase == Waiting)
		if !r.Terminating && (quiet || !p.now.Before(m.Deadline)) {
			d.Terminations = append(d.Terminations,
				Termination{Service: id, Replica: r.ID, Attempt: m.Attempt, Grace: stopGrace})
		}
	}
}

func (p *plan) outcome() Outcome {
	if p.healthy() > 0 {
		p.record.Served = true
	}
	if len(p.record.Members) == 0 {
		p.record.Members = nil
	}
	says := teller{p}
	state := says.state()
	return Outcome{Record: p.record, Changed: !reflect.DeepEqual(p.record, p.service.Record), State: state,
		Said: says.why(state), Rules: scaler{p}.states()}
}

// leastWanted orders members by who leaves first: the newest that is not healthy, then who has the least under way.
func (p *plan) leastWanted(a, b Member) int {
	if x, y := p.isHealthy(a), p.isHealthy(b); x != y {
		if y {
			return -1
		}
		return 1
	} else if x {
		if by := p.replicas[a.Attempt].Outstanding - p.replicas[b.Attempt].Outstanding; by != 0 {
			return by
		}
	}
	return b.Attempt - a.Attempt
}
