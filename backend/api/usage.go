package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// UsageReport is what was used in a span of time.
type UsageReport struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	By      string    `json:"by"`     // session, day, label, owner, device, or empty: each session and device by itself
	Bucket  string    `json:"bucket"` // hour or day, or empty: the whole span
	Rows    []Account `json:"rows"`
	Totals  []Account `json:"totals"`  // one for each kind
	Missing []string  `json:"missing"` // agents that were not reached, whose accounts are not in here
}

// Account is what was used by whom in one bucket of time. Its counters are
// independent and none is derived from another. Sessions, other processes, idle
// devices and what could not be attributed add up to what the devices counted.
// A field that rows were summed over is empty.
type Account struct {
	Start time.Time `json:"start"` // of the bucket
	// session, other (processes of no session), idle (devices without work) or unattributed
	Kind          string `json:"kind"`
	Session       string `json:"session,omitempty"` // id
	Name          string `json:"name,omitempty"`    // of the session
	Owner         string `json:"owner,omitempty"`
	Label         string `json:"label,omitempty"` // project
	Agent         string `json:"agent,omitempty"`
	Device        string `json:"device,omitempty"`     // UUID; empty in a row that counts CPU and memory
	DeviceName    string `json:"deviceName,omitempty"` // for example GPU 0 · H200
	CPUMs         int64  `json:"cpuMs"`                // busy CPU time
	AllocCPUMs    int64  `json:"allocCpuMs"`           // time × CPUs granted
	AllocGPUMs    int64  `json:"allocGpuMs"`           // time × share granted, of whole devices
	BusyGPUMs     int64  `json:"busyGpuMs"`            // time with its work on a device
	VRAMMiBMs     int64  `json:"vramMiBMs"`            // MiB held × milliseconds
	VRAMPeak      int64  `json:"vramPeak"`             // most bytes held at one time, on one device
	EnergyDynamic int64  `json:"energyDynamic"`        // millijoules of work
	EnergyIdle    int64  `json:"energyIdle"`           // millijoules of devices kept ready
	CoveredMs     int64  `json:"coveredMs"`            // measured device time
	EstimatedMs   int64  `json:"estimatedMs"`          // estimated device time
	GapMs         int64  `json:"gapMs"`                // missed device time
}

// ResourceSummary is one agent: what its machine has, what is promised, what
// is really used and how much of it is one's own.
type ResourceSummary struct {
	Agent    string               `json:"agent"`
	Group    string               `json:"group"` // the resource group that it is in
	Online   bool                 `json:"online"`
	Live     int                  `json:"live"` // one's own sessions that have not ended
	Total    hub.Amount           `json:"total"`
	Promised hub.Amount           `json:"promised"` // to all sessions
	Mine     hub.Amount           `json:"mine"`     // promised to one's own sessions
	Free     hub.Amount           `json:"free"`     // what a launch would find now
	Load     hub.Amount           `json:"load"`     // really used; a device's busy part counts as its share
	Devices  []hub.DeviceResource `json:"devices"`
	Limit    *Limit               `json:"limit,omitempty"` // the most that one may hold there; absent: no limit
}

// Limit is the most that one may hold of an agent's machine. An amount of 0 is
// not limited.
type Limit struct {
	session.Allowance
	SessionsHeld int `json:"sessionsHeld"` // one's own that hold resources
}
