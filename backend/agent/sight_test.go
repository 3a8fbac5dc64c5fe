package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// driverDied is what a driver says that was updated while it was in use.
func driverDied(wait string) error {
	return &gpu.Error{Code: gpu.CodeSourceUnavailable,
		Message: "The NVIDIA driver was updated and is not the one that is loaded.",
		Hint:    "Restart the computer. Next try in " + wait + "."}
}

func TestNothingIsGivenWhileTheDriverDoesNotAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), sim.Config{Seed: 21}, nil)
		holder := g.run("holder", 500)
		time.Sleep(time.Minute)
		g.machine.Break(driverDied("4 s"))
		time.Sleep(5 * time.Second) // it is noticed

		// Half of the device is promised to nobody, and nobody is given it, however
		// long the driver is silent.
		waits := g.launch(session.Spec{Name: "waits", Accelerator: gpu.Request{Shares: 300}})
		says := func(id session.ID) {
			t.Helper()
			g.await(id, "waiting for the driver", func(s session.Session) bool {
				return s.Wait != nil && s.Wait.Code == scheduler.CodeWaitDriver &&
					strings.Contains(s.Wait.Message, "does not report what is free") &&
					strings.HasSuffix(s.Wait.Message,
						"The NVIDIA driver was updated and is not the one that is loaded.")
			})
		}
		says(waits.ID)
		preview, err := g.agent.Preview(context.Background(), "ada",
			session.Spec{Type: session.Interactive, Image: enginetest.ImageMinimal,
				Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, Accelerator: gpu.Request{Shares: 300}})
		if err != nil || preview.Wait == nil ||
			!strings.Contains(preview.Wait.Message, "does not report what is free") {
			t.Errorf("a launch would find %+v, %v", preview.Wait, err)
		}
		if board, err := g.agent.Devices(context.Background()); err != nil || len(board.Devices) != 1 {
			t.Errorf("the board is %+v, %v", board, err)
		} else if d := board.Devices[0]; !d.Unread || d.Free != 0 || d.MemoryFree != 0 || d.Util != nil ||
			d.Power != nil || len(d.Holders) != 1 {
			t.Errorf("the device is shown as %+v", d)
		}
		plain := g.launch(session.Spec{Name: "plain"})
		g.awaitStatus(plain.ID, session.Running)
		time.Sleep(10 * time.Minute)
		says(waits.ID)
		if s, _ := g.agent.Get(context.Background(), holder.ID); s.Status != session.Running || len(s.Warnings) > 0 {
			t.Errorf("who holds the device is %s and is told %+v", s.Status, s.Warnings)
		}

		// Another agent of the same store knows no more.
		g.kill(time.Minute)
		time.Sleep(5 * time.Minute)
		if s, _ := g.agent.Get(context.Background(), waits.ID); s.Status != session.Pending {
			t.Errorf("after a restart it is %s", s.Status)
		}

		// What took memory meanwhile counts from the first moment on.
		device := holder.Grants.GPUs[0].Device
		pid := g.machine.Run(sim.Program{Device: device, Name: "game", User: "kim", Kind: sim.Training,
			Memory: 20 * gpu.GiB})
		time.Sleep(time.Minute)
		g.machine.Break(nil)
		g.await(waits.ID, "waiting for the other program", func(s session.Session) bool {
			return s.Wait != nil && s.Wait.Code == scheduler.CodeWaitResources &&
				strings.Contains(s.Wait.Message, "game, kim")
		})
		g.machine.End(pid)
		if s := g.awaitStatus(waits.ID, session.Running); s.Grants.GPUs[0].Device != device {
			t.Errorf("it was given %+v", s.Grants.GPUs)
		}
		g.accounts()
		g.audit()
	})
}

func TestWhatIsUnread(t *testing.T) {
	at := gpu.Moment{BootID: "b", Boot: time.Hour, Awake: time.Hour, Wall: time.Now()}
	free := 8 * gpu.GiB
	sampled := func(at gpu.Moment, devices ...gpu.DeviceSample) gpu.Sample {
		return gpu.Sample{At: at, Devices: devices}
	}
	one, other := gpu.DeviceSample{UUID: "GPU-a", MemoryFree: &free}, gpu.DeviceSample{UUID: "GPU-b"}
	after := func(d time.Duration) gpu.Moment { return at.Before(-d) }
	for name, test := range map[string]struct {
		do   func(d *devices)
		when gpu.Moment
		want []gpu.UUID
	}{
		"before the first sample": {func(*devices) {}, at, []gpu.UUID{"GPU-a", "GPU-b"}},
		"of a sample of all, one of which never tells": {func(d *devices) { d.keep(sampled(at, one, other), nil) }, at,
			nil},
		"of a sample without one": {func(d *devices) { d.keep(sampled(at, other), nil) }, at,
			[]gpu.UUID{"GPU-a"}},
		"once one tells no more": {func(d *devices) {
			d.keep(sampled(at, one, other), nil)
			d.keep(sampled(after(2*time.Second), gpu.DeviceSample{UUID: "GPU-a"}, other), nil)
		}, after(2 * time.Second), []gpu.UUID{"GPU-a"}},
		"after a failure": {func(d *devices) {
			d.keep(sampled(at, one, other), nil)
			d.lose(driverDied("4 s"))
		}, at, []gpu.UUID{"GPU-a", "GPU-b"}},
		"after a failure that is over": {func(d *devices) {
			d.lose(driverDied("4 s"))
			d.keep(sampled(at, one, other), nil)
		}, at, nil},
		"of a sample that is old": {func(d *devices) { d.keep(sampled(at, one, other), nil) },
			after(recentFor + time.Second), []gpu.UUID{"GPU-a", "GPU-b"}},
		"of a device that is lost": {func(d *devices) {
			d.lost["GPU-a"] = lostDevice{}
			d.lose(driverDied("4 s"))
		}, at, []gpu.UUID{"GPU-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDevices(nil, func() gpu.Moment { return test.when })
			d.list, d.looked, d.listed = []gpu.Device{{UUID: "GPU-a"}, {UUID: "GPU-b"}}, at, true
			test.do(d)
			if got := d.now().Unread; !slices.Equal(got, test.want) {
				t.Errorf("unread are %v, not %v", got, test.want)
			}
		})
	}
}

func TestAFailureOfTheDriverIsNewsOnce(t *testing.T) {
	d := newDevices(nil, nil)
	if !d.lose(driverDied("4 s")) || d.lose(driverDied("8 s")) {
		t.Error("the same failure is news again, or was none")
	}
	if !d.lose(context.DeadlineExceeded) {
		t.Error("another failure is no news")
	}
}
