package agent

import (
	"cmp"
	"context"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"slipway/backend/agent/doctor"
	"slipway/backend/agent/ledger"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

func (a *Agent) Logs(ctx context.Context, id session.ID, opts session.LogOptions) (io.ReadCloser, error) {
	return a.logs.Read(ctx, id, opts)
}

// largestDevice returns the memory that programs get of the device that has most of it; 0 without devices.
func (a *Agent) largestDevice() (most gpu.Bytes) {
	for _, d := range a.devices.Now().Devices {
		most = max(most, d.Usable())
	}
	return most
}

// lastLines returns the end of a session's log; nil if it cannot be read.
func (a *Agent) lastLines(ctx context.Context, id session.ID) []string {
	log, err := a.logs.Read(ctx, id, session.LogOptions{Tail: 6})
	if err != nil {
		return nil
	}
	defer log.Close()
	text, _ := io.ReadAll(io.LimitReader(log, 16<<10)) // what there is explains something
	lines := strings.Split(strings.ToValidUTF8(strings.TrimSpace(string(text)), "\uFFFD"), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return line == "" })
}

// Usage returns the samples of a session since a time, of its last hour at most.
func (a *Agent) Usage(_ context.Context, id session.ID, since time.Time) ([]session.Usage, error) {
	if _, err := a.config.Store.Get(id); err != nil {
		return nil, err
	}
	return a.meter.Since(id, since), nil
}

func (a *Agent) FindImage(ctx context.Context, ref string) (session.Image, error) {
	return a.images.FindImage(ctx, ref)
}

// Arrivals receives the images that a person sends. It takes a name from another image only when asked to replace it.
func (a *Agent) Arrivals(owner string) session.ImageArrivals { return a.images.Arrivals(owner) }

func (a *Agent) Machine(context.Context) (session.Machine, error) {
	a.meter.Refresh()
	return a.describe()
}

// hasDevice reports whether sessions can get a device, of whatever vendor.
func (a *Agent) hasDevice() bool {
	info := a.health.State().Info
	if info.Slurm != nil {
		return slices.ContainsFunc(info.Slurm.Partitions, func(one session.SlurmPartition) bool {
			return len(one.GPUs) > 0
		})
	}
	refused := slices.Contains(info.Lacks, session.FeatureNVIDIA)
	return slices.ContainsFunc(a.devices.Now().Devices, func(d gpu.Device) bool {
		return d.Vendor != gpu.NVIDIA || !refused
	})
}

// describe describes the machine with the load as last measured.
func (a *Agent) describe() (session.Machine, error) {
	state := a.health.State()
	var info engine.Info // as long as nothing can be asked of the engine
	if state.Known {
		info = state.Info
	}
	hostname, _ := os.Hostname() // empty if it fails
	m := session.Machine{
		Agent: a.config.Name, Instance: a.records.Instance(), Platform: session.Platform{
			Engine:        info.Name,
			EngineVersion: info.Version,
			Version:       a.config.Version,
			Hostname:      cmp.Or(a.config.Host.Hostname, hostname, "localhost"),
			OS:            info.OS,
			Arch:          info.Arch,
			Lacks:         info.Lacks,
			Slurm:         info.Slurm,
		}, Capacity: session.Capacity{CPUs: info.CPUs, Memory: info.Memory, Warm: a.warm.Count()},
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
	return a.folders.ListDirectories(ctx, path)
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

func (a *Agent) ServiceAccounts(_ context.Context, span session.AccountSpan) ([]session.ServiceAccount, error) {
	return a.accounts.ReadServices(a.devices.Moment(), span)
}

func (a *Agent) board(live []session.Session) session.DeviceBoard {
	giving := a.config.Devices.Giving
	l := ledger.New(a.devices.Now(), giving, live, a.others.List(), a.config.Clock.Now())
	b := l.Board(a.attached.Now(), giving.Strategy)
	if slices.Contains(a.health.State().Info.Lacks, session.FeatureDevices) {
		b.Devices, b.Text = []session.DeviceState{}, session.FeatureDevices.Missing().English()
	}
	return b
}
