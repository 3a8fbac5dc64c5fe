package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

func taskSpec(name string) session.Spec {
	return session.Spec{Name: name, Type: session.Batch, Command: "true"}
}

func TestDependentsWaitForSuccess(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		first := w.awaitStatus(w.launch(taskSpec("first")).ID, session.Running)
		after := taskSpec("second")
		after.After = []string{"first"}
		second := w.launch(after)
		if len(second.DependsOn) != 1 || second.DependsOn[0] != first.ID {
			t.Fatalf("it depends on %v", second.DependsOn)
		}
		after = taskSpec("third")
		after.After = []string{string(second.ID), "first"}
		third := w.launch(after)
		s := w.await(second.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if s.Wait.Code != session.CodeWaitDependency || !strings.Contains(s.Wait.Message, "first (RUNNING)") {
			t.Errorf("it waits for %+v", s.Wait)
		}
		if history, err := w.agent.History(context.Background(), second.ID); err != nil ||
			history[0].Steps[0].Step != scheduler.StepValidate ||
			history[0].Steps[0].Code != session.CodeWaitDependency {
			t.Errorf("history %+v, %v", history, err)
		}
		w.fake.Exit(first.Container(), 0)
		second = w.awaitStatus(second.ID, session.Running)
		w.fake.Exit(second.Container(), 3)
		if s := w.awaitStatus(second.ID, session.Terminated); s.Result != session.ResultFailure || *s.ExitCode != 3 {
			t.Errorf("the second ended as %+v", s)
		}
		s = w.awaitStatus(third.ID, session.Cancelled)
		if s.Reason != session.ReasonDependency || s.Error == nil || s.Error.Code != session.CodeDependencyFailed ||
			!strings.Contains(s.Error.Message, "second") {
			t.Errorf("the third ended as %+v because of %+v", s.Reason, s.Error)
		}
		if p := w.phaseOf(third.ID, session.PhaseSchedule); p.Result != session.OutcomeFailure ||
			p.Code != session.CodeDependencyFailed || len(p.Steps) != 1 {
			t.Errorf("history says %+v", p)
		}
		after.After, after.Name = []string{"second"}, "fourth"
		if _, err := w.agent.Launch(context.Background(),
			session.LaunchRequest{Spec: withImage(after)}); session.CodeOf(err) != session.CodeInvalid {
			t.Errorf("it may wait for one that failed: %v", err)
		}
		after.After = []string{"first"}
		w.awaitStatus(w.launch(after).ID, session.Running)
		w.audit()
	})
}

func withImage(s session.Spec) session.Spec {
	s.Image = enginetest.ImageMinimal
	return s
}

func TestCancellationCascades(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		first := w.awaitStatus(w.launch(taskSpec("first")).ID, session.Running)
		names := []string{"step-1", "step-2", "step-3"}
		last := "first"
		var all []session.ID
		for _, name := range names {
			spec := taskSpec(name)
			spec.After = []string{last}
			all, last = append(all, w.launch(spec).ID), name
		}
		if _, err := w.agent.Terminate(context.Background(), first.ID, true); err != nil {
			t.Fatal(err)
		}
		for _, id := range all {
			if s := w.awaitStatus(id, session.Cancelled); s.Reason != session.ReasonDependency {
				t.Errorf("%s ended as %s", s.Name, s.Reason)
			}
		}
		w.audit()
	})
}

func TestLaunchRefusesWhatNobodyCanWaitFor(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		w.launch(session.Spec{Name: "notebook"})
		for name, after := range map[string]string{"nobody": "nobody", "an id of nobody": "aaaaaaaaaaaa",
			"an interactive session": "notebook"} {
			spec := withImage(taskSpec("late"))
			spec.After = []string{after}
			_, err := w.agent.Launch(context.Background(), session.LaunchRequest{Spec: spec})
			e := session.AsError(err, "")
			if e == nil || e.Code != session.CodeInvalid || len(e.Fields) != 1 || e.Fields[0].Field != "after[0]" ||
				e.Fields[0].Kind != session.KindNotFound {
				t.Errorf("%s: %+v", name, err)
			}
			if p, err := w.agent.Preview(context.Background(), "", spec, 1); err != nil || len(p.Errors) != 1 {
				t.Errorf("%s in a preview: %+v, %v", name, p.Errors, err)
			}
		}
	})
}

