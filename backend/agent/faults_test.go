package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

func batchSpec() session.Spec {
	return session.Spec{Type: session.Batch, Command: "true"}
}

// phaseOf returns the newest row of a phase.
func (w *world) phaseOf(id session.ID, name session.PhaseName) session.Phase {
	w.t.Helper()
	history, err := w.agent.History(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	var found session.Phase
	for _, p := range history {
		if p.Phase == name {
			found = p
		}
	}
	return found
}

func TestLaunchFails(t *testing.T) {
	broken := session.NewError("engine_call_broken", "A call broke.", "Mend it.")
	lasting := func(code session.Code) error {
		return session.NewError(code, "It will not do.", "Choose another.")
	}
	five := []error{broken, broken, broken, broken, broken}
	for _, c := range []struct {
		name     string
		call     simtest.Call
		errs     []error
		reason   session.Reason
		phase    session.PhaseName
		outcome  session.Outcome
		attempts int
	}{
		{"at once where the image is nowhere", simtest.CallPull, []error{lasting("engine_pull_not-found")},
			session.ReasonPullFailed, session.PhasePrepare, session.OutcomeFailure, 1},
		{"after five pulls", simtest.CallPull, five, session.ReasonPullFailed, session.PhasePrepare,
			session.OutcomeGiveUp, 5},
		{"at once where the disk is full", simtest.CallCreate, []error{lasting("disk_write_no-space")},
			session.ReasonCreateFailed, session.PhaseStart, session.OutcomeFailure, 1},
		{"after five creations", simtest.CallCreate, five, session.ReasonCreateFailed, session.PhaseStart,
			session.OutcomeGiveUp, 5},
		{"at once where it cannot start", simtest.CallStart, []error{lasting("engine_start_failed")},
			session.ReasonStartFailed, session.PhaseStart, session.OutcomeFailure, 1},
		{"at once where its guest exits", simtest.CallGuest, []error{lasting("engine_guest_exited")},
			session.ReasonStartFailed, session.PhaseStart, session.OutcomeFailure, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				fake := newFake(t, simtest.Config{})
				fake.Fail(c.call, c.errs...)
				fake.Publish("remote", simtest.PullScript{})
				w := newWorld(t, fake, nil)
				spec := session.Spec{}
				if c.phase == session.PhasePrepare {
					spec.Image = "remote"
				}
				s := w.launch(spec)
				s = w.awaitStatus(s.ID, session.Failed)
				want := session.AsError(c.errs[0], "")
				if s.Reason != c.reason || s.Error == nil || s.Error.Code != want.Code || s.Error.Hint != want.Hint ||
					s.Result != session.ResultFailure {
					t.Errorf("ended as %+v, %+v", s, s.Error)
				}
				p := w.phaseOf(s.ID, c.phase)
				if p.Result != c.outcome || p.Attempts != c.attempts || p.Code != want.Code || len(p.Steps) == 0 ||
					p.Steps[len(p.Steps)-1].Code != want.Code {
					t.Errorf("history says %+v", p)
				}
				if states := fake.States(); len(states) > 0 {
					t.Errorf("left: %+v", states)
				}
				w.audit()
			})
		})
	}
}

func TestLaunchSucceedsAtTheThirdAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		broken := &session.Error{Code: "engine_call_broken", Message: "A call broke."}
		fake.Fail(simtest.CallStart, broken)
		fake.FailAfter(simtest.CallCreate, broken) // made, and nobody learned its id
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{})
		s = w.awaitStatus(s.ID, session.Running)
		if p := w.phaseOf(s.ID, session.PhaseStart); p.Attempts != 3 || p.Result != session.OutcomeSuccess ||
			p.Code != "" || len(p.Steps) != 4 || p.Steps[0].Result != session.OutcomeSuccess {
			t.Errorf("history says %+v", p)
		}
		if s.Error != nil {
			t.Errorf("it runs with %+v", s.Error)
		}
		w.audit()
	})
}

