package session

import (
	"context"
	"time"

	"slipway/gpu"
)

// Accelerators shows an agent's devices, their holders and their use.
type Accelerators interface {
	// Devices describes every device with its newest sample and its holders.
	//
	//rpc:method name=devices effect=read who=custom
	Devices(ctx context.Context) (DeviceBoard, error)
	// DeviceHistory returns the samples of a device since a time, at most one each minute beyond the last hour.
	//
	//rpc:method name=device.history effect=read who=anyone
	DeviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]DevicePoint, error)
	// Accounts returns the use in a span of time, one row for each session, device and bucket; devices without a
	// session are rows without one.
	//
	//rpc:method name=accounts effect=read limit=long who=custom
	Accounts(ctx context.Context, span AccountSpan) ([]Account, error)
	// ServiceAccounts returns what was asked of services in a span of time and what their replicas used, one row for
	// each revision, token and bucket; services of the caller, those of everybody for an admin. Services and tokens
	// that were removed are included.
	//
	//rpc:method name=service.accounts effect=read limit=long who=custom
	ServiceAccounts(ctx context.Context, span AccountSpan) ([]ServiceAccount, error)
}

// Queue changes what waits and what idles.
type Queue interface {
	// SetPriority changes the priority of a PENDING session; session_update_conflict for any other.
	//
	//rpc:method name=priority effect=again who=owner audit=priority
	SetPriority(ctx context.Context, id ID, priority int) (Session, error)
	// SetAccelerator changes the devices that a PENDING session asks for, which keeps its place;
	// session_update_conflict for any other.
	//
	//rpc:method name=accelerator effect=again who=owner audit=asked
	SetAccelerator(ctx context.Context, id ID, asked gpu.Request) (Session, error)
	// Keep protects a session from being reclaimed as idle for so long.
	//
	//rpc:method name=keep effect=again who=owner audit=length
	Keep(ctx context.Context, id ID, length Duration) (Session, error)
	// SimulateIdle says what an idle policy would have done with a session, from its measurements. It changes nothing.
	//
	//rpc:method name=idle.simulate effect=read who=owner
	SimulateIdle(ctx context.Context, id ID, policy IdlePolicy) (IdleSimulation, error)
	// Prefer has a container wait for sessions like this one, besides those like the last ones, or not any longer. An
	// agent forgets it when it ends.
	//
	//rpc:method name=prefer effect=again who=owner
	Prefer(ctx context.Context, id ID, on bool) error
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

// DeviceState is one device now.
type DeviceState struct {
	Device gpu.Device `json:"device"`
	DeviceStatus
}

// DeviceStatus is the use of a device and how much of it is free. What a device may not report is nil.
type DeviceStatus struct {
	Free        gpu.Share      `json:"free"`                  // not allocated, in thousandths
	MemoryFree  gpu.Bytes      `json:"memoryFree"`            // neither allocated nor in use
	Level       gpu.Level      `json:"level"`                 // what limits a share of it
	Util        *int           `json:"util,omitempty"`        // time with work, in hundredths of a percent
	MemoryUsed  *gpu.Bytes     `json:"memoryUsed,omitempty"`  // by anybody
	Power       *gpu.MilliWatt `json:"power,omitempty"`       // milliwatts
	Temperature *int           `json:"temperature,omitempty"` // degrees Celsius
	Holders     []DeviceHolder `json:"holders"`
	Unread      bool           `json:"unread,omitempty"` // its driver does not respond: none of it is allocated now
	Over        string         `json:"over,omitempty"`   // how more of it is allocated than it has now
}

// DeviceHolder is a session or a foreign process on a device.
type DeviceHolder struct {
	Session  ID         `json:"session,omitempty"` // empty: a foreign process
	Name     string     `json:"name"`              // of the session, or the process
	Owner    string     `json:"owner"`
	PID      int        `json:"pid,omitempty"` // of a foreign process
	Share    gpu.Share  `json:"share"`
	Promised gpu.Bytes  `json:"promised"`
	Memory   *gpu.Bytes `json:"memory,omitempty"` // in use
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

// AccountSpan selects accounts.
type AccountSpan struct {
	From   time.Time     `json:"from"`
	To     time.Time     `json:"to"`
	Bucket time.Duration `json:"bucket"` // an hour or a day; 0: one for the whole span
}

// Account is what one session used of one device, or of CPU and memory if Device is empty, in one bucket of time.
type Account struct {
	Start time.Time `json:"start"` // of the bucket
	// session, other (processes of no session), idle (devices without work) or unattributed
	Kind       string   `json:"kind"`
	Session    ID       `json:"session,omitempty"`
	Name       string   `json:"name,omitempty"` // of the session
	Owner      string   `json:"owner,omitempty"`
	Label      string   `json:"label,omitempty"`  // project
	Device     gpu.UUID `json:"device,omitempty"` // empty in a row that counts CPU and memory
	CPUMs      int64    `json:"cpuMs"`            // busy CPU time
	AllocCPUMs int64    `json:"allocCpuMs"`       // time × CPUs granted
	DeviceUse
}

// Add adds another row. Of peaks the larger one counts.
func (a *Account) Add(b Account) {
	a.CPUMs += b.CPUMs
	a.AllocCPUMs += b.AllocCPUMs
	a.DeviceUse.Add(b.DeviceUse)
}

// Add adds another use.
func (u *DeviceUse) Add(d DeviceUse) {
	u.AllocGPUMs += d.AllocGPUMs
	u.BusyGPUMs += d.BusyGPUMs
	u.VRAMMiBMs += d.VRAMMiBMs
	u.VRAMPeak = max(u.VRAMPeak, d.VRAMPeak)
	u.EnergyDynamic += d.EnergyDynamic
	u.EnergyIdle += d.EnergyIdle
	u.CoveredMs += d.CoveredMs
	u.EstimatedMs += d.EstimatedMs
	u.GapMs += d.GapMs
}

// DeviceUse is the use of a device. Its time was measured (covered), estimated, or missed (gap).
type DeviceUse struct {
	AllocGPUMs int64 `json:"allocGpuMs"` // time × share granted, of whole devices
	BusyGPUMs  int64 `json:"busyGpuMs"`  // time with its work on a device
	// MiB × milliseconds: bytes would fill 64 bits in 30 hours of 80 GiB
	VRAMMiBMs     int64          `json:"vramMiBMs"`
	VRAMPeak      gpu.Bytes      `json:"vramPeak"`      // most bytes at one time, on one device
	EnergyDynamic gpu.MilliJoule `json:"energyDynamic"` // millijoules of work
	EnergyIdle    gpu.MilliJoule `json:"energyIdle"`    // millijoules of devices kept ready
	CoveredMs     int64          `json:"coveredMs"`     // measured device time
	EstimatedMs   int64          `json:"estimatedMs"`   // estimated device time
	GapMs         int64          `json:"gapMs"`         // missed device time
}
