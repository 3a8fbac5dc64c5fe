package api

import (
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// Event is one message of /api/v1/events, a WebSocket. The first message is
// a snapshot unless the stream resumes. Seq grows by one with each message after it; a page that
// reconnects with ?epoch=E&after=SEQ goes on there, or gets a fresh snapshot
// where that is no longer possible. A Window message has the number of the
// message before it, because only the desktop shell receives it.
type Event struct {
	Epoch    string          `json:"epoch"`
	Seq      uint64          `json:"seq"`
	Snapshot *Snapshot       `json:"snapshot,omitempty"` // forget what you knew and take this
	Session  *Session        `json:"session,omitempty"`  // one session as it is now
	Removed  string          `json:"removed,omitempty"`  // id of a session whose record is gone
	Usage    []session.Usage `json:"usage,omitempty"`
	Machine  *Machine        `json:"machine,omitempty"`
	Recents  *[]hub.Recent   `json:"recents,omitempty"`
	Settings *hub.Settings   `json:"settings,omitempty"`
	Window   *Window         `json:"window,omitempty"` // only to the desktop shell (?shell=1)

	// one agent's devices as they were measured last; at most one a second
	Devices *DeviceBoard  `json:"devices,omitempty"`
	Presets *[]hub.Preset `json:"presets,omitempty"` // all of them

	Notice *Notice `json:"notice,omitempty"` // which no desktop has shown: the page has its browser show it

	// one agent as it is now; renaming and removing one brings a snapshot
	Agent     *Agent     `json:"agent,omitempty"`
	Operation *Operation `json:"operation,omitempty"` // one operation as it is now; of progress at most five a second
}

// Snapshot is the state as a page needs it: live sessions, the newest 100
// finished ones, and all machines.
type Snapshot struct {
	Sessions []Session    `json:"sessions"`
	Machines []Machine    `json:"machines"`
	Recents  []hub.Recent `json:"recents"`
	Settings hub.Settings `json:"settings"`
	Version  Version      `json:"version"`

	Devices []DeviceBoard `json:"devices"` // of the agents that have told
	Presets []hub.Preset  `json:"presets"`

	Agents     []Agent     `json:"agents"`
	Operations []Operation `json:"operations"` // newest first
}

// Notice tells a person what they wait for: a batch session has ended, one that
// waited runs, an idle one is about to be reclaimed.
type Notice struct {
	Session string    `json:"session"` // its id
	Title   string    `json:"title"`
	Text    string    `json:"text"`
	Urgent  bool      `json:"urgent"` // it needs an answer
	At      time.Time `json:"at"`
}

// Window asks the desktop shell to open an app window, or to show itself.
type Window struct {
	URL   string `json:"url"` // empty: show the main window
	Title string `json:"title"`
	Path  string `json:"path,omitempty"` // page that the main window shows; empty: it stays where it is
}