func TestNothingHangsForEver(t *testing.T) {
	for _, c := range []struct {
		call   simtest.Call
		reason session.Reason
		code   session.Code
	}{
		{simtest.CallPull, session.ReasonPullFailed, "engine_call_timeout"},
		{simtest.CallCreate, session.ReasonCreateFailed, "engine_call_timeout"},
		{simtest.CallStart, session.ReasonStartFailed, "engine_call_timeout"},
		{simtest.CallGuest, session.ReasonStartFailed, "engine_call_timeout"},
	} {
		t.Run(string(c.call), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				fake := newFake(t, simtest.Config{})
				fake.Publish("remote", simtest.PullScript{})
				w := newWorld(t, fake, nil)
				spec := session.Spec{}
				if c.call == simtest.CallPull {
					spec.Image = "remote"
				}
				gate := fake.Block(c.call)
				defer gate.Release()
				s := w.launch(spec)
				time.Sleep(2 * time.Hour)
				s, err := w.agent.Get(context.Background(), s.ID)
				if err != nil || s.Status != session.Failed || s.Reason != c.reason || s.Error.Code != c.code {
					t.Errorf("after two hours it is %+v, %+v, %v", s, s.Error, err)
				}
				w.audit()
			})
		})
	}
}

func TestEndIsObeyedInEveryPhase(t *testing.T) {
	for _, forced := range []bool{false, true} {
		for _, call := range []simtest.Call{simtest.CallImage, simtest.CallPull, simtest.CallCreate,
			simtest.CallStart, simtest.CallGuest} {
			t.Run(fmt.Sprint(call, " forced ", forced), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					fake := newFake(t, simtest.Config{})
					fake.Publish("remote", simtest.PullScript{})
					w := newWorld(t, fake, nil)
					gate := fake.Block(call)
					defer gate.Release()
					s := w.launch(session.Spec{Image: "remote"})
					<-gate.Entered()
					begun := time.Now()
					s, err := w.agent.Terminate(context.Background(), s.ID, forced)
					if err != nil || s.Status != session.Terminating {
						t.Errorf("the answer is %s, %v", s.Status, err)
					}
					s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
					want := session.ReasonUser
					if forced {
						want = session.ReasonForced
					}
					if s.Status != session.Cancelled || s.Reason != want || time.Since(begun) > time.Second {
						t.Errorf("ended as %s, %s after %v", s.Status, s.Reason, time.Since(begun))
					}
					if states := fake.States(); len(states) > 0 {
						t.Errorf("left: %+v", states)
					}
					w.audit()
				})
			})
		}
	}
}

func TestPendingSessionIsCancelled(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 1}), nil)
		first := w.launch(session.Spec{})
		w.awaitStatus(first.ID, session.Running)
		second := w.launch(session.Spec{})
		s := w.await(second.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if s.Wait.Code != session.CodeWaitResources || !strings.Contains(s.Wait.Message, first.Name+" has 1") {
			t.Errorf("waits for %+v", s.Wait)
		}
		s, err := w.agent.Terminate(context.Background(), second.ID, false)
		if err != nil || s.Status != session.Cancelled || s.Reason != session.ReasonUser || s.Wait != nil {
			t.Errorf("the answer is %+v, %v", s, err)
		}
		if again, err := w.agent.Terminate(context.Background(), second.ID, true); err != nil ||
			again.Revision != s.Revision {
			t.Errorf("ending it again changes it: %+v, %v", again, err)
		}
		third := w.launch(session.Spec{})
		w.await(third.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if _, err := w.agent.Terminate(context.Background(), first.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(third.ID, session.Running)
		w.audit()
	})
}

