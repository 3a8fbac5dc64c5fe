package agent

import (
	"cmp"
	"context"
	"os"
	"runtime"
	"time"

	"slipway/backend/agent/accounts"
	"slipway/backend/agent/devices"
	"slipway/backend/agent/doctor"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/health"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/meter"
	"slipway/backend/agent/others"
	"slipway/backend/agent/people"
	"slipway/backend/agent/queue"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/gpu"
)

// machine describes the machine, its devices, and what they were used for.
type machine struct {
	config   *Config
	health   *health.Watch
	records  *records.Records
	people   *people.People
	queue    *queue.Queue
	meter    *meter.Meter
	devices  *devices.Devices
	attached *devices.Attachment
	others   *others.Others
	accounts *accounts.Books
}

func (h *machine) Machine(context.Context) (session.Machine, error) {
	h.meter.Refresh()
	return h.describe()
}

// describe describes the machine with the load as last measured.
func (h *machine) describe() (session.Machine, error) {
	state := h.health.State()
	info := state.Info
	m := session.Machine{
		Agent: h.config.Name, Instance: h.config.Store.Instance(), Engine: info.Name, EngineVersion: info.Version,
		Version:  h.config.Version,
		Hostname: cmp.Or(h.config.Host.Hostname, hostname()), OS: info.OS, Arch: info.Arch, CPUs: info.CPUs,
		Memory: info.Memory, Warnings: append([]session.Warning{}, info.Warnings...),
		Owner: h.config.Owner, Role: session.RoleAdmin, Allowance: h.people.Allowance(h.config.Owner),
	}
	if !state.Known {
		m.OS, m.Arch = runtime.GOOS, runtime.GOARCH
	}
	if w, ok := h.health.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := h.others.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := h.queue.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	if w, ok := h.records.Warning(); ok {
		m.Warnings = append(m.Warnings, w)
	}
	m.Load = h.meter.Load()
	live, _, err := h.config.Store.Live()
	for _, s := range live {
		if s.Status.HoldsResources() {
			m.UsedCPUs += len(s.Grants.CPUs)
			m.UsedMemory += s.Grants.Memory
		}
	}
	return m, err
}

func (h *machine) Doctor(ctx context.Context) ([]session.Check, error) {
	disk := func(ctx context.Context) (free, total gpu.Bytes, err error) {
		m, err := h.Machine(ctx)
		return m.Load.DiskFree, m.Load.DiskTotal, err
	}
	return doctor.Doctor{Config: h.config.Doctor, Dir: h.config.Dir, Engine: h.config.Engine, Devices: h.devices.Source,
		Disk: disk}.Check(ctx)
}

func (h *machine) ListDirectories(ctx context.Context, path string) (session.DirectoryListing, error) {
	return folders.ListDirectories(ctx, path)
}

func (h *machine) Devices(context.Context) (session.DeviceBoard, error) {
	live, err := h.config.Store.LiveSessions()
	if err != nil {
		return session.DeviceBoard{}, err
	}
	return h.board(live), nil
}

func (h *machine) DeviceHistory(_ context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	return h.devices.History(device, since)
}

func (h *machine) Accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	return h.accounts.Read(h.devices.Moment(), span)
}

// board describes the devices as they are now.
func (h *machine) board(live []session.Session) session.DeviceBoard {
	l := ledger.New(h.devices.Now(), h.config.Devices.Giving, live, h.others.List(), h.config.Clock.Now())
	return l.Board(h.attached.Now(), h.config.Devices.Giving.Strategy)
}

// hostname is what the machine calls itself.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
