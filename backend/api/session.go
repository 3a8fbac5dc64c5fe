package api

import (
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// Preview says what a launch would do now.
type Preview struct {
	session.Preview
	Agent   string     `json:"agent"`
	Image   *hub.Image `json:"image,omitempty"` // absent: it would be pulled
	Command string     `json:"command"`         // the equivalent slipway run line, secrets left out
	// where it would land, of all kernels; empty while it would wait
	Placements []Placement `json:"placements"`
	Rounded    *Rounding   `json:"rounded,omitempty"` // absent: what was asked would be given
}

// Rounding says how what would be given differs from what was asked. A launch
// is refused while less would be given or a share is no whole number of quanta;
// asking for the given amount accepts it.
type Rounding struct {
	gpu.Rounding
	Accept string `json:"accept"` // the text to ask with instead
}

// Placement is where a launch would land on one device, for the map of devices.
type Placement struct {
	gpu.Grant
	Name string `json:"name"` // for example GPU 0
}
