package serving

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// serve is a service of revision 1 with a replica in each phase since the beginning, and room for more.
func serve(phases ...Phase) Service {
	s := Service{Record: New("a", "alpha"), Settings: Settings{Replicas: len(phases)}, Room: true}
	s.Record.Served = true
	for _, phase := range phases {
		s.add(1, phase, noon)
	}
	return s
}

// add adds a member and its replica.
func (s *Service) add(revision int, phase Phase, since time.Time) *Replica {
	s.Attempt++
	m := Member{Attempt: s.Attempt, Revision: revision, Seen: true}
	r := Replica{ID: session.ID(fmt.Sprint("s", s.Attempt)), Revision: revision, Attempt: s.Attempt, Phase: phase,
		Since: since, Memory: 8 * gpu.GiB}
	if phase != Waiting {
		r.Running = since
	}
	if phase == Healthy || phase == Unhealthy || phase == Draining {
		m.Passed = true
	}
	if phase == Healthy {
		m.Healthy = since
	}
	s.Members, s.Replicas = append(s.Members, m), append(s.Replicas, r)
	return &s.Replicas[len(s.Replicas)-1]
}

func (s *Service) end(i int, when time.Time, reason session.Reason) {
	s.Replicas[i].Phase, s.Replicas[i].Outstanding = Ended, 0
	s.Replicas[i].End = &End{At: when, Reason: reason, Said: session.Phrase{Text: "The process exited with code 1."}}
	s.Replicas[i].Log = []string{"out of memory"}
}

// step plans, stores the record, and carries out the actions at once: what is launched waits, what is terminated ends.
func (s *Service) step(now time.Time) (Outcome, string) {
	d := Plan(Snapshot{Services: []Service{*s}}, now)
	s.Record = d.Services[0].Record
	for i := range s.Replicas {
		r := &s.Replicas[i]
		if slices.ContainsFunc(d.Drains, func(a Drain) bool { return a.Attempt == r.Attempt }) {
			r.Phase, r.Since = Draining, now
		}
		if slices.ContainsFunc(d.Terminations, func(a Termination) bool { return a.Attempt == r.Attempt }) {
			r.Phase, r.End = Ended, &End{At: now, Reason: session.ReasonUser}
		}
	}
	for _, l := range d.Launches {
		s.Replicas = append(s.Replicas, Replica{ID: session.ID(fmt.Sprint("s", l.Attempt)), Revision: l.Revision,
			Attempt: l.Attempt, Phase: Waiting, Since: now, Memory: 8 * gpu.GiB})
	}
	return d.Services[0], acts(d)
}

// acts writes the actions of a decision, for example "drain 1, end 2, launch 3 of 2".
func acts(d Decision) string {
	var out []string
	for _, a := range d.Drains {
		out = append(out, fmt.Sprint("drain ", a.Attempt))
	}
	for _, a := range d.Terminations {
		out = append(out, fmt.Sprint("end ", a.Attempt))
	}
	for _, a := range d.Launches {
		out = append(out, fmt.Sprintf("launch %d of %d", a.Attempt, a.Revision))
	}
	for _, refused := range d.Refused {
		out = append(out, "refused "+refused)
	}
	return strings.Join(out, ", ")
}

// expect makes a step and fails if it does something else, or if the reason lacks a part.
func (s *Service) expect(t *testing.T, now time.Time, state State, actions, reason string) {
	t.Helper()
	o, got := s.step(now)
	if o.State != state || got != actions || !strings.Contains(reasonOf(o), reason) {
		t.Fatalf("at %s: %s, %q: %s\nwant %s, %q: %s", now.Sub(noon), o.State, got, reasonOf(o), state, actions, reason)
	}
}

func TestANewServiceIsDeployed(t *testing.T) {
	s := Service{Record: New("a", "alpha"), Settings: Settings{Replicas: 2}}
	s.expect(t, at(0), Deploying, "launch 1 of 1, launch 2 of 1",
		"0 of 2 replicas are healthy. 2 replicas are starting.")
	s.Replicas[0].Queued = true
	s.expect(t, at(1), Deploying, "", "1 replica is in the queue. 1 replica is starting.")
	s.Replicas[1] = s.Replicas[1].Run(at(2), at(2)).Judge(Probe{Asked: at(2), Status: 200}, at(2))
	s.expect(t, at(2), Degraded, "", "1 of 2 replicas are healthy.")
	s.Replicas[0] = s.Replicas[0].Run(at(3), at(3)).Judge(Probe{Asked: at(3), Status: 200}, at(3))
	s.expect(t, at(3), Ready, "", "2 of 2 replicas are healthy.")
}

