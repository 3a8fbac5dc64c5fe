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
	Command string     `json:"command"`         // equivalent slipway run line, secrets removed
	// of all kernels; empty while it would wait
	Placements []Placement `json:"placements"`
	Rounded    *Rounding   `json:"rounded,omitempty"` // absent: the request would be allocated as it is
}

// Rounding says how the allocation would differ from the request. A launch is refused if less would be allocated or a
// share is not a multiple of the quantum; requesting the rounded amount accepts it.
type Rounding struct {
	gpu.Rounding
	Accept string `json:"accept"` // the text to request instead
}

// Placement is the share of one device that a launch would get.
type Placement struct {
	gpu.Grant
	Name string `json:"name"` // for example GPU 0
}