func TestWaitingEndsWithItsTimeout(t *testing.T) {
	for _, down := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{CPUs: 2}), nil)
			w.awaitStatus(w.launch(session.Spec{Resources: session.Resources{CPU: 2}}).ID, session.Running)
			began := time.Now()
			s := w.launch(session.Spec{Resources: session.Resources{CPU: 1},
				Schedule: session.Schedule{PendingTimeout: session.Duration(10 * time.Minute)}})
			w.fake.SetDown(down)
			s = w.awaitStatus(s.ID, session.Cancelled)
			if s.Reason != session.ReasonPendingTimeout || time.Since(began).Round(time.Second) != 10*time.Minute ||
				s.Error.Code != session.CodeExpired {
				t.Errorf("engine down %v: it ended as %s after %s because of %+v", down, s.Reason, time.Since(began),
					s.Error)
			}
			if p := w.phaseOf(s.ID, session.PhaseSchedule); p.Result != session.OutcomeExpired {
				t.Errorf("history says %+v", p)
			}
		})
	}
}

func TestDevicesAreChangedWhilePending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 6}, nil)
		ctx := context.Background()
		first := g.run("first-one", 700)
		a := g.launch(session.Spec{Name: "wants-a", Accelerator: gpu.Request{Devices: 1}})
		b := g.launch(session.Spec{Name: "wants-b", Accelerator: gpu.Request{Devices: 1}})
		g.await(b.ID, "second", func(s session.Session) bool { return s.Wait != nil && s.Wait.Position == 2 })
		for _, wrong := range []gpu.Request{{Shares: -1}, {Devices: 2}, {Shares: 1, Devices: 1}} {
			if _, err := g.agent.SetAccelerator(ctx, a.ID, wrong); session.CodeOf(err) != "session_update_invalid" {
				t.Errorf("%s: %v", wrong, err)
			}
		}
		if s, err := g.agent.SetAccelerator(ctx, a.ID, gpu.Request{Shares: 300}); err != nil ||
			s.Spec.Accelerator != (gpu.Request{Shares: 300}) || s.Status != session.Pending {
			t.Errorf("%+v, %v", s, err)
		}
		if s := g.awaitStatus(a.ID, session.Running); s.Grants.GPUs[0].Share != 300 {
			t.Errorf("it was given %+v", s.Grants)
		}
		if s, _ := g.agent.Get(ctx, b.ID); s.Status != session.Pending || s.Wait == nil || s.Wait.Position != 1 {
			t.Errorf("the other is %s, %+v", s.Status, s.Wait)
		}
		if _, err := g.agent.SetAccelerator(ctx, first.ID, gpu.Request{}); session.CodeOf(err) !=
			"session_update_conflict" {
			t.Errorf("of one that runs: %v", err)
		}
	})
}

func TestPriorityIsChangedWhilePending(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 2}), nil)
		ctx := context.Background()
		first := w.awaitStatus(w.launch(session.Spec{Resources: session.Resources{CPU: 2}}).ID, session.Running)
		low, urgent := 5, 40
		a := w.launch(session.Spec{Resources: session.Resources{CPU: 2}, Schedule: session.Schedule{Priority: &urgent}})
		b := w.launch(session.Spec{Resources: session.Resources{CPU: 2}, Schedule: session.Schedule{Priority: &low}})
		w.await(b.ID, "second", func(s session.Session) bool { return s.Wait != nil && s.Wait.Position == 2 })
		if _, err := w.agent.SetPriority(ctx, b.ID, 101); session.CodeOf(err) != "session_update_invalid" {
			t.Errorf("%v", err)
		}
		if s, err := w.agent.SetPriority(ctx, b.ID, 90); err != nil || s.Priority != 90 {
			t.Errorf("%+v, %v", s, err)
		}
		w.await(b.ID, "first", func(s session.Session) bool { return s.Wait != nil && s.Wait.Position == 1 })
		if _, err := w.agent.SetPriority(ctx, first.ID, 1); session.CodeOf(err) != "session_update_conflict" {
			t.Errorf("%v", err)
		}
		w.fake.Exit(first.Container(), 0)
		w.awaitStatus(b.ID, session.Running)
		if s, _ := w.agent.Get(ctx, a.ID); s.Status != session.Pending {
			t.Errorf("the other is %s", s.Status)
		}
	})
}

