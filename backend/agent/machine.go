package agent

import (
	"context"
	"slices"

	"github.com/shirou/gopsutil/v3/disk"

	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/engine"
	"slipway/backend/offlimits"
	"slipway/backend/session"
	"slipway/gpu"
)

func (a *Agent) Doctor(ctx context.Context) ([]session.Check, error) {
	disk := func(ctx context.Context) (free, total gpu.Bytes, err error) {
		m, err := a.Machine(ctx)
		return m.Load.DiskFree, m.Load.DiskTotal, err
	}
	return doctor.Doctor{Config: a.config.Doctor, Dir: a.config.Dir, Engine: a.engine, Devices: a.devices.source,
		Disk: disk}.Check(ctx)
}

func (a *Agent) ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	return folders.ListDirectories(ctx, path)
}

// engineNeeds is what the watch of the engine needs of the agent.
type engineNeeds struct{ *Agent }

func (a engineNeeds) Reconcile(ctx context.Context) error {
	if err := a.reconcile(ctx); err != nil {
		return err
	}
	return a.askAttachment(ctx)
}

func (a engineNeeds) Sweep(ctx context.Context) error { return a.networks.Sweep(ctx) }

func (a engineNeeds) ContainerChanged(state engine.State) { a.containerChanged(state) }

func (a engineNeeds) PublishMachine() { a.publishMachine() }

func (a engineNeeds) PlanAgain() { a.rouse() }

// heed returns err. Everybody learns of it where the engine does not answer.
func (a *Agent) heed(err error) error { return a.health.Heed(err) }

// directories says which directories of the machine sessions and folders may have.
type directories struct{ *Agent }

func (a directories) OffLimits() offlimits.Places {
	info := a.health.State().Info
	places := a.config.OffLimits
	places.Own = append(slices.Clip(places.Own), a.config.Dir)
	places.Engine, places.Socket = info.DataRoot, info.Socket
	return places
}

func (a directories) Opened() (dirs map[string][]string, release func()) {
	a.allowed.write.Lock()
	return opened(a.allowed.all()), a.allowed.write.Unlock
}

// diskFree is the room on the disk of a folder.
func diskFree(dir string) (gpu.Bytes, error) {
	usage, err := disk.Usage(dir)
	if err != nil {
		return 0, err
	}
	return gpu.Bytes(usage.Free), nil
}
