package nvml

import (
	"fmt"
	"slices"
	"strings"

	"slipway/gpu"
)

// ends says in which way a device cannot be used any more of which a call tells this; empty where the loss is of that
// call only.
func (l loss) ends() gpu.LossKind {
	switch {
	case l.Code == codeLost, l.Code == codeNoDevice:
		return gpu.LossFallen
	case l.Code == codeReset:
		return gpu.LossReset
	case l.Code == codeOmitted && (l.Call == "" || strings.HasPrefix(l.Device, "#")):
		return gpu.LossSilent
	}
	return ""
}

// gone are the devices of the last inventory that cannot be used now.
func (s *Source) gone(a answer) (gone []gpu.LostDevice) {
	for _, d := range s.known {
		if slices.ContainsFunc(a.Reading.Devices, func(r deviceReading) bool { return r.UUID == string(d.UUID) }) {
			continue
		}
		if l := s.lossOf(d, a.Lost); l.Kind != "" {
			gone = append(gone, gpu.LostDevice{UUID: d.UUID, Loss: l})
		}
	}
	return gone
}

// lossOf says in which way a device is lost that was not read. Where something else went wrong with it, or with one
// whose name the driver did not tell, it may be there: then the kind is empty.
func (s *Source) lossOf(d gpu.Device, losses []loss) gpu.Loss {
	said := false
	for _, l := range losses {
		nameless := strings.HasPrefix(l.Device, "#")
		if l.Device != string(d.UUID) && !nameless {
			continue
		}
		said = true
		if nameless && l.Device != fmt.Sprintf("#%d", d.Index) {
			continue
		}
		switch kind := l.ends(); kind {
		case gpu.LossFallen:
			return gpu.Loss{Kind: kind, Why: "it fell off the bus"}
		case gpu.LossReset:
			return gpu.Loss{Kind: kind, Why: "it must be reset"}
		case gpu.LossSilent:
			a, _ := s.avoids(l)
			return gpu.Loss{Kind: kind, Why: a.why}
		}
	}
	if said {
		return gpu.Loss{}
	}
	return gpu.Loss{Kind: gpu.LossUnlisted, Why: "the driver does not list it any more"}
}

// missing names the lost devices of which nothing else is said.
func (s *Source) missing(gone []gpu.LostDevice) (lost []string) {
	for _, g := range gone {
		if g.Kind == gpu.LossUnlisted {
			lost = append(lost, s.name(string(g.UUID))+": "+g.Why)
		}
	}
	return lost
}
