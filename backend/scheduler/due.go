package scheduler

import (
	"time"

	"slipway/backend/session"
)

// Due decides what does not depend on the machine, for one whose resources another scheduler has: which sessions end
// without having run, and which wait for a time, for other sessions or for their person's limit. due are the others, in
// order. The machine of the snapshot is not looked at.
func Due(s Snapshot, now time.Time) (due []session.ID, decided Schedule) {
	p := newPlanner(s, now)
	p.end()
	ended := len(p.made)
	line := p.order()
	outside := len(p.made)
	for _, q := range line {
		asked := p.asks(*q)
		if !p.overAllowance(*q, asked) {
			p.allowances.take(q.Owner, asked)
			due = append(due, q.Session)
		}
	}
	position(len(due), p.made[outside:], p.made[ended:outside])
	return due, p.schedule()
}

// With adds what another scheduler decided on the sessions that were due, in their order. What it says of others does
// not count, nor what it says of one twice. Those that go on waiting are before all others in line.
func (s Schedule) With(due []session.ID, given Schedule) Schedule {
	first := map[session.ID]Decision{}
	for _, d := range given.Decisions {
		if _, twice := first[d.Session]; !twice {
			first[d.Session] = d
		}
	}
	var made []Decision
	for _, id := range due {
		d, ok := first[id]
		if !ok {
			continue
		}
		if d.Wait != nil {
			d.Wait = new(*d.Wait) // the one that is given may be given again
		}
		made = append(made, d)
	}
	position(0, made)
	s.Decisions = append(made, s.Decisions...)
	if s.Next.IsZero() || !given.Next.IsZero() && given.Next.Before(s.Next) {
		s.Next = given.Next
	}
	return s
}
