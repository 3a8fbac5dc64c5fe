package api

import "time"

// Demo is the demonstration that is served. Where what is served is real, Active
// is false and nothing else is set.
type Demo struct {
	Active    bool   `json:"active"`
	Seed      uint64 `json:"seed"`
	Story     string `json:"story"`
	Lab       string `json:"lab"`       // name of the agent behind the tunnel; empty: there is none
	LidClosed bool   `json:"lidClosed"` // the tunnel is cut
	// Speed is how much faster than on the wall its time goes by, and Shown what its
	// clock showed at the moment Real.
	Speed int       `json:"speed"`
	Real  time.Time `json:"real"`
	Shown time.Time `json:"shown"`
}

// DemoLid closes or opens the lid of the laptop that a demonstration pretends.
type DemoLid struct {
	Closed bool `json:"closed"`
}

// DemoStart asks for a demonstration beside what is real.
type DemoStart struct {
	Window bool `json:"window,omitempty"` // show it in a window of its own, if a desktop shell is there
}

// DemoStarted says where a demonstration is to be seen.
type DemoStarted struct {
	URL      string `json:"url"`      // logs a browser in to it, once, within one minute
	Windowed bool   `json:"windowed"` // a desktop shell shows it
}
