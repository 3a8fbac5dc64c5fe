package agent

import (
	"testing"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

func TestMachineWithoutDevicesRefusesToGiveSome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{},
			func(config *Config) { config.Devices.Source = gpu.Empty{Now: config.Host.Moment} })
		spec := session.Spec{Image: "test:1", Accelerator: gpu.Request{Shares: 500}}
		p, err := g.agent.Preview(t.Context(), "", spec, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Errors) != 1 || p.Errors[0].Kind != session.KindRange || p.Errors[0].Field != "accelerator" {
			t.Errorf("errors %+v", p.Errors)
		}
	})
}

func TestAPreviewOfSeveralJudgesEachAfterThoseBeforeIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{}, nil)
		spec := withImage(session.Spec{Accelerator: gpu.Request{Memory: 16 * gpu.GiB}}) // of a device with 24
		p, err := g.agent.Preview(t.Context(), "", spec, 3)
		if err != nil || p.Wait != nil || len(p.GPUs) != 1 || len(p.Further) != 2 {
			t.Fatalf("preview %+v, %v", p, err)
		}
		for i, further := range p.Further {
			if further.Wait == nil || len(further.GPUs) > 0 {
				t.Errorf("session %d would start: %+v", i+2, further)
			}
		}
		first := g.awaitStatus(g.launch(spec).ID, session.Running)
		if got := first.Grants.GPUs[0]; got.Device != p.GPUs[0].Device {
			t.Errorf("the first got %+v, not %+v", got, p.GPUs[0])
		}
		for range 2 {
			g.await(g.launch(spec).ID, "waiting", func(s session.Session) bool {
				return s.Status == session.Pending && s.Wait != nil && s.Wait.Code == p.Further[0].Wait.Code
			})
		}
	})
}

func TestAPreviewOfSeveralChecksTheNameOfEach(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, newFake(t, simtest.Config{}), sim.Config{}, nil)
		g.launch(withImage(session.Spec{Name: "sweep-2"}))
		for count, want := range map[int]string{1: "", 3: "sweep-2"} {
			p, err := g.agent.Preview(t.Context(), "", withImage(session.Spec{Name: "sweep"}), count)
			said := ""
			for _, e := range p.Errors {
				said += e.Said[0].With[0].Text
			}
			if err != nil || said != want {
				t.Errorf("%d sessions: %+v, %v; want %q taken", count, p.Errors, err, want)
			}
		}
	})
}
