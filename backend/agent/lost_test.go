package agent

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// told awaits a session that has exactly one warning, of a code.
func (g *gpuWorld) told(id session.ID, code session.Code) session.Warning {
	g.t.Helper()
	s := g.await(id, string(code), func(s session.Session) bool {
		return len(s.Warnings) == 1 &&
			s.Warnings[0].Code == code
	})
	if s.Status != session.Running {
		g.t.Errorf("%s is %s", s.Name, s.Status)
	}
	return s.Warnings[0]
}

func TestADeviceIsLostAndComesBack(t *testing.T) {
	for _, kind := range []gpu.LossKind{gpu.LossFallen, gpu.LossReset, gpu.LossSilent, gpu.LossUnlisted} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				g := newGPUWorld(t, newFake(t, simtest.Config{}),
					sim.Config{Seed: 7, Cards: []sim.Card{sim.Server, sim.Server}}, nil)
				holder := g.run("holder", 500)
				device := holder.Grants.GPUs[0].Device
				g.machine.RunGranted(holder.Container(), sim.Training, holder.Grants.GPUs)
				beside := g.run("beside", 1000)
				if beside.Grants.GPUs[0].Device == device {
					t.Fatal("both are on one device")
				}
				time.Sleep(time.Minute)
				g.machine.Lose(device, &gpu.Loss{Kind: kind, Why: "the test took it"})

				w := g.told(holder.ID, session.CodeDeviceLost)
				if w.Device != device || !strings.Contains(w.Text, "the test took it") ||
					!strings.HasSuffix(w.Text, gpu.Loss{Kind: kind}.Hint()) {
					t.Errorf("the warning is %+v", w)
				}
				// Half of it is promised to nobody, and nobody is given it.
				waits := g.launch(session.Spec{Name: "waits", Accelerator: gpu.Request{Shares: 500}})
				g.await(waits.ID, "waiting", func(s session.Session) bool {
					return s.Wait != nil && s.Wait.Code == session.CodeWaitResources &&
						strings.Contains(s.Wait.Message, "lost: the test took it")
				})
				both := g.launch(session.Spec{Name: "both", Accelerator: gpu.Request{Devices: 2}})
				g.await(both.ID, "waiting for the machine", func(s session.Session) bool {
					return s.Wait != nil && s.Wait.Code == session.CodeWaitMachine &&
						strings.Contains(s.Wait.Message, "is lost: the test took it")
				})
				time.Sleep(10 * time.Minute)
				if s, _ := g.agent.Get(context.Background(), waits.ID); s.Status != session.Pending {
					t.Errorf("who waits for a lost device is %s", s.Status)
				}
				board, err := g.agent.Devices(context.Background())
				i := slices.IndexFunc(board.Devices,
					func(d session.DeviceState) bool { return d.Device.UUID == device })
				if err != nil || len(board.Devices) != 2 || i < 0 {
					t.Fatalf("%+v, %v", board, err)
				}
				if d := board.Devices[i]; d.Device.Lost == nil || d.Device.Lost.Kind != kind || d.Free != 0 ||
					d.MemoryFree != 0 || d.Util != nil || d.Device.Model == "" || len(d.Holders) != 1 ||
					d.Holders[0].Session != holder.ID {
					t.Errorf("it is shown as %+v", d)
				}
				if other := board.Devices[1-i]; other.Device.Lost != nil || other.Util == nil {
					t.Errorf("the other device is shown as %+v", other)
				}
				if s, _ := g.agent.Get(context.Background(), beside.ID); len(s.Warnings) > 0 {
					t.Errorf("who holds the other device is told %+v", s.Warnings)
				}

				g.machine.Lose(device, nil)
				if w := g.told(holder.ID, session.CodeDeviceBack); w.Device != device ||
					!strings.Contains(w.Text, "must be restarted") {
					t.Errorf("the warning is %+v", w)
				}
				if s := g.awaitStatus(waits.ID, session.Running); s.Grants.GPUs[0].Device != device {
					t.Errorf("it was given %+v", s.Grants.GPUs)
				}
				// The plan that placed the one is told to the other a moment later.
				g.await(both.ID, "waiting for what others hold", func(s session.Session) bool {
					return s.Wait != nil &&
						s.Wait.Code != session.CodeWaitMachine
				})
				g.accounts()
				g.audit()
			})
		})
	}
}

func TestALossOutlivesTheAgent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 8}, nil)
		s := g.run("holder", 500)
		device := s.Grants.GPUs[0].Device
		g.machine.Lose(device, &gpu.Loss{Kind: gpu.LossUnlisted, Why: "the test took it"})
		first := g.told(s.ID, session.CodeDeviceLost)
		g.kill(time.Minute)
		time.Sleep(3 * time.Minute)
		if again := g.told(s.ID, session.CodeDeviceLost); again != first {
			t.Errorf("after a restart the warning is %+v; it was %+v", again, first)
		}
		waits := g.launch(session.Spec{Name: "waits", Accelerator: gpu.Request{Shares: 300}})
		time.Sleep(3 * time.Minute)
		if w, _ := g.agent.Get(context.Background(), waits.ID); w.Status != session.Pending {
			t.Errorf("it is %s", w.Status)
		}
		g.machine.Lose(device, nil)
		g.told(s.ID, session.CodeDeviceBack)
		g.awaitStatus(waits.ID, session.Running)
		g.audit()
	})
}

func TestALostDeviceThatNobodyHoldsIsForgotten(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}),
			sim.Config{Seed: 9, Cards: []sim.Card{sim.Server, sim.Server}}, nil)
		devices := func() []session.DeviceState {
			board, err := g.agent.Devices(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			return board.Devices
		}
		device := devices()[0].Device.UUID
		g.machine.Lose(device, &gpu.Loss{Kind: gpu.LossFallen, Why: "the test took it"})
		time.Sleep(10 * time.Minute)
		if list := devices(); len(list) != 2 || list[0].Device.Lost == nil || list[1].Device.Lost != nil {
			t.Errorf("a device that fell off the bus is shown among %+v", list)
		}
		g.machine.Lose(device, &gpu.Loss{Kind: gpu.LossUnlisted, Why: "the test took it"})
		time.Sleep(10 * time.Minute)
		if list := devices(); len(list) != 1 || list[0].Device.UUID == device {
			t.Errorf("a device that was taken out is shown among %+v", list)
		}
		g.machine.Lose(device, nil)
		time.Sleep(2 * time.Minute)
		if list := devices(); len(list) != 2 || list[0].Device.Lost != nil {
			t.Errorf("after its return the devices are %+v", list)
		}
	})
}
