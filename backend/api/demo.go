package api

// Demo is the demonstration that is served. Where what is served is real, Active
// is false and nothing else is set.
type Demo struct {
	Active    bool   `json:"active"`
	Seed      uint64 `json:"seed"`
	Story     string `json:"story"`
	Lab       string `json:"lab"`       // name of the agent behind the tunnel; empty: there is none
	LidClosed bool   `json:"lidClosed"` // the tunnel is cut
}

// DemoLid closes or opens the lid of the laptop that a demonstration pretends.
type DemoLid struct {
	Closed bool `json:"closed"`
}
