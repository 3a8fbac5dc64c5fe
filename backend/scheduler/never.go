package scheduler

import (
	"strings"

	"slipway/backend/session"
	"slipway/gpu"
)

// never says why the machine can never hold q, or nothing where it can.
func (p *planner) never(q Request) []sentence {
	m := p.snapshot.Machine
	if q.cpus() > len(m.CPUs) || q.memory() > m.Memory {
		return []sentence{spoken(session.Say("neverAmount", as("cpus", count("cpu", q.cpus())),
			as("memory", plain(q.memory().String())), as("all", number(len(m.CPUs))),
			as("allMemory", plain(m.Memory.String()))))}
	}
	if q.GPU.IsZero() {
		return nil
	}
	said, known := p.impossible[q.part()]
	if !known {
		if why := p.neverDevices(q, needText(q)); why.Say != "" {
			said = []sentence{spoken(why)}
		}
		p.impossible[q.part()] = said
	}
	return said
}

// neverDevices says why the devices of the machine can never make up a need.
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

// lostText says which devices are lost: "GPU 0 is lost: it fell off the bus".
func lostText(devices []gpu.Device) (texts []session.Phrase) {
	for _, d := range devices {
		if d.Lost != nil {
			texts = append(texts, session.Say("isLost", as("name", plain(deviceName(d))), as("why", plain(d.Lost.Why))))
		}
	}
	return texts
}
