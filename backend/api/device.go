package api

import (
	"time"

	"slipway/backend/session"
)

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
	UUID         string                 `json:"uuid"`
	Vendor       string                 `json:"vendor"` // nvidia, amd, intel or sim
	Model        string                 `json:"model"`
	Index        int                    `json:"index"` // for display only: GPU 0
	PCI          string                 `json:"pci,omitempty"`
	Driver       string                 `json:"driver,omitempty"`
	Memory       int64                  `json:"memory"`   // all of it, in bytes; 0: not told
	Reserved     int64                  `json:"reserved"` // kept by the driver
	Instances    []DeviceInstance       `json:"instances"`
	Capabilities []Capability           `json:"capabilities"`
	Free         int                    `json:"free"`                  // not promised, in thousandths
	MemoryFree   int64                  `json:"memoryFree"`            // neither promised nor really used, in bytes
	Level        string                 `json:"level"`                 // how a share of it is kept
	Util         *int                   `json:"util,omitempty"`        // time with work, in hundredths of a percent
	MemoryUsed   *int64                 `json:"memoryUsed,omitempty"`  // by anybody, in bytes
	Power        *int64                 `json:"power,omitempty"`       // milliwatts
	Temperature  *int                   `json:"temperature,omitempty"` // degrees Celsius
	Holders      []session.DeviceHolder `json:"holders"`
	Lost         *DeviceLoss            `json:"lost,omitempty"` // absent: it is there
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
