package session

import (
	"context"
	"time"

	"slipway/gpu"
)

// Accelerators shows an agent's devices, who holds them and what was used.
type Accelerators interface {
	// Devices describes every device with its newest sample and its holders.
	//
	//rpc:method name=devices effect=read who=custom
	Devices(ctx context.Context) (DeviceBoard, error)
	// DeviceHistory returns the samples of a device since a time, at most one
	// each minute beyond the last hour.
	//
	//rpc:method name=device.history effect=read who=anyone
	DeviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]DevicePoint, error)
	// Accounts returns what was used in a span of time, one row for each
	// session, device and bucket; devices that no session held are rows without
	// a session.
	//
	//rpc:method name=accounts effect=read limit=long who=custom
	Accounts(ctx context.Context, span AccountSpan) ([]Account, error)
}

// Queue changes what waits and what idles.
type Queue interface {
	// SetPriority changes the priority of a PENDING session;
	// session_update_conflict for any other.
	//
	//rpc:method name=priority effect=again who=owner audit=priority
	SetPriority(ctx context.Context, id ID, priority int) (Session, error)
	// Keep protects a session from being reclaimed as idle for so long.
	//
	//rpc:method name=keep effect=again who=owner audit=length
	Keep(ctx context.Context, id ID, length Duration) (Session, error)
	// SimulateIdle says what an idle policy would have made of a session, from
	// what was measured of it. It changes nothing.
	//
	//rpc:method name=idle.simulate effect=read who=owner
	SimulateIdle(ctx context.Context, id ID, policy IdlePolicy) (IdleSimulation, error)
}

// DeviceBoard is the state of an agent's devices.
type DeviceBoard struct {
	Source   string        `json:"source"` // nvml, drm, sim or none
	Text     string        `json:"text"`   // why there is none, or what was lost, in words
	Quantum  gpu.Share     `json:"quantum"`
	Strategy string        `json:"strategy"` // fill or evenly
	Attach   string        `json:"attach"`   // cdi, device-request, runtime, nodes, sim or none
	Devices  []DeviceState `json:"devices"`
	At       time.Time     `json:"at"`
}

// DeviceState is one device now. What a device may not report is nil.
type DeviceState struct {
	Device      gpu.Device     `json:"device"`
	Free        gpu.Share      `json:"free"`       // not promised
	MemoryFree  gpu.Bytes      `json:"memoryFree"` // by both books
	Level       gpu.Level      `json:"level"`      // what a share of it would be kept by
	Util        *int           `json:"util,omitempty"`
	MemoryUsed  *gpu.Bytes     `json:"memoryUsed,omitempty"`
	Power       *gpu.MilliWatt `json:"power,omitempty"`
	Temperature *int           `json:"temperature,omitempty"`
	Holders     []DeviceHolder `json:"holders"`
	// Unread means that its driver does not tell now what is free, so that nothing
	// of it is given and nothing of it is known.
	Unread bool `json:"unread,omitempty"`
	// Over says in a clause how more of it is allocated than it has now, so that
	// nothing further of it is given; empty: that is not so.
	Over string `json:"over,omitempty"`
}

// DeviceHolder is a session or a foreign process on a device.
type DeviceHolder struct {
	Session  ID         `json:"session,omitempty"` // empty: a process that is no session's
	Name     string     `json:"name"`              // of the session, or the process
	Owner    string     `json:"owner"`
	PID      int        `json:"pid,omitempty"` // of a foreign process
	Share    gpu.Share  `json:"share"`
	Promised gpu.Bytes  `json:"promised"`
	Memory   *gpu.Bytes `json:"memory,omitempty"` // what it really holds
	Util     *int       `json:"util,omitempty"`   // permyriad
}

// DevicePoint is one sample of a device's history.
type DevicePoint struct {
	At          time.Time      `json:"at"`
	Util        *int           `json:"util,omitempty"` // permyriad
	MemoryUsed  *gpu.Bytes     `json:"memoryUsed,omitempty"`
	Power       *gpu.MilliWatt `json:"power,omitempty"`
	Temperature *int           `json:"temperature,omitempty"`
}

// AccountSpan says which accounts are wanted.
type AccountSpan struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Bucket time.Duration `json:"bucket"` // an hour or a day; 0: one for the whole span
}

// Account is what one session used of one device, or of CPU and memory where
// Device is empty, in one bucket.
type Account struct {
	Start      time.Time `json:"start"`
	Session    ID        `json:"session,omitempty"`
	Name       string    `json:"name"`
	Owner      string    `json:"owner"`
	Label      string    `json:"label,omitempty"`
	Device     gpu.UUID  `json:"device,omitempty"`
	Kind       string    `json:"kind"`       // session, other, idle or unattributed
	CPUMs      int64     `json:"cpuMs"`      // busy CPU time
	AllocCPUMs int64     `json:"allocCpuMs"` // granted CPU time
	GPU        DeviceUse `json:"gpu"`
}

// Add adds what another row counted. Of peaks the larger one stays.
func (a *Account) Add(b Account) {
	a.CPUMs += b.CPUMs
	a.AllocCPUMs += b.AllocCPUMs
	g, h := &a.GPU, b.GPU
	g.AllocMs += h.AllocMs
	g.BusyMs += h.BusyMs
	g.VRAMMiBMs += h.VRAMMiBMs
	g.VRAMPeak = max(g.VRAMPeak, h.VRAMPeak)
	g.EnergyDynamic += h.EnergyDynamic
	g.EnergyIdle += h.EnergyIdle
	g.CoveredMs += h.CoveredMs
	g.EstimatedMs += h.EstimatedMs
	g.GapMs += h.GapMs
}

// DeviceUse is what was used of a device, in separate counters that are never
// derived from one another. Covered, Estimated and Gap say how much of the time
// was measured, estimated or missed.
type DeviceUse struct {
	AllocMs int64 `json:"allocMs"` // time × share granted, in milliseconds of a whole device
	BusyMs  int64 `json:"busyMs"`  // time with work of it on the device
	// MiB held × milliseconds: bytes would fill 64 bits in 30 hours of 80 GiB
	VRAMMiBMs     int64          `json:"vramMiBMs"`
	VRAMPeak      gpu.Bytes      `json:"vramPeak"` // most bytes held at one time
	EnergyDynamic gpu.MilliJoule `json:"energyDynamic"`
	EnergyIdle    gpu.MilliJoule `json:"energyIdle"`
	CoveredMs     int64          `json:"coveredMs"`
	EstimatedMs   int64          `json:"estimatedMs"`
	GapMs         int64          `json:"gapMs"`
}