func TestBatchEnds(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(w *world, id string)
		status session.Status
		result session.Result
		reason session.Reason
		exit   int
	}{
		{"with 0", func(w *world, id string) { w.fake.Exit(id, 0) }, session.Terminated, session.ResultSuccess,
			session.ReasonFinished, 0},
		{"with 3", func(w *world, id string) { w.fake.Exit(id, 3) }, session.Terminated, session.ResultFailure,
			session.ReasonTaskFailed, 3},
		{"out of memory", func(w *world, id string) { w.fake.OOM(id) }, session.Terminated, session.ResultFailure,
			session.ReasonOOM, 137},
		{"out of memory as its guest tells", func(w *world, id string) {
			in, _ := w.fake.Inside(id)
			in.Guest.OOM(1)
			w.await(session.ID(w.fake.States()[0].Labels[engine.LabelSession]), "warned",
				func(s session.Session) bool { return len(s.Warnings) > 0 })
			w.fake.Exit(id, 1)
		}, session.Terminated, session.ResultFailure, session.ReasonOOM, 1},
		{"killed by nobody knows whom", func(w *world, id string) { w.fake.Exit(id, 137) }, session.Terminated,
			session.ResultFailure, session.ReasonTaskFailed, 137},
		{"without a shell", func(w *world, id string) {
			in, _ := w.fake.Inside(id)
			in.Guest.Trouble(session.NewError("session_start_no-shell", "The image has no shell.", "Choose another."))
			time.Sleep(time.Millisecond)
			w.fake.Exit(id, 127)
		}, session.Failed, session.ResultFailure, session.ReasonStartFailed, 127},
		{"by losing its container", func(w *world, id string) { w.fake.Lose(id) }, session.Failed,
			session.ResultFailure, session.ReasonLost, -1},
		{"by its timeout", func(w *world, id string) { time.Sleep(time.Hour) }, session.Terminated,
			session.ResultFailure, session.ReasonTaskTimeout, 143},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, newFake(t, simtest.Config{}), nil)
				spec := batchSpec()
				spec.Timeout = session.Duration(time.Hour)
				s := w.launch(spec)
				s = w.awaitStatus(s.ID, session.Running)
				w.fake.WriteLog(s.Container(), "said")
				c.end(w, s.Container())
				s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
				if s.Status != c.status || s.Result != c.result || s.Reason != c.reason ||
					(c.exit >= 0) != (s.ExitCode != nil) || (c.exit >= 0 && *s.ExitCode != c.exit) {
					t.Errorf("ended as %+v", s)
				}
				if (s.Result == session.ResultFailure) != (s.Error != nil && s.Error.Hint != "") {
					t.Errorf("explained by %+v", s.Error)
				}
				if c.reason != session.ReasonLost {
					if got := w.log(s.ID, session.LogOptions{}); got != "said\n" {
						t.Errorf("its log is %q", got)
					}
				}
				w.audit()
			})
		})
	}
}

func TestInteractiveEndsByItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		end    func(f *simtest.Engine, id string)
		status session.Status
		reason session.Reason
	}{
		{"politely", func(f *simtest.Engine, id string) { f.Exit(id, 0) }, session.Terminated, session.ReasonSelf},
		{"with trouble", func(f *simtest.Engine, id string) { f.Exit(id, 2) }, session.Terminated, session.ReasonSelf},
		{"out of memory", func(f *simtest.Engine, id string) { f.OOM(id) }, session.Terminated, session.ReasonOOM},
		{"by losing its container", func(f *simtest.Engine, id string) { f.Lose(id) }, session.Failed,
			session.ReasonLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, newFake(t, simtest.Config{}), nil)
				s := w.launch(session.Spec{})
				s = w.awaitStatus(s.ID, session.Running)
				c.end(w.fake, s.Container())
				s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
				if n := w.fake.Calls(simtest.CallRemove); n != 1 {
					t.Errorf("its container was removed %d times", n)
				}
				if s.Status != c.status || s.Reason != c.reason || s.Result != session.ResultUndefined {
					t.Errorf("ended as %+v", s)
				}
				w.audit()
			})
		})
	}
}

