package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// UsageReport is what was used in a span of time.
type UsageReport struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// session, day, label, owner, device, or empty: each session and device by itself
	By      string        `json:"by"`
	Bucket  string        `json:"bucket"` // hour or day, or empty: the whole span
	Rows    []hub.Account `json:"rows"`
	Totals  []hub.Account `json:"totals"`  // one for each kind
	Missing []string      `json:"missing"` // agents that were not reached, whose accounts are not in here
}

// ResourceSummary is one agent: what its machine has, what is promised, what
// is really used and how much of it is one's own.
type ResourceSummary struct {
	Agent    string               `json:"agent"`
	Group    string               `json:"group"` // the resource group that it is in
	Online   bool                 `json:"online"`
	Live     int                  `json:"live"` // one's own sessions that have not ended
	Total    hub.Amount           `json:"total"`
	Promised hub.Amount           `json:"promised"` // to all sessions
	Mine     hub.Amount           `json:"mine"`     // promised to one's own sessions
	Free     hub.Amount           `json:"free"`     // what a launch would find now
	Load     hub.Amount           `json:"load"`     // really used; a device's busy part counts as its share
	Devices  []hub.DeviceResource `json:"devices"`
	Limit    *Limit               `json:"limit,omitempty"` // the most that one may hold there; absent: no limit
}

// Limit is the most that one may hold of an agent's machine. An amount of 0 is
// not limited.
type Limit struct {
	session.Allowance
	SessionsHeld int `json:"sessionsHeld"` // one's own that hold resources
}