func TestSharesOfADeviceAreGivenAndExplained(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		w.withDevices([]gpu.Device{{UUID: "GPU-a", Model: "T", Vendor: gpu.NVIDIA, Memory: 24 * gpu.GiB}}, nil)
		half := gpu.Request{Shares: 500}
		first := w.awaitStatus(w.launch(session.Spec{Name: "first", Accelerator: half}).ID, session.Running)
		second := w.awaitStatus(w.launch(session.Spec{Name: "second", Accelerator: half,
			Tuning: session.Tuning{Uncooperative: true}}).ID,
			session.Running)
		third := w.launch(session.Spec{Name: "third", Accelerator: half})
		s := w.await(third.ID, "waiting", func(s session.Session) bool { return s.Wait != nil })
		if want := "Needs 0.5 of the GPU on local. GPU 0: first has 0.5 (12 GiB), second has 0.5 " +
			"(12 GiB)."; s.Wait.Message != want {
			t.Errorf("it says %q, not %q", s.Wait.Message, want)
		}
		c := w.containersOf(first)[session.MainKernel]
		if len(c.Devices) != 1 || c.Devices[0].UUID != "GPU-a" || len(c.Grants) != 1 || c.Grants[0].Share != 500 ||
			c.Grants[0].Memory != 12*gpu.GiB {
			t.Errorf("the container gets %+v, %+v", c.Devices, c.Grants)
		}
		if env := c.Guest.Env; valueOf(env, "XLA_PYTHON_CLIENT_MEM_FRACTION") != "0.479" ||
			valueOf(env, "GPU_MEMORY_LIMIT_MIB") != "12288" || valueOf(env, "SLIPWAY_GPU_SHARE") != "0.5" {
			t.Errorf("its variables are %v", env)
		}
		if env := w.containersOf(second)[session.MainKernel].Guest.Env; valueOf(env,
			"TF_FORCE_GPU_ALLOW_GROWTH") != "" || valueOf(env, "SLIPWAY_GPU_SHARE") == "" {
			t.Errorf("the variables of the one that does not want them are %v", env)
		}
		w.fake.Exit(first.Container(), 0)
		w.awaitStatus(third.ID, session.Running)
		w.audit()
	})
}

func TestForeignUseMakesASessionWaitAndNamesIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		devices := []gpu.Device{{UUID: "GPU-a", Model: "T", Vendor: gpu.NVIDIA, Memory: 24 * gpu.GiB}}
		taken := gpu.Bytes(12025908429)
		foreign := func(at gpu.Moment) gpu.Sample {
			return gpu.Sample{At: at, Devices: []gpu.DeviceSample{{UUID: "GPU-a", MemoryUsed: &taken}},
				Processes: []gpu.ProcessSample{{PID: 4312, Start: 1, Device: "GPU-a", Memory: &taken, Name: "python"}}}
		}
		w.withDevices(devices, foreign)
		s := w.launch(session.Spec{Accelerator: gpu.Request{Memory: 16 * gpu.GiB}})
		s = w.await(s.ID, "waiting", func(s session.Session) bool {
			return s.Wait != nil &&
				s.Wait.Code == session.CodeWaitResources
		})
		if want := "Needs 16 GiB of the memory of the GPU on local. GPU 0: 11.2 GiB used by pid 4312 " +
			"(python, another user), not a session."; s.Wait.Message != want {
			t.Errorf("it says %q, not %q", s.Wait.Message, want)
		}
		// It goes, and another look shows that: the session waits a little longer.
		none := gpu.Bytes(0)
		w.withDevices(devices, func(at gpu.Moment) gpu.Sample {
			return gpu.Sample{At: at, Devices: []gpu.DeviceSample{{UUID: "GPU-a", MemoryUsed: &none}}}
		})
		s = w.await(s.ID, "settling", func(s session.Session) bool {
			return s.Wait != nil &&
				s.Wait.Code == session.CodeWaitSettle
		})
		if s.Wait.Until == nil {
			t.Errorf("it does not say until when: %+v", s.Wait)
		}
		w.awaitStatus(s.ID, session.Running)
	})
}

