package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// end decides which sessions end without having run: because they waited too long, or because a session that they wait
// for did not succeed. Those that wait for such a session end with it.
func (p *planner) end() {
	for again := true; again; {
		again = false
		for _, q := range p.snapshot.Queue {
			if p.decisions[q.Session] != nil {
				continue
			}
			if end := p.endOf(q); end != nil {
				p.put(Decision{Session: q.Session, End: end})
				again = true
			}
		}
	}
	for _, q := range p.snapshot.Queue {
		if q.Deadline != nil && p.decisions[q.Session] == nil {
			p.lookAgain(*q.Deadline)
		}
	}
}

func (p *planner) endOf(q Request) *End {
	for _, d := range q.After {
		if how := p.failure(d); how.Say != "" {
			return &End{Reason: session.ReasonDependency, Cause: *session.Because(session.CodeDependencyFailed,
				session.Say("dependencyFailed", session.Fill("name", d.Name), as("how", how)),
				session.Say("dependencyFailedHint"))}
		}
	}
	if q.Deadline != nil && !p.now.Before(*q.Deadline) {
		return &End{Reason: session.ReasonPendingTimeout, Cause: *session.Because(session.CodeExpired,
			session.Say("waitedOut"), session.Say("waitedOutHint"))}
	}
	return nil
}

func (p *planner) failure(d Dependency) session.Phrase {
	if other := p.decisions[d.Session]; other != nil && other.End != nil {
		return session.Say("wasCancelled", session.Fill("reason", string(other.End.Reason)))
	}
	switch {
	case d.Status == "":
		return session.Say("isUnknown")
	case !d.Status.Terminal() || d.Result == session.ResultSuccess:
		return session.Phrase{}
	case d.Status == session.Cancelled:
		return session.Say("wasCancelled", session.Fill("reason", string(d.Reason)))
	}
	return session.Say("endedBadly", session.Fill("reason", string(d.Reason)))
}

// order returns who is in line, in order, and decides that the others wait.
func (p *planner) order() []*Request {
	queue := p.snapshot.Queue
	places := make([]place, 0, len(queue))
	for i := range queue {
		places = append(places, place{queue[i].Priority, i})
	}
	slices.SortFunc(places, func(a, b place) int { return cmp.Or(b.priority-a.priority, a.arrival-b.arrival) })
	line := make([]*Request, 0, len(queue))
	for _, at := range places {
		q := &queue[at.arrival]
		if p.decisions[q.Session] != nil {
			continue
		}
		if w, ok := p.outside(*q); ok {
			p.wait(*q, w)
			continue
		}
		line = append(line, q)
	}
	return line
}

type place struct{ priority, arrival int }

func (p *planner) outside(q Request) (session.Wait, bool) {
	if q.NotBefore != nil && q.NotBefore.After(p.now) {
		at := *q.NotBefore
		p.lookAgain(at)
		when := session.Moment("at", at)
		w := waitFor(session.CodeWaitStart, spoken(session.Say("notBefore", when)))
		w.Until, w.Estimate = &at, new(session.Say("estimateEarliest", when))
		return w, true
	}
	var open []session.Phrase
	for _, d := range q.After {
		if d.Result != session.ResultSuccess {
			open = append(open, session.Say("dependent", as("name", plain(d.Name)),
				as("status", session.Say("status-"+string(d.Status)))))
		}
	}
	if len(open) > 0 {
		return waitFor(session.CodeWaitDependency,
				spoken(count("dependency", len(q.After), as("open", number(len(open))),
					as("sessions", list(", ", open))))),
			true
	}
	if said := p.never(q); len(said) > 0 {
		return waitFor(session.CodeWaitMachine, said...), true
	}
	if said := p.neverAllowed(q); len(said) > 0 {
		return waitFor(session.CodeWaitLimit, said...), true
	}
	return session.Wait{}, false
}

func validText(q Request) string {
	var parts []string
	if q.NotBefore != nil {
		parts = append(parts, "Its start time "+q.NotBefore.UTC().Format(time.DateTime)+" UTC has come.")
	}
	if len(q.After) > 0 {
		text := "The session that it waited for has ended in success."
		if n := len(q.After); n > 1 {
			text = fmt.Sprintf("All %d sessions that it waited for have ended in success.", n)
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "It waits for no time and no other session, and this machine is large enough."
	}
	return strings.Join(parts, " ")
}

// never explains why the machine can never hold q; empty if it can.
func (p *planner) never(q Request) []*sentence {
	if p.room == nil {
		return nil
	}
	m := p.snapshot.Machine
	if q.cpus() > len(m.CPUs) || q.memory() > m.Memory {
		return []*sentence{spoken(session.Say("neverAmount", as("cpus", count("cpu", q.cpus())),
			as("memory", plain(q.memory().String())), as("all", number(len(m.CPUs))),
			as("allMemory", plain(m.Memory.String()))))}
	}
	if q.GPU.IsZero() {
		return nil
	}
	said, known := p.impossible[q.part()]
	if !known {
		if why := p.neverDevices(q, needText(q)); why.Say != "" {
			said = []*sentence{spoken(why)}
		}
		p.impossible[q.part()] = said
	}
	return said
}

// neverDevices explains why the devices of the machine can never satisfy q; empty if they can.
func (p *planner) neverDevices(q Request, need session.Phrase) session.Phrase {
	m := p.snapshot.Machine
	if len(m.Devices) == 0 {
		if m.NoDevices != "" {
			return session.Say("neverFound", as("need", need), as("why", plain(strings.TrimSuffix(m.NoDevices, "."))))
		}
		return session.Say("neverNone", as("need", need))
	}
	if p.empty == nil {
		empty, err := gpu.NewLedger(m.Devices, m.Giving)
		if err != nil {
			return session.Say("neverGiven")
		}
		p.empty = empty
	}
	bare := &room{machine: m, ledger: p.empty, unfit: map[part]bool{}}
	if _, ok := bare.devices(q, nil); ok {
		return session.Phrase{}
	}
	if gone := lostText(m.Devices); len(gone) > 0 && ShareOf(m, q.GPU, 1) > 0 {
		return session.Say("neverLost", as("need", need), as("lost", list("; ", gone)))
	}
	proposal, err := p.empty.Propose(q.GPU)
	switch {
	case err != nil:
		return session.Say("neverOther", as("need", need), as("why", plain(err.Error())))
	case proposal.Rounded != nil && proposal.Rounded.Less:
		return session.Say("neverOther", as("need", need), as("why", plain(proposal.Rounded.Why)))
	}
	return session.Say("neverDevices", as("need", need))
}

// lostText names the lost devices: "GPU 0 is lost: it fell off the bus".
func lostText(devices []gpu.Device) (texts []session.Phrase) {
	for _, d := range devices {
		if d.Lost != nil {
			texts = append(texts, session.Say("isLost", as("name", plain(deviceName(d))), as("why", plain(d.Lost.Why))))
		}
	}
	return texts
}
