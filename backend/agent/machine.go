package agent

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"time"

	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/ledger"
	"slipway/backend/session"
	"slipway/gpu"
)

func (a *Agent) Machine(context.Context) (session.Machine, error) {
	a.meter.Refresh()
	return a.describe()
}

// describe describes the machine with the load as last measured.
func (a *Agent) describe() (session.Machine, error) {
	state := a.health.State()
	info := state.Info
	hostname, _ := os.Hostname() // empty if it fails
	m := session.Machine{
		Agent: a.config.Name, Instance: a.records.Instance(), Platform: session.Platform{
			Engine:        info.Name,
			EngineVersion: info.Version,
			Version:       a.config.Version,
			Hostname:      cmp.Or(a.config.Host.Hostname, hostname, "localhost"),
			OS:            info.OS,
			Arch:          info.Arch,
		}, Capacity: session.Capacity{CPUs: info.CPUs, Memory: info.Memory},
		Warnings: append([]session.Warning{}, info.Warnings...),
		Caller: session.Caller{
			Owner:     a.config.Owner,
			Role:      session.RoleAdmin,
			Allowance: a.Allowance(a.config.Owner),
		}, Load: a.meter.Load(),
	}
	if !state.Known {
		m.OS, m.Arch = runtime.GOOS, runtime.GOARCH
	}
	for _, warning := range []func() (session.Warning, bool){a.health.Warning, a.others.Warning, a.queue.Warning,
		a.records.Warning} {
		if w, ok := warning(); ok {
			m.Warnings = append(m.Warnings, w)
		}
	}
	live, _, err := a.records.Live()
	for _, s := range live {
		if s.Status.HoldsResources() {
			m.UsedCPUs += len(s.Grants.CPUs)
			m.UsedMemory += s.Grants.Memory
		}
	}
	return m, err
}

func (a *Agent) Doctor(ctx context.Context) ([]session.Check, error) {
	disk := func(ctx context.Context) (free, total gpu.Bytes, err error) {
		m, err := a.Machine(ctx)
		return m.Load.DiskFree, m.Load.DiskTotal, err
	}
	return doctor.Doctor{Config: a.config.Doctor, Dir: a.config.Dir, Engine: a.config.Engine, Devices: a.devices.Source,
		Disk: disk}.Check(ctx)
}

func (a *Agent) ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	return folders.ListDirectories(ctx, path)
}

func (a *Agent) Devices(context.Context) (session.DeviceBoard, error) {
	live, err := a.records.LiveSessions()
	if err != nil {
		return session.DeviceBoard{}, err
	}
	return a.board(live), nil
}

func (a *Agent) DeviceHistory(_ context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	return a.devices.History(device, since)
}

func (a *Agent) Accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	return a.accounts.Read(a.devices.Moment(), span)
}

func (a *Agent) board(live []session.Session) session.DeviceBoard {
	giving := a.config.Devices.Giving
	l := ledger.New(a.devices.Now(), giving, live, a.others.List(), a.config.Clock.Now())
	return l.Board(a.attached.Now(), giving.Strategy)
}