func TestALaunchIsRepeatedWithItsNumberUntilItIsSeen(t *testing.T) {
	s := Service{Record: New("a", "alpha"), Settings: Settings{Replicas: 1}}
	for range 3 {
		d := Plan(Snapshot{Services: []Service{s}}, at(0))
		if acts(d) != "launch 1 of 1" {
			t.Fatalf("got %q", acts(d))
		}
		s.Record = d.Services[0].Record // nothing is carried out
	}
	s.Replicas = []Replica{{ID: "s1", Revision: 1, Attempt: 1, Phase: Waiting}}
	s.expect(t, at(1), Deploying, "", "starting")
	s.Replicas = nil // its session is gone
	s.expect(t, at(2), Deploying, "", "1 failure in a row, the last: Its session no longer exists.")
	s.expect(t, at(3), Deploying, "launch 2 of 1", "")
}

func TestReplicasWithoutAMemberAreAdopted(t *testing.T) {
	s := serve(Healthy, Healthy)
	s.Members = nil
	s.expect(t, at(1), Ready, "", "2 of 2")
	s.Settings.Replicas, s.Members = 1, nil
	s.expect(t, at(2), Ready, "drain 2", "")
}

func TestFailuresAreRetriedAndGivenUp(t *testing.T) {
	s := serve(Warming)
	s.Served = false
	now := noon
	for i, wait := range []float64{1, 2, 4, 8} {
		s.end(i, now, session.ReasonTaskFailed)
		s.expect(t, now, Deploying, "", "The process exited with code 1. The next attempt is")
		now = now.Add(time.Duration(wait * float64(time.Second)))
		s.expect(t, now.Add(-time.Millisecond), Deploying, "", "")
		s.expect(t, now, Deploying, fmt.Sprintf("launch %d of 1", i+2), "")
	}
	s.end(4, now, session.ReasonTaskFailed)
	s.expect(t, now, Failed, "",
		"Revision 1 failed 5 times in a row. The process exited with code 1. Change it or try again.")
	if log := s.Failures.Log; !slices.Equal(log, []string{"out of memory"}) {
		t.Errorf("the log is %q", log)
	}
	s.expect(t, now.Add(time.Hour), Failed, "", "")
	again := s
	again.Record = again.TryAgain()
	again.expect(t, now.Add(time.Hour), Deploying, "launch 6 of 1", "")
	s.Settings.Replicas = 2
	s.expect(t, now.Add(time.Hour), Deploying, "launch 6 of 1, launch 7 of 1", "")
}

func TestFailures(t *testing.T) {
	for n, want := range map[int]float64{1: 1, 2: 2, 6: 32, 7: 60, 100: 60} {
		if got := delay(n).Seconds(); got != want {
			t.Errorf("after %d failures the delay is %v s", n, got)
		}
	}
	t.Run("that happen together count once", func(t *testing.T) {
		s := serve(Healthy, Healthy, Healthy, Healthy, Healthy, Healthy)
		for i := range s.Replicas {
			s.end(i, at(60), session.ReasonTaskFailed)
		}
		s.expect(t, at(60), Unreachable, "", "1 failure in a row")
	})
	t.Run("of a replica that a person ended do not count", func(t *testing.T) {
		s := serve(Healthy)
		s.end(0, at(60), session.ReasonUser)
		s.expect(t, at(60), Unreachable, "launch 2 of 1", "0 of 1 replica is healthy. 1 replica is starting.")
	})
	t.Run("are forgotten after 5 minutes of health", func(t *testing.T) {
		s := serve(Healthy)
		s.Failures = Failures{Revision: 1, Count: 4, Attempt: 0}
		s.expect(t, at(299), Ready, "", "4 failures")
		s.expect(t, at(300), Ready, "", "1 of 1 replica is healthy.")
		if s.Failures.Count != 0 {
			t.Errorf("there are %d", s.Failures.Count)
		}
	})
	t.Run("are not forgotten by replicas that were there before them", func(t *testing.T) {
		s := serve(Healthy)
		s.Failures = Failures{Revision: 1, Count: 4, Attempt: 1}
		s.expect(t, at(300), Ready, "", "4 failures")
	})
	t.Run("begin a new row after a replica that was healthy for 5 minutes", func(t *testing.T) {
		for end, want := range map[float64]int{299: 4, 300: 1} {
			s := serve(Healthy)
			s.Failures = Failures{Revision: 1, Count: 4, Attempt: 1}
			s.end(0, at(end), session.ReasonTaskFailed)
			if s.step(at(end)); s.Failures.Count != want {
				t.Errorf("after %v s there are %d, want %d", end, s.Failures.Count, want)
			}
		}
	})
	t.Run("do not stop launches while another replica answers", func(t *testing.T) {
		s := serve(Healthy)
		s.Settings.Replicas, s.Scaling.Set = 2, 2
		s.Failures = Failures{Revision: 1, Count: 5, Attempt: 1, Next: at(16)}
		s.Scaling.Target = 2
		s.expect(t, at(15), Degraded, "", "5 failures")
		s.expect(t, at(16), Degraded, "launch 2 of 1", "")
	})
}

