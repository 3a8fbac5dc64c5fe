package scheduler

import (
	"fmt"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// An audit is worth something only if it refuses what must not be.
func TestTheAuditRefusesWhatAnotherHas(t *testing.T) {
	part := gpu.Instance{UUID: "MIG-0", Profile: "1g.40gb", Memory: 40 * gpu.GiB}
	half := gpu.Grant{Device: "GPU-0", Share: 500, Memory: 40 * gpu.GiB}
	whole := gpu.Grant{Device: "GPU-0", Share: gpu.WholeDevice, Memory: 80 * gpu.GiB, Whole: true}
	first := gpu.Grant{Device: "GPU-0", Instance: part.UUID, Share: 500, Memory: part.Memory}
	devices := func(g ...gpu.Grant) session.Grants { return session.Grants{GPUs: g} }
	for name, c := range map[string]struct {
		change      func(*Machine)
		held, given session.Grants
		fine        bool
	}{
		"the other half":               {held: devices(half), given: devices(half), fine: true},
		"all of it, with nothing held": {given: devices(whole), fine: true},
		"more than the other half": {held: devices(half),
			given: devices(gpu.Grant{Device: "GPU-0", Share: 600, Memory: gpu.GiB})},
		"two halves beside a half": {held: devices(half), given: devices(half, half)},
		"all of it beside a half":  {held: devices(half), given: devices(whole)},
		"a half beside all of it":  {held: devices(whole), given: devices(half)},
		"more memory than is left": {held: devices(half),
			given: devices(gpu.Grant{Device: "GPU-0", Share: 100, Memory: 41 * gpu.GiB})},
		"another device":      {given: devices(gpu.Grant{Device: "GPU-1", Share: 100})},
		"nothing of a device": {given: devices(gpu.Grant{Device: "GPU-0"})},
		"a lost device": {change: func(m *Machine) { m.Devices[0].Lost = &gpu.Loss{} },
			given: devices(half)},
		"a device that is not read": {change: func(m *Machine) { m.Unread = []gpu.UUID{"GPU-0"} },
			given: devices(half)},
		"an excluded device": {change: func(m *Machine) { m.Giving.Exclude = []gpu.UUID{"GPU-0"} },
			given: devices(half)},
		"an instance": {change: func(m *Machine) { m.Devices[0].Instances = []gpu.Instance{part} },
			given: devices(first), fine: true},
		"an instance twice": {change: func(m *Machine) { m.Devices[0].Instances = []gpu.Instance{part} },
			given: devices(first, first)},
		"an instance that is held": {change: func(m *Machine) { m.Devices[0].Instances = []gpu.Instance{part} },
			held: devices(first), given: devices(first)},
		"an instance that is not there": {given: devices(first)},
		"an instance beside a share": {change: func(m *Machine) { m.Devices[0].Instances = []gpu.Instance{part} },
			held: devices(half), given: devices(first)},
		"a share beside an instance": {held: devices(first), given: devices(half)},
		"a share of a divided device": {change: func(m *Machine) { m.Devices[0].Instances = []gpu.Instance{part} },
			given: devices(half)},
		"a CPU": {held: session.Grants{CPUs: []int{1}}, given: session.Grants{CPUs: []int{2}},
			fine: true},
		"a CPU that is held": {held: session.Grants{CPUs: []int{1}},
			given: session.Grants{CPUs: []int{1}}},
		"a CPU twice":             {given: session.Grants{CPUs: []int{1, 1}}},
		"a CPU that is not there": {given: session.Grants{CPUs: []int{8}}},
		"more memory than the machine's": {held: session.Grants{Memory: 60 * gpu.GiB},
			given: session.Grants{Memory: 5 * gpu.GiB}},
		"a device whose memory grew less": {change: func(m *Machine) { m.Devices[0].Reserved = gpu.GiB },
			held: devices(half), given: devices(half)},
	} {
		t.Run(name, func(t *testing.T) {
			s := small(1)
			if c.change != nil {
				c.change(&s.Machine)
			}
			s.Promised = []Promise{{Session: "holder", Grants: c.held}}
			if wrong := newAuditor(s).accept("new", c.given); (wrong == "") != c.fine {
				t.Errorf("the audit says %q", wrong)
			}
		})
	}
}

// What a session holds in spite of the machine is told, and nothing of it given.
func TestAPlanTellsWhatContradictsTheMachine(t *testing.T) {
	s := small(1)
	half := []gpu.Grant{{Device: "GPU-0", Share: 500, Memory: 40 * gpu.GiB}}
	for i := range 2 {
		s.Promised = append(s.Promised, Promise{Session: session.ID(fmt.Sprint("s", i)),
			Grants: session.Grants{GPUs: half}})
	}
	if plan := Plan(s, noon); len(plan.Contradictions) > 0 {
		t.Errorf("two halves are told as %q", plan.Contradictions)
	}
	s.Machine.Devices[0].Reserved = gpu.MiB
	want := "GPU 0 gives nothing further: 80 GiB of memory is allocated, 1 MiB more than is usable now, held by s0 " +
		"(0.5), s1 (0.5)"
	if plan := Plan(s, noon); len(plan.Contradictions) != 1 || plan.Contradictions[0] != want {
		t.Errorf("it is told as %q", plan.Contradictions)
	}
}
