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
	gpu.Device
	session.DeviceStatus
	Capabilities []Capability `json:"capabilities"`
	Lost         *DeviceLoss  `json:"lost,omitempty"` // absent: it is there
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
