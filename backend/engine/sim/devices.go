package sim

import (
	"context"
	"encoding/json"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/shell"
	"slipway/backend/session"
	"slipway/gpu"
)

// Devices are those of the simulated machine.
type Devices interface {
	// Look returns the devices and a sample, without affecting other readers.
	Look(ctx context.Context) ([]gpu.Device, gpu.Sample, error)
	// Compute runs a program of a container on what was granted, in place of its default load, until end is called.
	Compute(container, name string, grants []gpu.Grant) (pids []int, end func())
}

// granted are the devices of one container.
type granted struct {
	devices   Devices
	container string
	grants    []gpu.Grant
}

// grantedTo returns the granted devices of a container, nil if there are none.
func (s *containers) grantedTo(id string, spec engine.Container) shell.GPUs {
	var grants session.Grants
	if s.config.Devices == nil || json.Unmarshal([]byte(spec.Labels[engine.LabelGrants]), &grants) != nil ||
		len(grants.GPUs) == 0 {
		return nil
	}
	return &granted{devices: s.config.Devices, container: id, grants: grants.GPUs}
}

func (g *granted) Read(ctx context.Context) ([]gpu.Device, gpu.Sample, error) {
	devices, sample, err := g.devices.Look(ctx)
	if err != nil {
		return nil, sample, err
	}
	devices = slices.DeleteFunc(devices, func(d gpu.Device) bool {
		return !slices.ContainsFunc(g.grants, func(grant gpu.Grant) bool { return grant.Device == d.UUID })
	})
	for i := range devices {
		devices[i].Index = i // a container counts its own
	}
	sample.Processes = slices.DeleteFunc(sample.Processes,
		func(p gpu.ProcessSample) bool { return p.Container != g.container })
	return devices, sample, nil
}

func (g *granted) Compute(name string) ([]int, func()) {
	return g.devices.Compute(g.container, name, g.grants)
}