func TestLaunchRefusesDevicesThatTheMachineCannotGive(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 4}), nil)
		w.withDevices([]gpu.Device{{UUID: "GPU-a", Model: "T", Memory: 24 * gpu.GiB}}, nil)
		time.Sleep(time.Second)
		for name, c := range map[string]struct {
			spec  session.Spec
			field string
			kind  session.Kind
		}{
			"two devices": {session.Spec{Accelerator: gpu.Request{Devices: 2}}, "accelerator",
				session.KindRange},
			"too much memory": {session.Spec{Accelerator: gpu.Request{Memory: 25 * gpu.GiB}}, "accelerator",
				session.KindRange},
			"not a whole quantum": {session.Spec{Accelerator: gpu.Request{Shares: 250}}, "accelerator",
				session.KindRounded},
			"less than a quantum": {session.Spec{Accelerator: gpu.Request{Shares: 50}}, "accelerator",
				session.KindRounded},
			"a whole device each of two": {session.Spec{Accelerator: gpu.Request{Devices: 1}, Cluster: 2},
				"accelerator", session.KindRange},
			"more CPUs than there are": {session.Spec{Resources: session.Resources{CPU: 3}, Cluster: 2}, "cluster",
				session.KindRange},
			"more memory than there is": {session.Spec{Resources: session.Resources{Memory: 9 * gpu.GiB}, Cluster: 2},
				"cluster", session.KindRange},
			"an instance that nobody has": {session.Spec{Accelerator: gpu.Request{Profile: "1g.10gb"}}, "accelerator",
				session.KindRange},
		} {
			_, err := w.agent.Launch(context.Background(), session.LaunchRequest{Spec: withImage(c.spec)})
			e := session.AsError(err, "")
			if err == nil || len(e.Fields) != 1 || e.Fields[0].Field != c.field || e.Fields[0].Kind != c.kind {
				t.Errorf("%s: %+v", name, err)
			}
		}
		p, err := w.agent.Preview(context.Background(), "",
			withImage(session.Spec{Accelerator: gpu.Request{Memory: 5 * gpu.GiB}}), 1)
		if err != nil || len(p.GPUs) != 1 || p.GPUs[0].Memory != 5*gpu.GiB || p.Rounded == nil ||
			p.Enforcement != gpu.LevelNone {
			t.Errorf("preview %+v, %v", p, err)
		}
	})
}

func TestHistoryTellsWhenASessionWillStart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{CPUs: 1}), nil)
		for range 6 {
			s := w.awaitStatus(w.launch(taskSpec("")).ID, session.Running)
			time.Sleep(30 * time.Minute)
			w.fake.Exit(s.Container(), 0)
			w.awaitStatus(s.ID, session.Terminated)
		}
		w.halt() // the next agent knows it from the store
		w.start()
		w.awaitStatus(w.launch(taskSpec("")).ID, session.Running)
		time.Sleep(10*time.Minute + time.Second)
		s := w.launch(taskSpec(""))
		s = w.await(s.ID, "waiting", func(s session.Session) bool { return s.Wait != nil && s.Wait.Start != nil })
		if in := time.Until(*s.Wait.Start).Round(time.Minute); in != 20*time.Minute && in != 19*time.Minute {
			t.Errorf("it starts in about %s, give or take %s", in, s.Wait.Margin)
		}
		if e := s.Wait.Estimate; e == nil || e.Say != "estimateAbout" || e.Count != 6 ||
			!strings.Contains(s.Wait.Message, "frees 1 CPU at about") {
			t.Errorf("it waits as %+v", s.Wait)
		}
	})
}
