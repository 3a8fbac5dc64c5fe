package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// Agent is one agent that this computer knows, and how it is reached. What it
// says of its machine is the [Machine] of the same name.
type Agent struct {
	Name string `json:"name"`
	// ssh://user@host:port, slipway://host:port or wss://host:port/path; empty: in this process
	Address string `json:"address"`
	Local   bool   `json:"local"` // it rules this computer
	Group   string `json:"group"` // the resource group that it is in; default where nobody chose one

	Owner string `json:"owner"` // the name under which it keeps our sessions; empty while unknown
	Role  string `json:"role"`  // what we may do there: admin or user; empty while unknown
	// of its key, as it was pinned when it was added; empty where ssh or this process vouches for it
	Fingerprint string `json:"fingerprint"`

	Version string `json:"version"` // of the agent as last heard; empty while unknown
	Upgrade string `json:"upgrade"` // the version that an upgrade would bring; empty: nothing to upgrade
	// live sessions there, as last heard; for the agent in this process only a snapshot counts them
	Live int `json:"live"`

	Connection Connection `json:"connection"`
	Question   *Question  `json:"question,omitempty"`  // it is not reached before a person has answered
	AddedAt    *time.Time `json:"addedAt,omitempty"`   // absent: it belongs to this computer
	Untrusted  *Untrusted `json:"untrusted,omitempty"` // it sends invalid data; absent: it does not
}

// Untrusted says that an agent sent data that no agent may send: by mistake, or
// because somebody has changed it. The data is not used. It goes when nothing of
// the kind came for ten minutes, or when the agent is reconnected.
type Untrusted struct {
	Error session.Error `json:"error"` // the newest; its message names what was wrong
	Since time.Time     `json:"since"`
	Last  time.Time     `json:"last"`
	Count int           `json:"count"` // how often it happened
}

// Connection says how an agent is reached at this moment. LastHeard is when
// anything came from it last: what is shown of an agent that is not connected
// is as old as that.
type Connection struct {
	State     string     `json:"state"`               // off, connecting, connected, probing, down or question
	Since     time.Time  `json:"since"`               // it is in this state since then
	LastHeard *time.Time `json:"lastHeard,omitempty"` // absent: never since it was added
	RTTMs     *float64   `json:"rttMs,omitempty"`     // round trip in milliseconds; absent: not measured
	Transport string     `json:"transport"`           // local, ssh, tls or wss
	Carriers  int        `json:"carriers"`            // connections of the network in use; 2 where bulk has its own
	// when it is tried again by itself; absent: it will not be, or is being tried
	NextTry *time.Time     `json:"nextTry,omitempty"`
	Error   *session.Error `json:"error,omitempty"` // why it is not reached
	Waits   string         `json:"waits"`           // one sentence on what is waited for; empty while connected
}

// Question is what a person must decide before an agent is reached again: it
// shows another key than the one that was pinned, so it was re-keyed, replaced,
// or is somebody else. Its answer is an AgentAnswer with the same Found.
type Question struct {
	// re-keyed (the agent shows another key than the one pinned) or host-key (ssh knows another key of the host:
	// accepting removes that, and reconnecting asks about the new one)
	Kind   string    `json:"kind"`
	Text   string    `json:"text"`   // one or two sentences for people
	Pinned string    `json:"pinned"` // fingerprint that was expected; empty: none was known
	Found  string    `json:"found"`  // fingerprint that was shown
	Asked  time.Time `json:"asked"`
}

// AgentRequest adds an agent, or only probes it. Over ssh nothing need be
// installed there: Slipway brings itself.
type AgentRequest struct {
	hub.AgentRequest
	Probe bool `json:"probe,omitempty"` // only look and tell; change nothing there and remember nothing here
}

// AgentUpdate changes how an agent is known here. A nil field is left as it is.
type AgentUpdate struct {
	Name  *string `json:"name,omitempty"`
	Group *string `json:"group,omitempty"`
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

// KeyRotation is the change of a key to one that the old key has signed, so
// that whoever knew the old one accepts the new one.
type KeyRotation struct {
	Before      string   `json:"before"`      // fingerprint of the old key
	Fingerprint string   `json:"fingerprint"` // of the new key
	Told        []string `json:"told"`        // agents that have learned of this computer's new key
	Later       []string `json:"later"`       // agents that learn of it when they are reached next
}

// ImageSending asks for an image to be brought from one agent to another.
type ImageSending struct {
	Image string `json:"image"`
	From  string `json:"from,omitempty"` // empty: this computer's agent
	To    string `json:"to,omitempty"`   // empty: this computer's agent
	// Replace moves a name that is another image's there; only for an admin of that agent.
	Replace bool `json:"replace,omitempty"`
}