func TestEngineThatIsAwayMakesLaunchesWaitAndRunningOnesStay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		ctx := context.Background()
		running := w.launch(session.Spec{})
		w.awaitStatus(running.ID, session.Running)
		gate := fake.Block(simtest.CallCreate)
		half := w.launch(session.Spec{})
		<-gate.Entered()
		fake.SetDown(true)
		gate.Release()
		s := w.await(half.ID, "back in the queue", func(s session.Session) bool {
			return s.Status == session.Pending &&
				s.Wait != nil
		})
		if s.Wait.Code != session.CodeEngineUnavailable || s.Wait.Position != 1 || len(s.Grants.CPUs) > 0 {
			t.Errorf("waits for %+v with %+v", s.Wait, s.Grants)
		}
		late := w.launch(session.Spec{})
		if s := w.await(late.ID, "waiting",
			func(s session.Session) bool { return s.Wait != nil }); s.Wait.Code != session.CodeEngineUnavailable ||
			s.Wait.Position != 2 {
			t.Errorf("waits for %+v", s.Wait)
		}
		if p, err := w.agent.Preview(ctx, "", session.Spec{Image: "debian"}, 1); err != nil || p.Wait == nil ||
			p.Wait.Code != session.CodeEngineUnavailable {
			t.Errorf("preview %+v, %v", p, err)
		}
		m, err := w.agent.Machine(ctx)
		if err != nil || len(m.Warnings) != 1 || m.Warnings[0].Code != session.CodeEngineUnavailable || m.CPUs != 8 {
			t.Errorf("machine %+v, %v", m, err)
		}
		time.Sleep(3 * time.Hour)
		if s, _ := w.agent.Get(ctx, running.ID); s.Status != session.Running {
			t.Errorf("the running one is %s", s.Status)
		}
		fake.SetDown(false)
		w.awaitStatus(half.ID, session.Running)
		w.awaitStatus(late.ID, session.Running)
		if m, err := w.agent.Machine(ctx); err != nil || len(m.Warnings) != 0 || m.UsedCPUs != 3 {
			t.Errorf("machine %+v, %v", m, err)
		}
		w.audit()
	})
}

func TestEndWhileTheEngineIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		ctx := context.Background()
		polite, forced := w.launch(session.Spec{}), w.launch(session.Spec{})
		w.awaitStatus(polite.ID, session.Running)
		f := w.awaitStatus(forced.ID, session.Running)
		fake.SetDown(true)
		for id, hard := range map[session.ID]bool{polite.ID: false, forced.ID: true} {
			if _, err := w.agent.Terminate(ctx, id, hard); err != nil {
				t.Fatal(err)
			}
		}
		s := w.awaitStatus(forced.ID, session.Terminated)
		if s.Reason != session.ReasonForced || len(s.Warnings) == 0 ||
			s.Warnings[0].Code != "session_terminate_left-behind" ||
			!strings.Contains(s.Warnings[0].Text, f.Container()) {
			t.Errorf("forced: %+v", s)
		}
		time.Sleep(time.Hour)
		if s, _ := w.agent.Get(ctx, polite.ID); s.Status != session.Terminating {
			t.Errorf("polite: %s", s.Status)
		}
		fake.SetDown(false)
		s = w.awaitStatus(polite.ID, session.Terminated)
		if s.Reason != session.ReasonUser || len(s.Warnings) > 0 {
			t.Errorf("polite: %+v", s)
		}
		time.Sleep(5 * time.Minute)
		if states := fake.States(); len(states) > 0 {
			t.Errorf("left: %+v", states)
		}
		w.audit()
	})
}

