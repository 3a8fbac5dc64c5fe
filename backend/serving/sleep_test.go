package serving

import (
	"strings"
	"testing"
	"time"

	"slipway/gpu"

	"slipway/backend/session"
)

func sleepy(phases ...Phase) Service {
	s := serve(phases...)
	s.Sleep = Sleep{After: sec(60)}
	return s
}

func TestAServiceSleepsAndWakes(t *testing.T) {
	s := sleepy(Healthy, Healthy)
	s.Traffic.Last = at(40)
	s.expect(t, at(99), Ready, "", "")
	s.expect(t, at(100), Asleep, "drain 1, drain 2", "No request for 1 min. The next request wakes it.")
	s.expect(t, at(101), Asleep, "end 1, end 2", "")
	s.expect(t, at(5000), Asleep, "", "")
	s.Traffic.Waiting, s.Traffic.Last = 20, at(5001)
	s.expect(t, at(5001), Deploying, "launch 3 of 1, launch 4 of 1", "20 requests are waiting.")
	s.expect(t, at(5002), Deploying, "", "") // one start, however many wait
}

func TestAServiceDoesNotSleep(t *testing.T) {
	for name, change := range map[string]func(s *Service){
		"with a request under way":         func(s *Service) { s.Replicas[0].Outstanding = 1 },
		"with a request that waits":        func(s *Service) { s.Traffic.Waiting = 1 },
		"while a replica loads":            func(s *Service) { s.Settings.Replicas = 2; s.add(1, Warming, at(999)) },
		"while a replica starts":           func(s *Service) { s.Settings.Replicas = 2; s.add(1, Waiting, at(999)) },
		"during an update":                 func(s *Service) { s.Record = s.Update(2) },
		"shortly after it became healthy":  func(s *Service) { s.Members[0].Healthy = at(950) },
		"shortly after it was woken":       func(s *Service) { s.Sleeping.Since = at(950) },
		"without a time to sleep after":    func(s *Service) { s.Sleep = Sleep{May: true} },
		"with a request on a drained one":  func(s *Service) { s.drained(Draining).Outstanding = 1 },
		"when a person no longer wants it": func(s *Service) { s.Sleep = Sleep{}; s.Sleeping.Asleep = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := sleepy(Healthy)
			change(&s)
			if o, _ := s.step(at(1000)); o.State == Asleep {
				t.Errorf("it sleeps: %s", reasonOf(o))
			}
		})
	}
}

func (s *Service) drained(phase Phase) *Replica {
	r := s.add(1, phase, noon)
	m := &s.Members[len(s.Members)-1]
	m.Drained, m.Deadline = noon, at(5000)
	return r
}

func TestWithRulesAServiceWakesToTheFewest(t *testing.T) {
	for least, want := range map[int]string{0: "launch 1 of 1", 2: "launch 1 of 1, launch 2 of 1"} {
		s := sleepy()
		s.Settings.Replicas, s.Scaling = 4, Scaling{Set: 4, Target: 4}
		s.Rules, s.Sleeping.Asleep, s.Traffic.Waiting = []session.ScalingRule{byOutstanding}, true, 1
		s.Rules[0].MinReplicas = least
		s.expect(t, at(1), Deploying, want, "")
	}
}

// sleeper is an idle service with this much device memory and without a request since then.
func sleeper(id ID, memory gpu.Bytes, last time.Time) Service {
	s := serve(Healthy)
	s.ID, s.Name, s.Sleep = id, "service "+string(id), Sleep{May: true}
	s.Replicas[0].Memory, s.Traffic.Last = memory, last
	return s
}

// waking is a service that a request waits for, and that lacks device memory.
func waking(id ID, lacks gpu.Bytes) Service {
	s := sleepy()
	s.ID, s.Name, s.Settings.Replicas, s.Sleeping.Asleep = id, "service "+string(id), 1, true
	s.Traffic.Waiting, s.Room, s.Lacks = 1, false, lacks
	return s
}

func TestASleeperMakesRoom(t *testing.T) {
	const small, large = 8 * gpu.GiB, 24 * gpu.GiB
	busy := sleeper("busy", large, at(1))
	busy.Replicas[0].Outstanding = 1
	wanted := sleeper("wanted", large, at(1))
	wanted.Traffic.Waiting = 1
	loads := sleeper("loads", large, at(1))
	loads.add(1, Warming, at(99))
	fixed := sleeper("fixed", large, at(1))
	fixed.Sleep = Sleep{}
	leaves := sleeper("leaves", large, at(1))
	leaves.Sleeping.Asleep = true
	room := waking("w", large)
	room.Room = true
	placed := waking("w", large)
	placed.Sleeping.Asleep = false
	placed.add(1, Waiting, at(99))
	queued := placed
	queued.Replicas = []Replica{placed.Replicas[0]}
	queued.Replicas[0].Queued = true
	served := sleeper("s", large, at(1))
	served.Replicas, served.Members = nil, nil
	served.Sleeping = Sleeping{Asleep: true, Since: at(90), For: "w"}
	for name, c := range map[string]struct {
		services []Service
		asleep   string
	}{
		"who has been idle longest": {[]Service{waking("w", small), sleeper("x", small, at(20)),
			sleeper("y", small, at(10))}, "y"},
		"of those with enough memory": {[]Service{waking("w", large), sleeper("x", small, at(10)),
			sleeper("y", large, at(20))}, "y"},
		"or several together": {[]Service{waking("w", 12*gpu.GiB), sleeper("x", small, at(10)),
			sleeper("y", small, at(30)), sleeper("z", small, at(20))}, "xz"},
		"and none if all are not enough": {[]Service{waking("w", large), sleeper("x", small, at(10)),
			sleeper("y", small, at(20))}, ""},
		"never one that is used, wanted, loading or not a sleeper": {[]Service{waking("w", large), busy, wanted, loads,
			fixed}, ""},
		"nor one that was used a moment ago": {[]Service{waking("w", small), sleeper("x", small, at(99.5))}, ""},
		"and none if there is room":          {[]Service{room, sleeper("x", large, at(10))}, ""},
		"nor if the devices are granted":     {[]Service{placed, sleeper("x", large, at(10))}, ""},
		"but if it waits in the queue":       {[]Service{queued, sleeper("x", large, at(10))}, "x"},
		"one after the other":                {[]Service{waking("w", large), leaves, sleeper("x", large, at(10))}, ""},
		"and not two for one":                {[]Service{waking("w", large), served, sleeper("x", large, at(10))}, ""},
		"one for two that wake": {[]Service{waking("v", large), waking("w", large), sleeper("x", large, at(10)),
			sleeper("y", large, at(20))}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			d, asleep := Plan(Snapshot{Services: c.services}, at(100)), ""
			for i, o := range d.Services {
				if o.Sleeping.Asleep && !c.services[i].Sleeping.Asleep {
					asleep += string(o.ID)
					if o.State != Asleep || !strings.HasPrefix(reasonOf(o), "Its devices were needed by service ") {
						t.Errorf("%s: %s", o.State, reasonOf(o))
					}
				}
			}
			if asleep != c.asleep {
				t.Errorf("asleep: %q, want %q", asleep, c.asleep)
			}
		})
	}
}
