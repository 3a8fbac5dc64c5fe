package gpu

import (
	"errors"
	"fmt"
)

// Counters is what somebody was allocated and used of one device. Every value only grows and is measured by itself.
type Counters struct {
	AllocGPUMs      int64      `json:"allocGpuMs"`      // Σ share × time: GPU-milliseconds allocated
	BusyGPUMs       int64      `json:"busyGpuMs"`       // milliseconds with work on the device
	VRAM            ByteTime   `json:"vramByteMs"`      // memory held over time
	VRAMPeak        Bytes      `json:"vramPeak"`        // most memory held at once
	VRAMAlloc       ByteTime   `json:"vramAllocByteMs"` // memory allocated over time
	EnergyDyn       MilliJoule `json:"energyDynMj"`     // consumed by work
	EnergyIdle      MilliJoule `json:"energyIdleMj"`    // part of the idle power of the device
	EnergyEstimated MilliJoule `json:"energyEstMj"`     // part of EnergyDyn divided by allocation, not measured
	CoveredMs       int64      `json:"coveredMs"`       // time in which use was measured
	EstimatedMs     int64      `json:"estimatedMs"`     // time in which it was divided by allocation
	GapMs           int64      `json:"gapMs"`           // time in which use is unknown
}

// Add counts d on top of c.
func (c *Counters) Add(d Counters) {
	c.AllocGPUMs += d.AllocGPUMs
	c.BusyGPUMs += d.BusyGPUMs
	c.VRAM = c.VRAM.Plus(d.VRAM)
	c.VRAMPeak = max(c.VRAMPeak, d.VRAMPeak)
	c.VRAMAlloc = c.VRAMAlloc.Plus(d.VRAMAlloc)
	c.EnergyDyn += d.EnergyDyn
	c.EnergyIdle += d.EnergyIdle
	c.EnergyEstimated += d.EnergyEstimated
	c.CoveredMs += d.CoveredMs
	c.EstimatedMs += d.EstimatedMs
	c.GapMs += d.GapMs
}

// Measured is how much of the time was measured, in hundredths of a percent; nil when no time has passed.
func (c Counters) Measured() *int {
	all := c.CoveredMs + c.EstimatedMs + c.GapMs
	if all == 0 {
		return nil
	}
	return new(int(c.CoveredMs * 10000 / all))
}

func (c Counters) negative() bool {
	return min(c.AllocGPUMs, c.BusyGPUMs, int64(c.VRAMPeak), int64(c.EnergyDyn), int64(c.EnergyIdle),
		int64(c.EnergyEstimated), c.CoveredMs, c.EstimatedMs, c.GapMs) < 0
}

// Names in place of a session, for what no session can be charged with, so that the rows of a device always sum to what
// the device counted.
const (
	Others       = "@others"       // processes outside of sessions
	Idle         = "@idle"         // idle energy of what was not allocated
	Unattributed = "@unattributed" // use that no process explains
)

// Row is what one session, or [Others] and the like, had of one device. A session that got the device twice has two
// rows of different Part; readers add them up.
type Row struct {
	Session  string   `json:"session"`
	Device   UUID     `json:"device"`
	Part     int64    `json:"part"`
	Counters Counters `json:"counters"`

	// What is between two measurements.
	Carry   int64 `json:"carry,omitempty"`   // GPU-microseconds not yet in AllocGPUMs
	Held    int64 `json:"held,omitempty"`    // all milliseconds of the allocation
	Pending int64 `json:"pending,omitempty"` // those since the last measurement
	Weight  int64 `json:"weight,omitempty"`  // share × milliseconds since energy was last divided
	Waits   int   `json:"waits,omitempty"`   // measurements since the session ended
}

func (r *Row) check() error {
	c := r.Counters
	if c.negative() || r.Carry < 0 || r.Held < 0 || r.Pending < 0 || r.Weight < 0 {
		return fmt.Errorf("the row of %s on %s has a negative counter", r.Session, r.Device)
	}
	if known := c.CoveredMs + c.EstimatedMs + c.GapMs; known+r.Pending != r.Held {
		return fmt.Errorf("the row of %s on %s knows of %d ms and waits for %d, but %d were promised", r.Session,
			r.Device, known, r.Pending, r.Held)
	}
	if c.EnergyEstimated > c.EnergyDyn {
		return fmt.Errorf("the row of %s on %s estimates more energy than it has", r.Session, r.Device)
	}
	return nil
}

// Check audits the accounts: on every device, the rows, with those of ended sessions, must sum to exactly what the
// device counted, and every row must account for all of its time. Healthy accounts have no errors.
func (a *Accounts) Check() []error {
	var errs []error
	for _, d := range a.state.Devices {
		var sum Counters
		sum.Add(d.Closed)
		for _, r := range a.state.Rows {
			if r.Device == d.UUID {
				sum.Add(r.Counters)
			}
		}
		if sum.BusyGPUMs != d.Counted.BusyGPUMs || sum.VRAM != d.Counted.VRAM {
			errs = append(errs, fmt.Errorf("%s counted %d ms busy and %s byte-ms, and its rows have %d and %s",
				d.UUID, d.Counted.BusyGPUMs, d.Counted.VRAM, sum.BusyGPUMs, sum.VRAM))
		}
		if sum.EnergyDyn != d.Counted.EnergyDyn || sum.EnergyIdle != d.Counted.EnergyIdle {
			errs = append(errs, fmt.Errorf("%s counted %d + %d mJ, and its rows have %d + %d",
				d.UUID, d.Counted.EnergyDyn, d.Counted.EnergyIdle, sum.EnergyDyn, sum.EnergyIdle))
		}
	}
	seen := map[rowKey]bool{}
	for _, r := range a.state.Rows {
		if err := r.check(); err != nil {
			errs = append(errs, err)
		}
		if seen[rowKey{r.Session, r.Device}] {
			errs = append(errs, fmt.Errorf("%s has two open rows on %s", r.Session, r.Device))
		}
		seen[rowKey{r.Session, r.Device}] = true
	}
	if len(a.rows) != len(a.state.Rows) {
		errs = append(errs, errors.New("the index of rows does not match the rows"))
	}
	return errs
}
