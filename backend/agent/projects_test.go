//go:build unix

package agent

import (
	"context"
	"testing"
	"testing/synctest"

	"slipway/backend/agent/devices"
	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
	"slipway/gpu"
)

// described is the simulated engine with another description of itself.
type described struct {
	engine.Host
	as func(*engine.Info)
}

func (d described) Info(ctx context.Context) (engine.Info, error) {
	info, err := d.Host.Info(ctx)
	d.as(&info)
	return info, err
}

func TestAProjectGetsAnOptionalDeviceWhereSessionsCan(t *testing.T) {
	one := gpu.Request{Devices: 1}
	nvidia := gpu.Device{UUID: "GPU-a", Vendor: gpu.NVIDIA}
	amd := gpu.Device{UUID: "GPU-b", Vendor: gpu.AMD}
	apart := func(i *engine.Info) { i.Lacks = []session.Feature{session.FeatureNVIDIA} }
	slurm := func(gpus ...session.SlurmGPU) func(*engine.Info) {
		return func(i *engine.Info) {
			i.Slurm = &session.SlurmSite{Partitions: []session.SlurmPartition{{Name: "all", GPUs: gpus}}}
		}
	}
	for name, c := range map[string]struct {
		devices []gpu.Device
		as      func(*engine.Info)
		want    gpu.Request
	}{
		"none":                        {nil, func(*engine.Info) {}, gpu.Request{}},
		"of NVIDIA":                   {[]gpu.Device{nvidia}, func(*engine.Info) {}, one},
		"of AMD":                      {[]gpu.Device{amd}, func(*engine.Info) {}, one},
		"that sessions cannot get":    {[]gpu.Device{nvidia}, apart, gpu.Request{}},
		"of which they get the other": {[]gpu.Device{nvidia, amd}, apart, one},
		"of nodes of Slurm":           {nil, slurm(session.SlurmGPU{Type: "a100", Count: 4}), one},
		"none of Slurm":               {nil, slurm(), gpu.Request{}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{t: t, dir: dirInMemory(t), fake: newFake(t, simtest.Config{}),
				gpus: &scriptedDevices{moment: devices.OwnMoment(), devices: c.devices}}
			w.config = func(config *Config) { config.Engine.Host = described{config.Engine.Host, c.as} }
			w.start()
			defer w.halt()
			dir := t.TempDir()
			enginetest.WriteFiles(t, dir, ".devcontainer.json",
				`{"image": "`+enginetest.ImageMinimal+`", "hostRequirements": {"gpu": "optional"}}`)
			f, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "paper", Path: dir})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			found, err := w.agent.ReadProject(t.Context(), f.ID, session.ProjectRequest{})
			if err != nil || found.Accelerator != c.want || (len(found.Left) == 0) == c.want.IsZero() {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		})
	}
}
