package scheduler

import (
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Plan decides for each session of the queue. The same snapshot and time give the same plan.
func Plan(s Snapshot, now time.Time) Schedule {
	p := newPlanner(s, now)
	p.room = newRoom(s)
	p.end()
	ended := len(p.made)
	line := p.order()
	outside := len(p.made)
	for i, q := range line {
		p.decide(*q, i, len(line))
	}
	refused := p.audit()
	position(0, p.made[outside:], p.made[ended:outside])
	p.estimate(line)
	p.bound()
	schedule := p.schedule()
	schedule.Refused, schedule.Contradictions = refused, p.room.contradictions
	return schedule
}

// Ends decides which sessions of the queue end without having run, and when to look again, without the machine.
func Ends(s Snapshot, now time.Time) Schedule {
	p := newPlanner(s, now)
	p.end()
	return p.schedule()
}

// schedule is what is decided so far, in the order of the queue.
func (p *planner) schedule() Schedule {
	schedule := Schedule{Decisions: make([]Decision, 0, len(p.made)), Next: p.next}
	for _, q := range p.snapshot.Queue {
		if d := p.decisions[q.Session]; d != nil {
			schedule.Decisions = append(schedule.Decisions, *d)
		}
	}
	return schedule
}

type planner struct {
	snapshot   Snapshot
	now        time.Time
	next       time.Time
	room       *room // nil: the machine does not count
	decisions  map[session.ID]*Decision
	made       []Decision // in order; of the capacity of the queue, as waits is, since others point into it
	waits      []session.Wait
	head       *reservation         // of the first that does not fit
	impossible map[part][]*sentence // why the machine can never hold it; empty: it can
	empty      *gpu.Ledger          // nothing is allocated in it
	allowances *allowances
	shares     map[part]gpu.Share // what is asked of devices as a share of them
}

func newPlanner(s Snapshot, now time.Time) *planner {
	n := len(s.Queue)
	return &planner{snapshot: s, now: now, decisions: make(map[session.ID]*Decision, n), made: make([]Decision, 0, n),
		waits: make([]session.Wait, 0, n), impossible: map[part][]*sentence{}, allowances: newAllowances(s),
		shares: map[part]gpu.Share{}}
}

func (p *planner) lookAgain(at time.Time) {
	if p.next.IsZero() || at.Before(p.next) {
		p.next = at
	}
}

func (p *planner) put(d Decision) *Decision {
	p.made = append(p.made, d)
	made := &p.made[len(p.made)-1]
	p.decisions[d.Session] = made
	return made
}

func (p *planner) wait(q Request, w session.Wait) *Decision {
	p.waits = append(p.waits, w)
	return p.put(Decision{Session: q.Session, Wait: &p.waits[len(p.waits)-1]})
}

func (p *planner) decide(q Request, ahead, line int) {
	asked := p.asks(q)
	if p.overAllowance(q, asked) {
		return
	}
	if p.head == nil {
		const free = "Everything it needs is free, and no session waits before it."
		if grants := p.room.find(q, nil); grants != nil && p.place(q, grants, free, ahead, line) {
			return
		}
		p.head = p.reserve(q)
		p.allowances.keep(q, asked)
		p.wait(q, p.room.explain(q)).Wait.Until = p.head.at
		p.watch(q)
		return
	}
	if grants, why := p.goAhead(q); grants != nil && p.place(q, grants, why, ahead, line) {
		return
	}
	if p.room.find(q, nil) != nil {
		p.wait(q, p.waitTurn(q))
		return
	}
	p.wait(q, p.room.explain(q))
	p.watch(q)
}

// watch asks for another plan soon if q waits for a measured device: no event tells when a foreign process frees some.
func (p *planner) watch(q Request) {
	const soon = 2 * time.Second
	if !q.GPU.IsZero() && len(p.snapshot.Machine.Measured) > 0 {
		p.lookAgain(p.now.Add(soon))
	}
}

// place allocates grants to q for the rest of this plan; false, with no decision, if they are not free after all.
func (p *planner) place(q Request, grants []session.Grants, why string, ahead, line int) bool {
	total := Placement{Kernels: grants}.Total()
	if p.overAllowance(q, heldBy(total)) {
		return true // the devices at hand are smaller ones, of which it takes a larger share
	}
	if !p.room.take(q, grants, p.now) {
		return false
	}
	p.allowances.hold(q.Owner, total)
	placement := Placement{Kernels: grants, Steps: []Step{
		{StepOrder, fmt.Sprintf("Number %d of %d in line, with priority %d.", ahead+1, line, q.Priority)},
		{StepValidate, validText(q)},
		{StepChoose, why},
		{StepGrant, p.grantText(grants)},
	}}
	p.put(Decision{Session: q.Session, Place: &placement})
	return true
}

// position gives those that wait their positions after the last of others. The decisions are in the order in which they
// were made.
func position(last int, lists ...[]Decision) {
	for _, made := range lists {
		for _, d := range made {
			if d.Wait != nil {
				last++
				d.Wait.Position = last
			}
		}
	}
}
