package scheduler

import (
	"fmt"
	"strings"

	"slipway/gpu"
)

// never says why the machine can never hold q, or nothing where it can.
func (p *planner) never(q Request) string {
	m := p.snapshot.Machine
	if q.cpus() > len(m.CPUs) || q.memory() > m.Memory {
		return fmt.Sprintf("Needs %s and %s of memory, and this machine has %d and %s.", plural(q.cpus(), "CPU", "CPUs"), q.memory(), len(m.CPUs), m.Memory)
	}
	if q.GPU.IsZero() {
		return ""
	}
	text, known := p.impossible[q.part()]
	if !known {
		text = p.neverDevices(q)
		p.impossible[q.part()] = text
	}
	return text
}

func (p *planner) neverDevices(q Request) string {
	m := p.snapshot.Machine
	if len(m.Devices) == 0 {
		text := "Needs " + needText(q) + ", and this machine has no devices."
		if m.NoDevices != "" {
			text = "Needs " + needText(q) + ", and no devices are found: " + strings.TrimSuffix(m.NoDevices, ".") + "."
		}
		return text
	}
	if p.empty == nil {
		// A configuration that makes no ledger makes none of the plan either.
		p.empty, _ = gpu.NewLedger(m.Devices, m.Giving)
	}
	if p.empty == nil {
		return "Devices cannot be given as they are configured."
	}
	bare := &room{machine: m, ledger: p.empty, unfit: map[part]bool{}}
	if _, ok := bare.devices(q, nil); ok {
		return ""
	}
	if gone := lostText(m.Devices); gone != "" && ShareOf(m, q.GPU, 1) > 0 {
		return "Needs " + needText(q) + ", and " + gone + "."
	}
	proposal, err := p.empty.Propose(q.GPU)
	switch {
	case err != nil:
		return "Needs " + needText(q) + ". " + err.Error()
	case proposal.Rounded != nil && proposal.Rounded.Less:
		return "Needs " + needText(q) + ". " + proposal.Rounded.Why
	}
	return "Needs " + needText(q) + ", and this machine does not have that many devices."
}

// lostText says which devices are lost: "GPU 0 is lost: it fell off the bus".
func lostText(devices []gpu.Device) string {
	var texts []string
	for _, d := range devices {
		if d.Lost != nil {
			texts = append(texts, fmt.Sprintf("%s is lost: %s", deviceName(d), d.Lost.Why))
		}
	}
	return strings.Join(texts, "; ")
}
