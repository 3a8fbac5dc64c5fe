package agent

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// taking has an engine say that another scheduler took the resources of containers.
type taking struct {
	engine.Monitor

	mu    sync.Mutex // guards everything below
	taken map[string]bool
}

func (e *taking) Inspect(ctx context.Context, id string) (engine.State, error) {
	state, err := e.Monitor.Inspect(ctx, id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.taken[id] {
		state.Running, state.ExitCode = false, 143
		state.Taken = &engine.Taken{Reason: session.ReasonLost, Again: true, Cause: session.Because(
			session.CodeContainerLost, session.Say("slurmQueuedAgain"), session.Say("slurmQueuedAgainHint"))}
	}
	return state, err
}

func TestASessionWhoseResourcesAreTakenForNowWaitsAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var seen *taking
		w, p := delegated(t, newFake(t, simtest.Config{}), func(c *Config) {
			seen = &taking{Monitor: c.Engine.Monitor, taken: map[string]bool{}}
			c.Engine.Monitor = seen
		})
		s := w.launch(session.Spec{Name: "worker", Accelerator: gpu.Request{Devices: 1}})
		p.start("worker", "n1", 0)
		s = w.awaitStatus(s.ID, session.Running)
		began := *s.StartedAt
		time.Sleep(time.Hour)
		p.set(func() { delete(p.starts, "worker") })
		seen.mu.Lock()
		seen.taken[s.Container()] = true
		seen.mu.Unlock()
		w.agent.launch.ContainerChanged(engine.State{Labels: map[string]string{engine.LabelSession: string(s.ID)}})
		s = w.awaitStatus(s.ID, session.Pending)
		if s.StartedAt != nil || len(s.Grants.CPUs) > 0 || len(s.Kernels) > 0 || s.Error == nil ||
			s.Error.Message != "Slurm ended the job and put it back in its queue." || s.Attempt != 1 {
			t.Errorf("it is %+v", s)
		}
		if left := w.fake.States(); len(left) > 0 {
			t.Errorf("containers are left: %+v", left)
		}
		w.audit()
		time.Sleep(time.Hour)
		p.start("worker", "n2", 3)
		s = w.awaitStatus(s.ID, session.Running)
		if s.Attempt != 2 || s.Kernels[0].Node != "n2" || s.Error != nil || !s.StartedAt.After(began) {
			t.Errorf("it is %+v", s)
		}
		time.Sleep(time.Hour)
		if _, err := w.agent.Terminate(t.Context(), s.ID, false); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(s.ID, session.Terminated)
		w.audit()
		// The hour in which it waited is not counted.
		rows, err := w.agent.Accounts(t.Context(), session.AccountSpan{From: began.Add(-time.Minute), To: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		var sum session.Account
		for _, row := range rows {
			sum.Add(row)
		}
		for what, ms := range map[string]int64{"CPUs": sum.AllocCPUMs, "devices": sum.AllocGPUMs} {
			if d := time.Duration(ms) * time.Millisecond; d < 2*time.Hour-time.Minute || d > 2*time.Hour+time.Minute {
				t.Errorf("%s of %s are counted", what, d)
			}
		}
		if sum.CoveredMs != 0 || sum.GapMs == 0 {
			t.Errorf("nothing measures the devices, but it is %+v", sum.DeviceUse)
		}
	})
}

func TestPlannedKernelsAreToldOfTheirDevices(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w, p := delegated(t, newFake(t, simtest.Config{}), nil)
		for name, c := range map[string]struct {
			asked gpu.Request
			want  string
		}{
			"none": {gpu.Request{}, ",,,,"}, "two": {gpu.Request{Devices: 2}, "2,2,1.000,,"},
			"shares": {gpu.Request{Shares: 3000}, "3,3,1.000,,"},
			"part":   {gpu.Request{Shares: 500}, "1,0.5,0.500,1,0.500"},
		} {
			w.launch(session.Spec{Name: name + "-asked", Accelerator: c.asked})
			p.names()
			wanted := p.wanted[len(p.wanted)-1]
			for _, one := range p.wanted {
				if one.Session.Name == name+"-asked" {
					wanted = one
				}
			}
			var got []string
			for _, variable := range []string{"SLIPWAY_GPUS", "SLIPWAY_GPU_SHARE", "SLIPWAY_GPU_FRACTION",
				"SLIPWAY_GPU_COOPERATIVE", "XLA_PYTHON_CLIENT_MEM_FRACTION"} {
				got = append(got, valueOf(wanted.Kernels[0].Guest.Env, variable))
			}
			if got := strings.Join(got, ","); got != c.want {
				t.Errorf("%s is told %q, not %q", name, got, c.want)
			}
		}
	})
}
