package scheduler

import (
	"fmt"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// small is a machine with so many devices, 8 CPUs and nothing in it.
func small(devices int) Snapshot {
	s := Snapshot{Machine: Machine{Memory: 64 * gpu.GiB}}
	for i := range 8 {
		s.Machine.CPUs = append(s.Machine.CPUs, i)
	}
	for i := range devices {
		s.Machine.Devices = append(s.Machine.Devices, gpu.Device{UUID: gpu.UUID(fmt.Sprint("GPU-", i)), Model: "T", Index: i, Memory: 80 * gpu.GiB})
	}
	return s
}

func asks(name string, r gpu.Request) Request {
	return Request{Session: session.ID(name), Name: name, CPU: 1, Memory: gpu.GiB, GPU: r}
}

// holdPlan makes what a plan places held in the next snapshot.
func (s *Snapshot) holdPlan(plan Schedule) {
	var queue []Request
	for i, d := range plan.Decisions {
		if d.Place == nil {
			queue = append(queue, s.Queue[i])
			continue
		}
		s.Promised = append(s.Promised, Promise{Session: d.Session, Name: s.Queue[i].Name, Grants: d.Place.Total()})
	}
	s.Queue = queue
}

// The first has a whole device, the driver keeps one MiB more for itself, and the
// second asks for a whole device.
func TestADeviceIsNotGivenTwiceWhenItsDriverKeepsMore(t *testing.T) {
	s := small(1)
	s.Queue = []Request{asks("first", gpu.Request{Devices: 1})}
	s.holdPlan(Plan(s, noon))
	s.Machine.Devices[0].Reserved += gpu.MiB
	s.Queue = []Request{asks("second", gpu.Request{Devices: 1})}
	plan := Plan(s, noon)
	checkPlan(t, s, plan)
	if d := plan.Decisions[0]; d.Place != nil {
		t.Errorf("the second is given %+v", d.Place.Total().GPUs)
	}
}

// A device that was divided into instances while sessions hold shares of it, or
// that is one again while they hold instances, gives nothing to anybody else.
func TestADeviceDividedWhileItIsHeldIsNotGivenTwice(t *testing.T) {
	parts := []gpu.Instance{{UUID: "MIG-0", Profile: "1g.40gb", Memory: 40 * gpu.GiB}, {UUID: "MIG-1", Profile: "1g.40gb", Memory: 40 * gpu.GiB}}
	for name, c := range map[string]struct {
		before, after []gpu.Instance
		first, second gpu.Request
	}{
		"0.7, then an instance": {nil, parts, gpu.Request{Shares: 700}, gpu.Request{Profile: "1g.40gb"}},
		"an instance, then 0.7": {parts, nil, gpu.Request{Profile: "1g.40gb"}, gpu.Request{Shares: 700}},
	} {
		t.Run(name, func(t *testing.T) {
			s := small(1)
			s.Machine.Devices[0].Instances = c.before
			s.Queue = []Request{asks("first", c.first)}
			s.holdPlan(Plan(s, noon))
			s.Machine.Devices[0].Instances = c.after
			s.Queue = []Request{asks("second", c.second), asks("third", c.second)}
			plan := Plan(s, noon)
			for _, d := range plan.Decisions {
				if d.Place != nil {
					t.Errorf("%s is given %+v", d.Session, d.Place.Total().GPUs)
				}
			}
		})
	}
}

// The head lacks memory of the machine. A short session goes ahead of it onto
// the device that is kept for it, and one that asks for no memory comes after.
func TestWhatGoesBesideTheHeadIsNotGivenTwice(t *testing.T) {
	s := small(1)
	s.Promised = []Promise{{Session: "interactive", Name: "interactive", Grants: session.Grants{CPUs: []int{0}, Memory: 63 * gpu.GiB}}}
	head := asks("head", gpu.Request{Shares: 500})
	head.Memory = 32 * gpu.GiB
	short := asks("short", gpu.Request{Shares: 700})
	short.Timeout = Short
	none := asks("none", gpu.Request{Shares: 500})
	none.Memory = 0
	s.Queue = []Request{head, short, none}
	plan := Plan(s, noon)
	checkPlan(t, s, plan)
	if plan.Decisions[1].Place == nil {
		t.Error("the short session does not go ahead")
	}
}
