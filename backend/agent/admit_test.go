package agent

import (
	"context"
	"errors"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// moody is a source whose driver answers only sometimes.
type moody struct {
	gpu.Empty
	silent bool
}

func (m *moody) Inventory(ctx context.Context) ([]gpu.Device, error) {
	if m.silent {
		return nil, errors.New("the driver does not answer")
	}
	return m.Empty.Inventory(ctx)
}

func TestOnlyAnInventoryThatWasNeverToldMayYetHaveDevices(t *testing.T) {
	source := &moody{Empty: gpu.Empty{Now: ownMoment()}, silent: true}
	d := newDevices(source, nil)
	if !d.now().Unlisted {
		t.Error("before the first look the devices count as told")
	}
	if err := d.look(t.Context(), nil); err == nil || !d.now().Unlisted || d.now().Text == "" {
		t.Errorf("after a look that failed with %v: %+v", err, d.now())
	}
	source.silent = false
	if err := d.look(t.Context(), nil); err != nil || d.now().Unlisted {
		t.Errorf("after a look that found none: %v, %+v", err, d.now())
	}
	source.silent = true
	if err := d.look(t.Context(), nil); err == nil || d.now().Unlisted {
		t.Errorf("what was told once counts as never told: %+v", d.now())
	}
}

func TestMachineWithoutDevicesRefusesToGiveSome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		g := newGPUWorld(t, enginetest.NewFake(enginetest.FakeConfig{}), sim.Config{},
			func(config *Config) { config.GPU = gpu.Empty{Now: config.Moment} })
		p, err := g.agent.Preview(t.Context(), "", session.Spec{Image: "test:1", Accelerator: gpu.Request{Shares: 500}})
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Errors) != 1 || p.Errors[0].Code != session.CodeTooManyDevices || p.Errors[0].Field != "accelerator" ||
			p.Errors[0].Hint == "" {
			t.Errorf("errors %+v", p.Errors)
		}
	})
}
