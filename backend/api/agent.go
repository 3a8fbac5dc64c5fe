package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// AgentRequest adds an agent, or only probes it. Over ssh nothing need be
// installed there: Slipway brings itself.
type AgentRequest struct {
	hub.AgentRequest
	Probe bool `json:"probe,omitempty"` // only look and tell; change nothing there and remember nothing here
}

// AgentRemoval forgets an agent here. Its sessions go on unless it is uninstalled.
type AgentRemoval struct {
	Uninstall bool `json:"uninstall,omitempty"` // end its sessions and remove Slipway and its files from its machine
}

// AgentAnswer answers the question of an agent. Found must be the one that the
// question named, so that nobody accepts what they did not see.
type AgentAnswer struct {
	Accept bool   `json:"accept"` // pin what was found; otherwise stay away from it
	Found  string `json:"found"`
}

// PairedClient is a computer that is paired with an agent.
type PairedClient struct {
	Name        string     `json:"name"`
	Fingerprint string     `json:"fingerprint"`
	Owner       string     `json:"owner"` // the name under which its sessions are kept
	Role        string     `json:"role"`  // admin or user
	This        bool       `json:"this"`  // it is the computer that asks
	AddedAt     time.Time  `json:"addedAt"`
	LastSeen    *time.Time `json:"lastSeen,omitempty"`
}

// PersonLimits are the limits of an agent by owner; "default" is everybody's
// who has none of their own.
type PersonLimits struct {
	Limits map[string]session.Allowance `json:"limits"`
}

// PairRequest asks an agent for a code that pairs one client.
type PairRequest struct {
	Owner string `json:"owner,omitempty"` // the name under which its sessions are kept; empty: the agent's person
	Role  string `json:"role,omitempty"`  // admin or user; empty: as that agent does
}

// PairCode is typed on the computer that pairs. It is valid once, for a few tries
// and a short while.
type PairCode struct {
	Code      string    `json:"code"`
	Address   string    `json:"address"` // what to add there
	ExpiresAt time.Time `json:"expiresAt"`
}
