package scheduler

import (
	"slipway/backend/session"
	"slipway/gpu"
)

// lacks is what a room has too little of for a request.
type lacks struct{ cpus, memory, devices bool }

func (r *room) lacks(q Request) lacks {
	_, ok := r.devices(q, nil)
	return lacks{q.cpus() > len(r.free), q.memory() > r.memory, !ok}
}

// freed are the promises with something that is lacking, in the order of their expected ends.
type freed struct {
	lacks lacks
	by    []Promise
}

func (f *freed) add(p Promise) {
	if f.lacks.cpus && len(p.Grants.CPUs) > 0 || f.lacks.memory && p.Grants.Memory > 0 ||
		f.lacks.devices && len(p.Grants.GPUs) > 0 {
		f.by = append(f.by, p)
	}
}

// amounts are what is freed of what q lacks.
func (f *freed) amounts(q Request) session.Phrase {
	var parts []session.Phrase
	var total session.Grants
	for _, p := range f.by {
		total = total.Plus(p.Grants)
	}
	if f.lacks.cpus && len(total.CPUs) > 0 {
		parts = append(parts, count("cpu", len(total.CPUs)))
	}
	if f.lacks.memory && total.Memory > 0 {
		parts = append(parts, session.Say("memory", as("amount", plain(total.Memory.String()))))
	}
	if f.lacks.devices && len(total.GPUs) > 0 {
		parts = append(parts, devicesFreed(q.GPU, total.GPUs))
	}
	return list(", ", parts)
}

// devicesFreed is how much grants have of devices, as it is asked for.
func devicesFreed(asked gpu.Request, grants []gpu.Grant) session.Phrase {
	var share gpu.Share
	var memory gpu.Bytes
	instances := 0
	for _, g := range grants {
		share, memory = share+g.Share, memory+g.Memory
		if g.Instance != "" {
			instances++
		}
	}
	switch {
	case asked.Profile != "" && instances > 0:
		return count("instance", instances, as("profile", plain(asked.Profile)))
	case asked.Memory > 0:
		return session.Say("vram", as("amount", plain(memory.String())))
	case share%gpu.WholeDevice == 0:
		return count("gpus", int(share/gpu.WholeDevice))
	}
	return session.Say("gpuShare", as("share", plain(share.String())))
}

// tell adds to the reason of q who frees enough, and when. The last one in by completes it.
func (r *room) tell(w *session.Wait, q Request, by freed, key string, at session.Phrase) {
	if len(by.by) == 0 || w.Code != session.CodeWaitResources {
		return
	}
	last := by.by[len(by.by)-1]
	name := nameFor(r.viewer(q.Owner), last.Owner, last.Name)
	switch {
	case name.Say != "":
		name = session.Say("anothersFirst")
	case last.Owner != q.Owner && last.Owner != "" && q.Owner != "":
		name = session.Say("anothersNamed", as("name", name))
	}
	more := len(by.by) - 1
	if more > 0 {
		key += "More"
	}
	said := count(key, more, as("name", name), as("amount", by.amounts(q)), at)
	lead := len(list(" ", w.Said).English())
	w.Message = w.Message[:lead] + " " + said.English() + w.Message[lead:]
	w.Said = append(w.Said[:len(w.Said):len(w.Said)], said)
}

// bound tells the head when it starts at the latest, if nothing else is known.
func (p *planner) bound() {
	if p.head == nil || p.head.at == nil {
		return
	}
	w := p.decisions[p.head.head.Session].Wait
	if w == nil || w.Start != nil || w.Code == session.CodeWaitSettle { // which another program may prolong
		return
	}
	w.Estimate = new(session.Say("estimateLatest", p.head.latest))
	p.room.tell(w, p.head.head, p.head.freed, "freesLatest", p.head.latest)
}
