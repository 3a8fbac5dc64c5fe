package scheduler

import (
	"fmt"
	"slices"

	"slipway/backend/session"
	"slipway/gpu"
)

// auditor checks a plan by other means than those that made it: it counts what sessions hold, then each placement, and
// accepts none that takes what another has. It shares nothing with ledgers, rooms and reservations, so that a mistake
// there allocates nothing twice. Every plan is audited.
type auditor struct {
	machine Machine
	cpus    map[int]session.ID // who holds each; empty: not held
	memory  gpu.Bytes          // not held
	devices map[gpu.UUID]*tally
}

type tally struct {
	device    gpu.Device
	closed    string                  // why none of it may be allocated
	share     gpu.Share               // not by instance
	memory    gpu.Bytes               // not by instance
	holders   []session.ID            // not by instance
	whole     bool                    // by the only one of holders
	instances map[gpu.UUID]session.ID // who holds each
}

func newAuditor(s Snapshot) *auditor {
	a := &auditor{machine: s.Machine, memory: s.Machine.Memory, cpus: make(map[int]session.ID, len(s.Machine.CPUs)),
		devices: make(map[gpu.UUID]*tally, len(s.Machine.Devices))}
	for _, cpu := range s.Machine.CPUs {
		a.cpus[cpu] = ""
	}
	for _, d := range s.Machine.Devices {
		t := &tally{device: d, instances: map[gpu.UUID]session.ID{}}
		switch {
		case d.Lost != nil:
			t.closed = "is lost"
		case slices.Contains(s.Machine.Unread, d.UUID):
			t.closed = "cannot be read"
		case slices.Contains(s.Machine.Giving.Exclude, d.UUID):
			t.closed = "is excluded"
		}
		a.devices[d.UUID] = t
	}
	for _, p := range s.Promised {
		a.count(p.Session, p.Grants)
	}
	return a
}

func (a *auditor) count(id session.ID, g session.Grants) {
	for _, cpu := range g.CPUs {
		a.cpus[cpu] = id
	}
	a.memory -= g.Memory
	for _, g := range g.GPUs {
		t := a.devices[g.Device]
		switch {
		case t == nil:
		case g.Instance != "":
			t.instances[g.Instance] = id
		default:
			// What another program writes of what it holds may be anything.
			t.share, t.memory = t.share+max(0, g.Share), t.memory+min(max(0, g.Memory), t.device.Memory)
			t.whole, t.holders = t.whole || g.Whole, append(t.holders, id)
		}
	}
}

// accept counts a placement, or explains why it takes what does not exist or belongs to another.
func (a *auditor) accept(id session.ID, grants session.Grants) (wrong string) {
	for i, cpu := range grants.CPUs {
		holder, known := a.cpus[cpu]
		if !known || holder != "" || slices.Contains(grants.CPUs[:i], cpu) {
			return fmt.Sprintf("CPU %d does not exist or is allocated to %q", cpu, holder)
		}
	}
	if grants.Memory > a.memory {
		return fmt.Sprintf("%s of memory is free and not %s", a.memory, grants.Memory)
	}
	var before []gpu.Grant
	for _, g := range grants.GPUs {
		t := a.devices[g.Device]
		if t == nil {
			return fmt.Sprintf("unknown device %s", g.Device)
		}
		if wrong := t.lacks(g, before); wrong != "" {
			return fmt.Sprintf("GPU %d %s", t.device.Index, wrong)
		}
		before = append(before, g)
	}
	a.count(id, grants)
	return ""
}

// lacks explains why g cannot be allocated besides what is held and the other grants of the same placement.
func (t *tally) lacks(g gpu.Grant, with []gpu.Grant) string {
	share, memory, shared, divided := t.share, t.memory, len(t.holders) > 0, len(t.instances) > 0
	whole := t.whole
	for _, other := range with {
		switch {
		case other.Device != g.Device:
		case other.Instance != "":
			if divided = true; other.Instance == g.Instance {
				return fmt.Sprintf("allocates its instance %s twice", g.Instance)
			}
		default:
			share, memory, shared, whole = share+other.Share, memory+other.Memory, true, whole || other.Whole
		}
	}
	if t.closed != "" {
		return t.closed
	}
	if g.Instance != "" {
		holder, held := t.instances[g.Instance]
		known := slices.ContainsFunc(t.device.Instances, func(i gpu.Instance) bool { return i.UUID == g.Instance })
		if held || shared || !known {
			return fmt.Sprintf("has no instance %s to give: it is held by %q, or the device by %v",
				g.Instance, holder, t.holders)
		}
		return ""
	}
	switch {
	case g.Share <= 0 || g.Memory < 0:
		return fmt.Sprintf("has no share of %s", g.Share)
	case divided || len(t.device.Instances) > 0:
		return "is given by MIG instance only"
	case whole || g.Whole && shared || share+g.Share > gpu.WholeDevice:
		return fmt.Sprintf("is held by %v, %s of it, and cannot give %s more", t.holders, share, g.Share)
	case t.device.Memory > 0 && memory+g.Memory > t.device.Usable():
		return fmt.Sprintf("has %s of %s of memory held and cannot give %s more", memory, t.device.Usable(), g.Memory)
	}
	return ""
}

// audit takes back the placements that allocate what another session has. There are none unless this package is wrong.
func (p *planner) audit() (refused []string) {
	var a *auditor
	for i := range p.made {
		d := &p.made[i]
		if d.Place == nil {
			continue
		}
		if a == nil {
			a = newAuditor(p.snapshot)
		}
		if wrong := a.accept(d.Session, d.Place.Total()); wrong != "" {
			refused = append(refused, fmt.Sprintf("%s is not placed: %s", d.Session, wrong))
			d.Place, d.Wait = nil, new(waitFor(session.CodeWaitBooks, spoken(session.Say("booksWrong"))))
		}
	}
	return refused
}