func TestReplicasAreReplaced(t *testing.T) {
	t.Run("that do not become healthy in time, counted from RUNNING", func(t *testing.T) {
		s := serve(Waiting)
		s.Served = false
		s.expect(t, at(3600), Deploying, "", "starting") // it may queue and pull as long as it takes
		s.Replicas[0] = s.Replicas[0].Run(at(3600), at(3600))
		s.expect(t, at(3659), Deploying, "", "loading")
		s.expect(t, at(3660), Deploying, "drain 1, end 1", "It did not become healthy in 1 min.")
		s.expect(t, at(3661), Deploying, "launch 2 of 1", "")
	})
	t.Run("that stay unhealthy, with what is under way", func(t *testing.T) {
		s := serve(Healthy, Unhealthy)
		s.Replicas[1].Outstanding = 3
		s.expect(t, at(99), Degraded, "", "1 replica is not answering health checks.")
		s.expect(t, at(100), Degraded, "drain 2, end 2", "It was unhealthy for 1 min 40 s.")
		s.expect(t, at(101), Degraded, "launch 3 of 1", "")
	})
	t.Run("but not because the agent was restarted", func(t *testing.T) {
		s := serve(Healthy)
		s.Replicas[0].Phase, s.Replicas[0].Since = Warming, at(7200)
		s.expect(t, at(7201), Unreachable, "", "loading")
	})
}

func TestAReplicaThatEndsByItselfFails(t *testing.T) {
	s := Service{Record: New("a", "alpha"), Settings: Settings{Replicas: 1}}
	s.expect(t, at(0), Deploying, "launch 1 of 1", "")
	s.Replicas[0] = s.Replicas[0].Run(at(1), at(1))
	// Its session is seen as it ends, before it has ended.
	s.Replicas[0].Terminating = true
	s.Replicas[0].End = &End{Reason: session.ReasonTaskFailed,
		Said: session.Phrase{Text: "The process exited with code 1."}}
	s.expect(t, at(2), Deploying, "", "1 replica is loading.")
	s.Replicas[0].Phase, s.Replicas[0].Terminating = Ended, false
	s.expect(t, at(3), Deploying, "", "1 failure in a row, the last: The process exited with code 1.")
}

func TestScaleDownDrains(t *testing.T) {
	s := serve(Healthy, Unhealthy, Healthy, Unhealthy, Healthy)
	s.Replicas[0].Outstanding, s.Replicas[2].Outstanding, s.Replicas[4].Outstanding = 1, 0, 2
	s.Settings.Replicas = 4
	s.expect(t, at(1), Degraded, "drain 4", "3 of 4") // the newest that is unhealthy
	s.Settings.Replicas = 2
	s.expect(t, at(2), Ready, "drain 2, drain 3, end 4", "") // then who has least to do
	s.Settings.Replicas = 1
	s.expect(t, at(3), Ready, "drain 1, end 2, end 3", "")
	s.expect(t, at(600), Ready, "", "1 replica is draining.")
	s.expect(t, at(603), Ready, "end 1", "") // when its grace is over
	s.expect(t, at(604), Ready, "", "1 of 1 replica is healthy.")
}

func TestStopping(t *testing.T) {
	s := serve(Healthy, Warming, Waiting)
	s.Replicas[0].Outstanding = 1
	s.Record = s.Stop()
	s.expect(t, at(1), Stopping, "drain 1, drain 2, end 3", "3 replicas are still ending. 1 request is under way.")
	s.expect(t, at(2), Stopping, "end 2", "")
	s.expect(t, at(3), Stopping, "", "1 replica is still ending. 1 request is under way.")
	s.Replicas[0].Outstanding = 0
	s.expect(t, at(4), Stopping, "end 1", "")
	s.expect(t, at(5), Stopped, "", "Stopped by request.")
	s.Record = s.Start(at(6))
	s.expect(t, at(6), Deploying, "launch 4 of 1, launch 5 of 1, launch 6 of 1", "")
}

func TestTheAuditTakesBackWhatBreaksAPromise(t *testing.T) {
	s := serve(Healthy, Draining)
	s.Replicas[1].Outstanding = 1
	s.Members[1].Drained, s.Members[1].Deadline = at(0), at(600)
	d := Decision{
		Launches:     []Launch{{"a", 1, 2}, {"a", 1, 3}},
		Terminations: []Termination{{"a", "s2", 2, stopGrace}, {"a", "s1", 1, stopGrace}},
	}
	audit(Snapshot{Services: []Service{s}}, &d, at(1))
	if len(d.Refused) != 2 || len(d.Launches) != 1 || len(d.Terminations) != 1 {
		t.Errorf("got %+v", d)
	}
}

// reasonOf is why a service is in its state, in English.
func reasonOf(o Outcome) string { return session.Reader{}.Read(o.Said...) }
