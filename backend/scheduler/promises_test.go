package scheduler

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

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
		s.Machine.Devices = append(s.Machine.Devices, gpu.Device{UUID: gpu.UUID(fmt.Sprint("GPU-", i)), Model: "T",
			Index: i, Memory: 80 * gpu.GiB})
	}
	return s
}

func asks(name string, r gpu.Request) Request {
	return Request{Session: session.ID(name), Name: name,
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, GPU: r}
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
	parts := []gpu.Instance{{UUID: "MIG-0", Profile: "1g.40gb", Memory: 40 * gpu.GiB},
		{UUID: "MIG-1", Profile: "1g.40gb", Memory: 40 * gpu.GiB}}
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
	s.Promised = []Promise{{Session: "interactive", Name: "interactive",
		Grants: session.Grants{CPUs: []int{0}, Memory: 63 * gpu.GiB}}}
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

// shaken changes something of a machine under what is held of it.
func shaken(r *rand.Rand, m *Machine, made *int) {
	d := &m.Devices[r.IntN(len(m.Devices))]
	switch r.IntN(7) {
	case 0:
		d.Reserved += []gpu.Bytes{1, gpu.MiB, gpu.GiB}[r.IntN(3)]
	case 1:
		d.Reserved = 0
	case 2:
		d.Memory = []gpu.Bytes{0, 40 * gpu.GiB, 80 * gpu.GiB}[r.IntN(3)]
	case 3:
		d.Instances = nil
	case 4:
		d.Instances = nil
		for i := range 1 + r.IntN(3) {
			d.Instances = append(d.Instances, gpu.Instance{UUID: gpu.UUID(fmt.Sprint("MIG-", *made)),
				Profile: "1g.10gb", Memory: 10 * gpu.GiB, Slices: 250})
			*made += i % 2 // now and then two have had one name
		}
	case 5:
		d.Lost = nil
		if r.IntN(3) == 0 {
			d.Lost = &gpu.Loss{Why: "it fell off the bus"}
		}
	default:
		m.Unread = nil
		if r.IntN(3) == 0 {
			m.Unread = []gpu.UUID{d.UUID}
		}
	}
}

// Plans are made while the machine changes under them, with heads, sessions that
// go ahead, and a driver's book for some. Each is judged by its audit and by
// checkPlan, neither of which knows ledgers.
func TestPlansGiveNothingTwiceWhileTheMachineChanges(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 60
	}
	plans, placed, ahead, contradictions, made := 0, 0, 0, 0, 0
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 17))
		s := small(1 + r.IntN(3))
		for step := range 40 {
			for range r.IntN(3) {
				shaken(r, &s.Machine, &made)
			}
			s.Promised = slices.DeleteFunc(s.Promised, func(Promise) bool { return r.IntN(4) == 0 })
			for i := range 1 + r.IntN(4) {
				s.Queue = append(s.Queue, anyAsk(r, fmt.Sprintf("s%d-%d", step, i)))
			}
			s.Queue = s.Queue[max(0, len(s.Queue)-6):]
			s.Machine.Measured = nil
			for _, d := range s.Machine.Devices {
				if r.IntN(4) == 0 && len(d.Instances) == 0 { // of instances drivers tell nothing
					s.Machine.Measured = append(s.Machine.Measured,
						Measured{Device: d.UUID, Free: gpu.Bytes(r.IntN(80)) * gpu.GiB})
				}
			}
			plan := Plan(s, noon)
			checkPlan(t, s, plan)
			if t.Failed() {
				t.Fatalf("seed %d, plan %d: %s", seed, step, write(plan))
			}
			waits := false
			for _, d := range plan.Decisions {
				waits = waits || d.Wait != nil
				if d.Place != nil {
					if placed++; waits {
						ahead++
					}
				}
			}
			plans, contradictions = plans+1, contradictions+len(plan.Contradictions)
			s.holdPlan(plan)
		}
	}
	t.Logf("%d plans placed %d sessions, %d of them ahead of others, and met %d contradictions", plans, placed, ahead,
		contradictions)
	if placed < plans/4 || ahead < plans/50 || contradictions < plans/20 {
		t.Error("too little happened")
	}
}

func anyAsk(r *rand.Rand, name string) Request {
	q := asks(name, gpu.Request{})
	q.CPU, q.Memory = r.IntN(5), gpu.Bytes(r.IntN(4))*8*gpu.GiB
	switch r.IntN(6) {
	case 0:
		q.GPU.Devices = 1 + r.IntN(2)
	case 1:
		q.GPU.Memory = gpu.Bytes(1+r.IntN(60)) * gpu.GiB
	case 2:
		q.GPU.Profile, q.GPU.Count = "1g.10gb", 1+r.IntN(2)
	case 3, 4:
		q.GPU.Shares = gpu.Share(1+r.IntN(18)) * 100
	}
	if r.IntN(4) == 0 {
		q.Kernels = 2
	}
	if r.IntN(2) == 0 {
		q.Timeout = []time.Duration{Short / 2, Short, time.Hour}[r.IntN(3)]
	}
	return q
}
