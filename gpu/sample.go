package gpu

import (
	"context"
	"time"
)

// Moment is one point in time on three clocks. Durations are never taken from Wall, which people and time servers set.
type Moment struct {
	BootID string        `json:"bootId"` // changes with every boot; Boot and Awake compare only within one
	Boot   time.Duration `json:"boot"`   // since boot, suspended time included (CLOCK_BOOTTIME)
	Awake  time.Duration `json:"awake"`  // since boot, suspended time left out (CLOCK_MONOTONIC)
	Wall   time.Time     `json:"wall"`   // what a clock on the wall shows
}

// Before returns the moment d earlier in the same boot, as if the machine had been awake since.
func (m Moment) Before(d time.Duration) Moment {
	return Moment{BootID: m.BootID, Boot: m.Boot - d, Awake: m.Awake - d, Wall: m.Wall.Add(-d)}
}

// Epoch is a time in which the counters of a device only grow. Driver changes whenever the driver is loaded again.
type Epoch struct {
	Boot   string `json:"boot"`
	Driver string `json:"driver"`
}

// Sample is what was read from all devices at one moment. An unknown value is nil and never zero.
type Sample struct {
	At    Moment `json:"at"`
	Epoch Epoch  `json:"epoch"`

	// Since is the start, on the Boot clock, of the time that the Util values average over; the end is At. Zero means
	// since the previous sample of the same source. A source that was just started and reads the buffer of a driver
	// sets it to how far back that reached.
	Since time.Duration `json:"since,omitempty"`

	Devices   []DeviceSample  `json:"devices"`
	Processes []ProcessSample `json:"processes"`
	Ended     []EndedProcess  `json:"ended,omitempty"` // since the previous sample, if the driver keeps records
	Lost      []string        `json:"lost,omitempty"`  // what could not be read, in sentences
	Gone      []LostDevice    `json:"gone,omitempty"`  // devices of the last inventory that cannot be used now
}

// DeviceSample is the state of one device.
type DeviceSample struct {
	UUID        UUID        `json:"uuid"`
	Util        *int        `json:"util,omitempty"`       // time with work, in hundredths of a percent
	MemoryUsed  *Bytes      `json:"memoryUsed,omitempty"` // by anybody, what the driver reserved left out
	MemoryFree  *Bytes      `json:"memoryFree,omitempty"` // as the driver says; nil: usable less used
	Power       *MilliWatt  `json:"power,omitempty"`
	PowerLimit  *MilliWatt  `json:"powerLimit,omitempty"`
	Energy      *MilliJoule `json:"energy,omitempty"`      // a counter that only grows within an epoch
	Temperature *int        `json:"temperature,omitempty"` // in degrees Celsius
	Blind       bool        `json:"blind,omitempty"`       // its processes could not be listed
}

// ProcessSample is one process on one device or instance; a process on two devices is two samples. PID and Start
// together name a process, because the kernel reuses numbers.
type ProcessSample struct {
	PID       int    `json:"pid"`
	Start     uint64 `json:"start"` // field 22 of /proc/PID/stat: ticks of 10 ms since boot; 0: unknown
	Device    UUID   `json:"device"`
	Instance  UUID   `json:"instance,omitempty"`
	Memory    *Bytes `json:"memory,omitempty"`
	Util      *int   `json:"util,omitempty"` // hundredths of a percent of the device, since [Sample.Since]
	Name      string `json:"name,omitempty"`
	User      string `json:"user,omitempty"`
	Container string `json:"container,omitempty"` // 64-digit ids in its cgroup path, outermost first, with commas
}

// EndedProcess is a process that ended since the previous sample, by the driver's records. It is reported once.
type EndedProcess struct {
	PID       int           `json:"pid"`
	Device    UUID          `json:"device"`
	Began     time.Duration `json:"began"` // when it began to use the device, on the Boot clock
	Busy      time.Duration `json:"busy"`  // how long it kept the device busy since the previous sample
	Peak      *Bytes        `json:"peak,omitempty"`
	Known     bool          `json:"known"` // whose it was could be found out; else what follows is empty
	Name      string        `json:"name,omitempty"`
	User      string        `json:"user,omitempty"`
	Container string        `json:"container,omitempty"` // as in [ProcessSample]
}

// Device finds the sample of one device.
func (s Sample) Device(uuid UUID) (DeviceSample, bool) {
	for _, d := range s.Devices {
		if d.UUID == uuid {
			return d, true
		}
	}
	return DeviceSample{}, false
}

// Source finds and measures devices. Its methods may be called by several goroutines and take turns.
type Source interface {
	// Inventory lists the devices in the order of their Index; a lost one may stay in the list as it was last seen,
	// with its [Loss]. A machine without devices has an empty list and no error; a driver that does not respond is an
	// [*Error] with code [CodeSourceUnavailable].
	Inventory(ctx context.Context) ([]Device, error)
	// Sample reads all devices. What could not be read is in Lost and nil in the sample; an error means that nothing
	// could be read.
	Sample(ctx context.Context) (Sample, error)
	// Close ends what the source started. It may be called twice.
	Close() error
}

// Empty is the source of a machine without devices.
type Empty struct {
	Now func() Moment // the clock; required
}

var _ Source = Empty{}

// Inventory lists nothing.
func (Empty) Inventory(context.Context) ([]Device, error) { return nil, nil }

// Sample is empty but for its time.
func (e Empty) Sample(context.Context) (Sample, error) {
	at := e.Now()
	return Sample{At: at, Epoch: Epoch{Boot: at.BootID}}, nil
}

// Close does nothing.
func (Empty) Close() error { return nil }
