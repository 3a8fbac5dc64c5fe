package scheduler

import (
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// reservation is what is kept for the head of the line.
type reservation struct {
	head    Request
	at      *time.Time        // when enough surely ends; nil: nobody knows
	after   *room             // what is left beside the head then; only where at is set
	devices map[gpu.UUID]bool // that the head will have then; only where at is set
	beside  *room             // what the head cannot use now; only where at is not set
	needs   session.Phrase    // what it asks for
	shut    bool              // the head waits for devices, so that none is given meanwhile
}

// ending is something that surely frees resources at a time.
type ending struct {
	at   time.Time
	free func(*room)
}

// reserve finds out when the head can surely start, and with what.
func (p *planner) reserve(head Request) *reservation {
	v := &reservation{head: head, needs: head.needs()}
	r := p.room.clone()
	for _, e := range p.endings(r) {
		e.free(r)
		grants := r.find(head, nil)
		if grants == nil || !r.take(head, grants, e.at) {
			continue
		}
		at := e.at
		v.at, v.after, v.devices = &at, r, map[gpu.UUID]bool{}
		for _, k := range grants {
			for _, g := range k.GPUs {
				v.devices[g.Device] = true
			}
		}
		return v
	}
	v.keep(p.room.clone(), p.now)
	return v
}

// endings lists what surely frees resources, in the order of time.
func (p *planner) endings(r *room) []ending {
	var list []ending
	for _, promise := range r.promised {
		if promise.Ends != nil {
			list = append(list, ending{later(*promise.Ends, p.now), func(r *room) { r.release(promise) }})
		}
	}
	for _, m := range r.machine.Measured {
		if m.Returned > 0 {
			list = append(list, ending{later(m.Settles, p.now), func(r *room) { r.settle(m) }})
		}
	}
	slices.SortStableFunc(list, func(a, b ending) int { return a.at.Compare(b.at) })
	return list
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// keep takes out of r everything that the head could use of it.
func (v *reservation) keep(r *room, now time.Time) {
	v.beside = r
	devices, ok := r.devices(v.head, nil)
	if ok && len(devices) > 0 {
		grants := make([]session.Grants, len(devices))
		for i := range grants {
			grants[i].GPUs = devices[i]
		}
		ok = r.take(v.head, grants, now)
	}
	v.shut = !ok
	r.free = r.free[min(len(r.free), v.head.cpus()):]
	r.memory -= min(max(0, r.memory), v.head.memory())
}

// goAhead finds what q can be given although the head waits, and says why that takes nothing from the head.
func (p *planner) goAhead(q Request) ([]session.Grants, string) {
	v := p.head
	if v.at == nil {
		return p.goBeside(q)
	}
	grants := p.room.find(q, nil)
	if grants == nil {
		return nil, ""
	}
	if q.Timeout > 0 && !p.now.Add(q.Timeout).After(*v.at) {
		return grants, fmt.Sprintf("It ends before %s can start, which is first in line.", p.headFor(q).English())
	}
	why := fmt.Sprintf("It fits beside %s, which is first in line and waits for more.", p.headFor(q).English())
	if v.take(q, grants, p.now) {
		return grants, why
	}
	if q.GPU.IsZero() {
		return nil, ""
	}
	if grants = p.room.find(q, v.devices); grants != nil && v.take(q, grants, p.now) {
		return grants, why
	}
	return nil, ""
}

// take gives grants to q in what is left beside the head when that has started, and reports whether they are there. Any
// CPUs will do for that.
func (v *reservation) take(q Request, grants []session.Grants, now time.Time) bool {
	r := v.after
	if q.cpus() > len(r.free) || q.memory() > r.memory {
		return false
	}
	total := Placement{Kernels: grants}.Total()
	for _, g := range total.GPUs {
		memory := memoryOn(total.GPUs, g.Device)
		if q.GPU.Memory == 0 {
			memory -= r.tolerance(memory)
		}
		if claim, measured := r.claims[g.Device]; measured && claim < memory {
			return false
		}
	}
	total.CPUs = slices.Clone(r.free[:q.cpus()])
	return r.take(q, []session.Grants{total}, now)
}

// goBeside is goAhead where nobody knows when the head can start.
func (p *planner) goBeside(q Request) ([]session.Grants, string) {
	v := p.head
	if q.Timeout > 0 && q.Timeout <= Short {
		if grants := p.room.find(q, nil); grants != nil {
			v.beside.lose(q, grants)
			return grants,
				fmt.Sprintf("It ends within %s, and when %s, which is first in line, can start is unknown.",
					session.Duration(Short), p.headFor(q).English())
		}
		return nil, ""
	}
	if v.shut && !q.GPU.IsZero() {
		return nil, ""
	}
	grants := v.beside.find(q, nil)
	if grants == nil {
		return nil, ""
	}
	for i := range grants {
		// What is left beside the head counts; which CPUs it is does not matter.
		grants[i].CPUs = p.room.free[i*q.CPU : (i+1)*q.CPU]
		grants[i].CPUs = slices.Sorted(slices.Values(grants[i].CPUs))
	}
	v.beside.lose(q, grants)
	return grants, fmt.Sprintf("It takes nothing that %s could use, which is first in line.", p.headFor(q).English())
}

// lose takes from r, of which the head's part is taken out already, what q was given. Devices may be the head's too:
// the session is short. They are closed to everybody else then.
func (r *room) lose(q Request, grants []session.Grants) {
	total := Placement{Kernels: grants}.Total()
	if len(total.GPUs) > 0 {
		r.ledger.Adopt(string(q.Session), total.GPUs)
		subtract(r.claims, total.GPUs)
	}
	r.free = r.free[min(len(r.free), q.cpus()):]
	r.memory = max(0, r.memory-q.memory())
}
