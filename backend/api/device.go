package api

import "time"

// Accelerator is a request for devices as it was understood. Exactly one of
// shares, devices, profile and memory is set; text is what people write.
type Accelerator struct {
	Text    string `json:"text"`              // 0.5, 2, mig:1g.10gb, mig:1g.10gb:2 or vram:12g
	Shares  int    `json:"shares,omitempty"`  // thousandths of a device
	Devices int    `json:"devices,omitempty"` // whole devices
	Profile string `json:"profile,omitempty"` // of MIG instances
	Count   int    `json:"count,omitempty"`   // how many instances of the profile
	Memory  int64  `json:"memory,omitempty"`  // on one device, in bytes
}

// Grant is what a session was promised on one device.
type Grant struct {
	Device   string `json:"device"`             // UUID
	Instance string `json:"instance,omitempty"` // UUID of a MIG instance
	Share    int    `json:"share"`              // thousandths of the device
	Memory   int64  `json:"memory"`             // bytes; 0: the device does not tell how much it has
	Whole    bool   `json:"whole,omitempty"`    // the device belongs to nobody else meanwhile
}

// Rounding says how what would be given differs from what was asked. A launch
// is refused while less would be given or a share is no whole number of quanta;
// asking for the given amount accepts it.
type Rounding struct {
	Asked  int    `json:"asked"`  // thousandths of a device; 0 when memory was asked for
	Given  int    `json:"given"`  // thousandths of a device
	Less   bool   `json:"less"`   // less would be given than was asked
	Why    string `json:"why"`    // one sentence
	Accept string `json:"accept"` // the text to ask with instead
}

// DeviceBoard is the state of one agent's devices.
type DeviceBoard struct {
	Agent    string        `json:"agent"`
	Online   bool          `json:"online"`   // false: the rest is as old as at says
	Source   string        `json:"source"`   // nvml, drm, sim or none
	Text     string        `json:"text"`     // why there is none, or what could not be read, in sentences
	Quantum  int           `json:"quantum"`  // smallest share, in thousandths of a device
	Strategy string        `json:"strategy"` // fill or evenly
	Attach   string        `json:"attach"`   // cdi, device-request, runtime, nodes, sim or none
	Devices  []DeviceState `json:"devices"`
	At       time.Time     `json:"at"`
}

// DeviceState is one device as it was measured last. A value that the device
// does not tell is absent and never 0.
type DeviceState struct {
	UUID         string           `json:"uuid"`
	Vendor       string           `json:"vendor"` // nvidia, amd, intel or sim
	Model        string           `json:"model"`
	Index        int              `json:"index"` // for display only: GPU 0
	PCI          string           `json:"pci,omitempty"`
	Driver       string           `json:"driver,omitempty"`
	Memory       int64            `json:"memory"`   // all of it, in bytes; 0: not told
	Reserved     int64            `json:"reserved"` // kept by the driver
	Instances    []DeviceInstance `json:"instances"`
	Capabilities []Capability     `json:"capabilities"`
	Free         int              `json:"free"`                  // not promised, in thousandths
	MemoryFree   int64            `json:"memoryFree"`            // neither promised nor really used, in bytes
	Level        string           `json:"level"`                 // how a share of it is kept
	Util         *int             `json:"util,omitempty"`        // time with work on it, in hundredths of a percent
	MemoryUsed   *int64           `json:"memoryUsed,omitempty"`  // by anybody, in bytes
	Power        *int64           `json:"power,omitempty"`       // milliwatts
	Temperature  *int             `json:"temperature,omitempty"` // degrees Celsius
	Holders      []DeviceHolder   `json:"holders"`
	Lost         *DeviceLoss      `json:"lost,omitempty"` // absent: it is there
	// its driver does not tell now what is free: nobody is given any of it
	Unread bool   `json:"unread,omitempty"`
	Over   string `json:"over,omitempty"` // how more of it is allocated than it has now
}

// DeviceLoss says why a device that was there cannot be used now. Nobody is
// given any of it until it is back.
type DeviceLoss struct {
	Kind string `json:"kind"` // fallen, reset, silent or unlisted
	Why  string `json:"why"`  // a clause: it fell off the bus
	Hint string `json:"hint"` // what a person can do
}

// DeviceInstance is a MIG instance of a device.
type DeviceInstance struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"` // for example 1g.10gb
	Memory  int64  `json:"memory"`
	Share   int    `json:"share"` // its part of the device in thousandths; 0: not told
}

// Capability is one thing that was tried on a device: what can be measured or
// enforced.
type Capability struct {
	ID    string `json:"id"`            // process-memory, process-util, energy, accounting, mig, memory-limit or mps
	State string `json:"state"`         // yes, no or unknown
	Why   string `json:"why,omitempty"` // what was seen when the state is not yes
}

// DeviceHolder is a session or a foreign process on a device.
type DeviceHolder struct {
	Session  string `json:"session,omitempty"` // id; absent: a process that is no session's
	Name     string `json:"name"`              // of the session or the process
	Owner    string `json:"owner"`             // the session's owner or the process's user
	PID      int    `json:"pid,omitempty"`     // of a foreign process
	Share    int    `json:"share"`             // promised, in thousandths of the device; 0 for a foreign process
	Promised int64  `json:"promised"`          // memory promised, in bytes
	Memory   *int64 `json:"memory,omitempty"`  // memory that it really holds, in bytes
	Util     *int   `json:"util,omitempty"`    // in hundredths of a percent of the device
}

// DevicePoint is one sample of a device's history.
type DevicePoint struct {
	At          time.Time `json:"at"`
	Util        *int      `json:"util,omitempty"`        // hundredths of a percent
	MemoryUsed  *int64    `json:"memoryUsed,omitempty"`  // bytes
	Power       *int64    `json:"power,omitempty"`       // milliwatts
	Temperature *int      `json:"temperature,omitempty"` // degrees Celsius
}

// DeviceLoad is what a session makes of one device at the time of a sample.
type DeviceLoad struct {
	Device   string `json:"device"`
	Instance string `json:"instance,omitempty"`
	Util     *int   `json:"util,omitempty"`   // hundredths of a percent of the device
	Memory   *int64 `json:"memory,omitempty"` // held by its processes, in bytes
}

// Placement is where a launch would land on one device, for the map of devices.
type Placement struct {
	Device   string `json:"device"`
	Instance string `json:"instance,omitempty"`
	Name     string `json:"name"`   // for example GPU 0
	Share    int    `json:"share"`  // thousandths of the device
	Memory   int64  `json:"memory"` // bytes
	Whole    bool   `json:"whole"`
}
