package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// AgentRequest adds an agent, or only probes it. Over ssh nothing has to be installed there: Slipway installs itself.
type AgentRequest struct {
	hub.AgentRequest
	Probe bool `json:"probe,omitempty"` // only check it; change nothing there and store nothing here
}

// AgentRemoval removes an agent here. Its sessions keep running unless it is uninstalled.
type AgentRemoval struct {
	Uninstall bool `json:"uninstall,omitempty"` // end its sessions, and remove Slipway and its files from the machine
}

// AgentAnswer answers the question of an agent. Found must be that of the question, so that nobody accepts a key that
// they did not see.
type AgentAnswer struct {
	Accept bool   `json:"accept"` // pin the key that was found; otherwise stay disconnected
	Found  string `json:"found"`
}

// PairedClient is a computer that is paired with an agent.
type PairedClient struct {
	Name        string     `json:"name"`
	Fingerprint string     `json:"fingerprint"`
	Owner       string     `json:"owner"` // owner of its sessions
	Role        string     `json:"role"`  // admin or user
	This        bool       `json:"this"`  // it is the computer that asks
	AddedAt     time.Time  `json:"addedAt"`
	LastSeen    *time.Time `json:"lastSeen,omitempty"`
}

// PersonLimits are the limits of an agent by owner; "default" applies to those who have none of their own.
type PersonLimits struct {
	Limits map[string]session.Allowance `json:"limits"`
}

// PairRequest requests a code that pairs one client.
type PairRequest struct {
	Owner string `json:"owner,omitempty"` // owner of its sessions; empty: the agent's user
	Role  string `json:"role,omitempty"`  // admin or user; empty: as that agent decides
}

// PairCode is entered on the computer to pair. It is valid once, for a few attempts and a short time.
type PairCode struct {
	Code      string    `json:"code"`
	Address   string    `json:"address"` // to add there
	ExpiresAt time.Time `json:"expiresAt"`
}
