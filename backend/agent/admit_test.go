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
		p, err := g.agent.Preview(t.Context(), "", session.Spec{Image: "test:1", Accelerator: gpu.Request{Shares: 500}})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Errors) != 1 || p.Errors[0].Kind != session.KindRange || p.Errors[0].Field != "accelerator" {
			t.Errorf("errors %+v", p.Errors)
		}
	})
}
