package api

import (
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// DeviceBoard is the state of one agent's devices.
type DeviceBoard struct {
	hub.Board
	Devices []DeviceState `json:"devices"`
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
	Instances    []gpu.Instance         `json:"instances"`
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

// Capability is one thing that was tried on a device: what can be measured or
// enforced.
type Capability struct {
	ID    string `json:"id"`            // process-memory, process-util, energy, accounting, mig, memory-limit or mps
	State string `json:"state"`         // yes, no or unknown
	Why   string `json:"why,omitempty"` // what was seen when the state is not yes
}
