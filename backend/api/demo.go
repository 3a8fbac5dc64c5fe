package api

import "time"

// Demo is the state of a demo. If this is none, Active is false and nothing else is set.
type Demo struct {
	Active    bool   `json:"active"`
	Seed      uint64 `json:"seed"`
	Story     string `json:"story"`
	Lab       string `json:"lab"`       // agent behind the tunnel; empty: none
	LidClosed bool   `json:"lidClosed"` // the tunnel is cut
	// Speed is how many times faster than real its time passes. Its clock showed Shown at the moment Real.
	Speed int       `json:"speed"`
	Real  time.Time `json:"real"`
	Shown time.Time `json:"shown"`
}

// DemoLid closes or opens the lid of the simulated laptop.
type DemoLid struct {
	Closed bool `json:"closed"`
}

// DemoStart starts a demo next to this control plane.
type DemoStart struct {
	Window bool `json:"window,omitempty"` // open it in a window, if a desktop shell is connected
}

// DemoStarted says where a demo is.
type DemoStarted struct {
	URL      string `json:"url"`      // logs a browser in, once, within one minute
	Windowed bool   `json:"windowed"` // a desktop shell opens it
}
