package api

import (
	"slipway/backend/session"
)

// App is something that a running session serves.
type App struct {
	session.App
	URL string `json:"url"` // its stable address, which requires a ticket
	// a local port that leads to it; absent: none
	Door *Door `json:"door,omitempty"`
	// a port that led to it before Slipway last ended; absent: none, or it is open again
	LostDoor *LostDoor `json:"lostDoor,omitempty"`
}

// Door is a port of this computer that leads to one app.
type Door struct {
	Public    bool     `json:"public"` // on every address of this computer, without a login
	Port      int      `json:"port"`
	Addresses []string `json:"addresses"` // loopback first
	Instead   bool     `json:"instead"`   // the preferred port was taken, so this is another
}

// LostDoor is a port that led to an app before Slipway ended and was not opened again: it was public, or another
// program has it now.
type LostDoor struct {
	Public bool `json:"public"`
	Port   int  `json:"port"`
}

// Opened is an app that is ready.
type Opened struct {
	App      App    `json:"app"`
	URL      string `json:"url"`      // with a one-time ticket, valid for one minute
	Windowed bool   `json:"windowed"` // the desktop shell opens it; otherwise the caller must
}

// TerminalSearch is the result of a search in a session's shells.
type TerminalSearch struct {
	Matches []TerminalMatch `json:"matches"` // by shell, newest line first
	Partial bool            `json:"partial"` // older output was not searched, or there are more matches
}

// TerminalMatch is one line of a shell's output, cut around the match.
type TerminalMatch struct {
	Terminal string `json:"terminal"`
	Offset   uint64 `json:"offset"` // of the line's first byte
	Before   string `json:"before"`
	Text     string `json:"text"`
	After    string `json:"after"`
}

// LogTail is the end of Slipway's log, with secrets removed.
type LogTail struct {
	Path  string   `json:"path"`
	Lines []string `json:"lines"` // oldest first
}

// Diagnostics is a support report with secrets removed.
type Diagnostics struct {
	Text string `json:"text"`
}

// Notifier says where notifications are shown.
type Notifier struct {
	Desktop bool `json:"desktop"` // by the desktop of the control plane's computer; false: by the browser
}

// SettingsFile is the file with all settings, including those of the agent.
type SettingsFile struct {
	Path     string           `json:"path"`
	Settings []Setting        `json:"settings"`
	Problems []SettingProblem `json:"problems"`
}

// Setting is one setting. Values are written as in an environment variable.
type Setting struct {
	Name string `json:"name"` // its path in the file: gpu.quantum
	// text, integer, number, switch (1 or 0) or list (texts, separated by commas)
	Kind     string   `json:"kind"`
	Choices  []string `json:"choices,omitempty"` // the only allowed values; absent: all
	Text     string   `json:"text"`              // description
	Default  string   `json:"default"`           // "": none
	Value    string   `json:"value"`             // current, or from the next start on
	Set      bool     `json:"set"`               // the file has it
	Variable string   `json:"variable"`          // environment variable that overrides it
	Override string   `json:"override"`          // value of that variable; "": not set
	Restart  bool     `json:"restart"`           // it is read only at start
}

// SettingProblem is a problem with a setting.
type SettingProblem struct {
	Line    int    `json:"line"` // of the file; 0: the problem is in a variable
	Name    string `json:"name"` // of the setting or the variable; "": the whole file
	Message string `json:"message"`
}

// SettingUpdate changes one setting.
type SettingUpdate struct {
	Value *string `json:"value"` // as in a variable; null: reset to the default
}
