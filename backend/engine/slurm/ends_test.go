//go:build linux

package slurm_test

import (
	"os/user"
	"syscall"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// endAs has Slurm call the first job ended, or whatever else, and kills it.
func (s *stage) endAs(state, by string) {
	s.cluster.change(func(on *cluster) {
		on.cpus = 0 // nothing starts again
		j := on.jobs[0]
		j.state, j.by, j.end = state, by, time.Now()
		on.signal(j, syscall.SIGKILL)
	})
}

func TestWhoCancelledAJobIsSaidWhereAccountingKnows(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		by, want string
		accounts bool
	}{
		"a known user":       {me.Uid, me.Username + " cancelled the job in Slurm.", true},
		"an unknown user":    {"987654", "987654 cancelled the job in Slurm.", true},
		"without accounting": {me.Uid, "The job was cancelled in Slurm.", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, 1)
			id := s.start(wanted(first, ""))
			s.cluster.change(func(on *cluster) {
				on.kept = c.accounts
				j := on.jobs[0]
				j.state, j.by, j.end = "CANCELLED", c.by, time.Now()
				on.signal(j, syscall.SIGTERM) // its node leaves an exit record
			})
			state := s.ended(id)
			if state.Taken == nil || state.Taken.Reason != session.ReasonForced || state.Taken.Cause.Message != c.want {
				t.Fatalf("it is %+v, taken %+v", state, state.Taken)
			}
			before := s.calls("sacct")
			for range 20 {
				s.inspect(id)
			}
			if after := s.calls("sacct"); after != before || after > 1 {
				t.Errorf("accounting is asked %d times", after)
			}
		})
	}
}

func TestTheNodeThatFailedIsNamed(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, ""))
	s.endAs("NODE_FAIL", "")
	const want = "Node n1 failed, and the session ended with it."
	if state := s.ended(id); state.Taken == nil || state.Taken.Cause.Message != want {
		t.Errorf("it is %+v, taken %+v", state, state.Taken)
	}
}

// A batch command runs at most once, so its session ends when Slurm would run it again.
func TestABatchCommandThatSlurmQueuedAgainEnds(t *testing.T) {
	s := newStage(t, 1)
	id := s.start(wanted(first, "sleep 300"))
	s.endAs("PENDING", "")
	state := s.ended(id)
	if state.Taken == nil || state.Taken.Again || state.Taken.Reason != session.ReasonLost ||
		state.Taken.Cause.Hint != "Its command had begun and is not run twice. Launch it again." {
		t.Errorf("it is %+v, taken %+v", state, state.Taken)
	}
	if err := s.engine.Remove(t.Context(), id); err != nil || !s.gone(first) {
		t.Errorf("its files stay: %v", err)
	}
	s.cluster.change(func(on *cluster) {
		if got := on.jobs[0].state; got != "CANCELLED" {
			t.Errorf("its job is %s", got)
		}
	})
}

// An answer from before the start says that the job waits, and does not mean that it was queued again.
func TestAnOldAnswerTakesNothing(t *testing.T) {
	p := newPlanned(t, 0)
	one := wanted(first, "")
	p.plan("its job", []engine.Wanted{one}, nil, func([]scheduler.Decision) bool {
		return p.cluster.count(slurm.NameOf(first, 1)) == 1
	})
	p.plan("a wait for resources", []engine.Wanted{one}, nil, func(d []scheduler.Decision) bool {
		return d[0].Wait != nil && d[0].Wait.Code == session.CodeWaitResources
	})
	p.cluster.change(func(on *cluster) {
		on.cpus = 1
		on.schedule()
	})
	p.plan("its place", []engine.Wanted{one}, nil, func(d []scheduler.Decision) bool { return isPlaced(d[0]) })
	id := p.start(one)
	for range 50 {
		if state := p.inspect(id); !state.Running {
			t.Fatalf("it is %+v, taken %+v", state, state.Taken)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestWhatASiteOffersIsReadAgain(t *testing.T) {
	s := newStage(t, 2)
	cpus := func() int {
		info, err := s.engine.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.CPUs
	}
	if got := cpus(); got != 2 {
		t.Fatalf("it has %d CPUs", got)
	}
	s.cluster.change(func(on *cluster) { on.cpus = 4 })
	began := s.clock.Now()
	s.await("the change", func() bool { return cpus() == 4 })
	if after := s.clock.Since(began); after < 5*time.Minute {
		t.Errorf("it is read again after %s", after)
	}
	// A request that is refused says that the site is not as it was.
	s.cluster.change(func(on *cluster) {
		on.cpus, on.refuse = 6, "Batch job submission failed: Invalid partition name specified"
	})
	id, err := s.engine.Create(t.Context(), wanted(first, "").Kernels[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := s.engine.Start(t.Context(), id); session.CodeOf(err) != session.CodeStartFailed {
		t.Fatal(err)
	}
	if got := cpus(); got != 6 {
		t.Errorf("it has %d CPUs", got)
	}
	// While it cannot be read, the old answer counts, and Slurm is asked ever less often.
	s.cluster.change(func(on *cluster) { on.broken = true })
	before, began := s.calls("sinfo"), s.clock.Now()
	for s.clock.Since(began) < 45*time.Minute {
		cpus()
		time.Sleep(time.Millisecond)
	}
	if asked := s.calls("sinfo") - before; asked < 2 || asked > 9 {
		t.Errorf("it is asked %d times in 45 minutes", asked)
	}
}

// calls is how often a command was called.
func (s *stage) calls(command string) (n int) {
	s.cluster.change(func(on *cluster) { n = on.calls[command] })
	return n
}