func TestSessionsOfAnEarlierProcessAreFollowedAfterTheEngineWasAway(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		ended, exited := w.launch(session.Spec{}), w.launch(session.Spec{})
		w.awaitStatus(ended.ID, session.Running)
		container := w.awaitStatus(exited.ID, session.Running).Container()
		w.halt()
		w.start()
		time.Sleep(time.Minute)
		fake.SetDown(true)
		time.Sleep(time.Minute)
		if m, err := w.agent.Machine(context.Background()); err != nil || len(m.Warnings) == 0 {
			t.Fatalf("machine %+v, %v", m, err)
		}
		fake.SetDown(false)
		time.Sleep(time.Minute)
		if _, err := w.agent.Terminate(context.Background(), ended.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(ended.ID, session.Terminated)
		fake.Lose(container)
		w.await(exited.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		w.audit()
	})
}

func TestPoliteEndBecomesForced(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{})
		w.awaitStatus(s.ID, session.Running)
		gate := fake.Block(simtest.CallStop)
		defer gate.Release()
		for _, forced := range []bool{false, true} {
			if _, err := w.agent.Terminate(context.Background(), s.ID, forced); err != nil {
				t.Fatal(err)
			}
			if !forced {
				<-gate.Entered()
			}
		}
		if s = w.awaitStatus(s.ID, session.Terminated); s.Reason != session.ReasonForced || len(fake.States()) > 0 {
			t.Errorf("ended as %+v", s)
		}
		w.audit()
	})
}

func TestEndThatCannotRemoveGivesUpAndSaysSo(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{})
		w.awaitStatus(s.ID, session.Running)
		broken := &session.Error{Code: "engine_remove_busy", Message: "The container is busy."}
		fake.Fail(simtest.CallRemove, broken, broken, broken, broken, broken)
		if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		s = w.awaitStatus(s.ID, session.Terminated)
		if p := w.phaseOf(s.ID, session.PhaseTerminate); p.Result != session.OutcomeGiveUp || p.Attempts != 5 {
			t.Errorf("history says %+v", p)
		}
		if len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0].Text, "busy") {
			t.Errorf("warnings %+v", s.Warnings)
		}
		time.Sleep(2 * time.Minute)
		if states := fake.States(); len(states) > 0 {
			t.Errorf("what was left is not removed later: %+v", states)
		}
		w.audit()
	})
}

func TestFullDiskDelaysAndLosesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var full atomic.Bool
		w := &world{t: t, dir: dirInMemory(t), fake: newFake(t, simtest.Config{}),
			fault: func(point string) error {
				if full.Load() && point == "commit" {
					return syscall.ENOSPC
				}
				return nil
			}}
		w.start()
		t.Cleanup(w.halt)
		first := w.launch(session.Spec{})
		first = w.awaitStatus(first.ID, session.Running)
		time.Sleep(time.Second)
		full.Store(true)
		_, err := w.agent.Launch(context.Background(),
			session.LaunchRequest{Spec: session.Spec{Image: enginetest.ImageMinimal}})
		if session.CodeOf(err) != "disk_write_no-space" || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a launch on a full disk: %v", err)
		}
		w.fake.Exit(first.Container(), 0)
		time.Sleep(time.Minute)
		if s, _ := w.agent.Get(context.Background(), first.ID); s.Status != session.Running {
			t.Errorf("an end that could not be stored: %s", s.Status)
		}
		if m, err := w.agent.Machine(context.Background()); err != nil || len(m.Warnings) != 1 ||
			m.Warnings[0].Code != "disk_write_no-space" {
			t.Errorf("the machine warns of %+v, %v", m.Warnings, err)
		}
		full.Store(false)
		time.Sleep(time.Minute)
		if s, _ := w.agent.Get(context.Background(), first.ID); s.Status != session.Terminated {
			t.Errorf("when there is room again: %s", s.Status)
		}
		if m, err := w.agent.Machine(context.Background()); err != nil || len(m.Warnings) != 0 {
			t.Errorf("then the machine warns of %+v, %v", m.Warnings, err)
		}
		w.audit()
	})
}

func TestWrongSpecsCreateNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 2, Memory: 2 * gpu.GiB}), nil)
		ctx := context.Background()
		live := w.launch(session.Spec{Name: "taken"})
		w.awaitStatus(live.ID, session.Running)
		for field, spec := range map[string]session.Spec{
			"resources.cpu":    {Image: "debian", Resources: session.Resources{CPU: 3}},
			"resources.memory": {Image: "debian", Resources: session.Resources{Memory: 3 * gpu.GiB}},
			"mounts[0].source": {Image: "debian", Mounts: []session.Mount{{Source: "/there/is/no/such"}}},
			"agent":            {Image: "debian", Schedule: session.Schedule{Agent: "another"}},
			"name":             {Image: "debian", Name: "taken"},
		} {
			_, err := w.agent.Launch(ctx, session.LaunchRequest{Spec: spec})
			var e *session.Error
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Field != field {
				t.Errorf("%s: %v", field, err)
			}
			p, err := w.agent.Preview(ctx, "", spec, 1)
			if err != nil || len(p.Errors) != 1 || p.Errors[0].Field != field {
				t.Errorf("%s: preview says %+v, %v", field, p.Errors, err)
			}
		}
		if list, err := w.agent.List(ctx, session.Filter{}); err != nil || len(list) != 1 {
			t.Errorf("there are %d sessions, %v", len(list), err)
		}
	})
}

func TestContainersThatTheEngineOrTheMachineTookAlong(t *testing.T) {
	for _, c := range []struct {
		name   string
		boot   bool // the machine restarts
		spec   session.Spec
		code   int
		told   bool // the guest has told of the end
		reason session.Reason
		cause  session.Code
	}{
		{"interactive, engine stopped", false, session.Spec{}, 0, false, session.ReasonLost,
			"session_run_engine-stopped"},
		{"interactive, machine restarted", true, session.Spec{}, 255, false, session.ReasonLost,
			"session_run_machine-restarted"},
		{"batch, engine stopped", false, batchSpec(), 143, false, session.ReasonLost, "session_run_engine-stopped"},
		{"batch, machine restarted", true, batchSpec(), 255, false, session.ReasonLost,
			"session_run_machine-restarted"},
		{"batch that succeeded meanwhile", false, batchSpec(), 0, false, session.ReasonFinished, ""},
		{"batch that failed meanwhile", false, batchSpec(), 3, false, session.ReasonTaskFailed,
			"session_run_task-failed"},
		{"batch that was killed meanwhile, as its guest told", false, batchSpec(), 137, true, session.ReasonTaskFailed,
			"session_run_task-failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				var boot atomic.Int64
				fake := newFake(t, simtest.Config{})
				w := newWorld(t, fake, func(config *Config) {
					config.Host.Boot = func() (time.Time, error) { return time.Unix(boot.Load(), 0), nil }
				})
				s := w.launch(c.spec)
				s = w.awaitStatus(s.ID, session.Running)
				if c.told {
					w.inside(s).Guest.Exit(c.code)
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Minute)
				if c.boot {
					w.halt()
					fake.Exit(s.Container(), c.code)
					time.Sleep(time.Minute)
					boot.Store(time.Now().Unix())
					w.start()
				} else {
					fake.SetDown(true)
					time.Sleep(10 * time.Second)
					fake.Exit(s.Container(), c.code)
					time.Sleep(time.Minute)
					fake.SetDown(false)
				}
				s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
				if s.Reason != c.reason || (c.cause != "") != (s.Error != nil) ||
					(s.Error != nil && s.Error.Code != c.cause) {
					t.Errorf("ended as %s, %s, %+v", s.Status, s.Reason, s.Error)
				}
				if lost := c.reason == session.ReasonLost; lost != (s.Status == session.Failed) {
					t.Errorf("ended as %s", s.Status)
				}
				w.audit()
			})
		})
	}
}
