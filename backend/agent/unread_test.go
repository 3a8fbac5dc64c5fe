package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
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
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{Seed: 21}, nil)
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
				return s.Wait != nil && s.Wait.Code == session.CodeWaitDriver &&
					strings.Contains(s.Wait.Message, "does not report what is free") &&
					strings.HasSuffix(s.Wait.Message,
						"The NVIDIA driver was updated and is not the one that is loaded.")
			})
		}
		says(waits.ID)
		preview, err := g.agent.Preview(context.Background(), "ada",
			session.Spec{Type: session.Interactive, Image: enginetest.ImageMinimal,
				Resources: session.Resources{CPU: 1, Memory: gpu.GiB}, Accelerator: gpu.Request{Shares: 300}}, 1)
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
			return s.Wait != nil && s.Wait.Code == session.CodeWaitResources &&
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
