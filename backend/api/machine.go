package api

import (
	"slipway/backend/session"
)

// App is something reachable in a running session.
type App struct {
	session.App
	URL string `json:"url"` // its stable address; it opens only with a ticket
	// a port of this computer that leads to it; absent: only its own name does
	Door *Door `json:"door,omitempty"`
	// a port that led to it until Slipway ended; absent: none, or it leads there again
	LostDoor *LostDoor `json:"lostDoor,omitempty"`
}

// Door is a port of this computer that leads to one app.
type Door struct {
	Public    bool     `json:"public"` // on every address of this computer, without a login
	Port      int      `json:"port"`
	Addresses []string `json:"addresses"` // this computer's own first
	Instead   bool     `json:"instead"`   // the preferred port was taken, and this is another
}

// LostDoor is a port that led to an app until Slipway ended and was not opened
// again: it was open to everybody, or somebody else has it now.
type LostDoor struct {
	Public bool `json:"public"`
	Port   int  `json:"port"`
}

// Opened is an app that is ready to be looked at.
type Opened struct {
	App      App    `json:"app"`
	URL      string `json:"url"`      // with a one-time ticket, valid for one minute
	Windowed bool   `json:"windowed"` // the desktop shell opens it; otherwise the caller does
}

// TerminalSearch is what was found in the shells of a session.
type TerminalSearch struct {
	Matches []TerminalMatch `json:"matches"` // by shell, the newest line of each first
	Partial bool            `json:"partial"` // older output was not searched, or more was found than is told
}

// TerminalMatch is one line that a shell has printed, cut around what was found
// in it.
type TerminalMatch struct {
	Terminal string `json:"terminal"`
	Offset   uint64 `json:"offset"` // of the line's first byte
	Before   string `json:"before"`
	Text     string `json:"text"`
	After    string `json:"after"`
}

// LogTail is the end of Slipway's own log, without secrets.
type LogTail struct {
	Path  string   `json:"path"`
	Lines []string `json:"lines"` // oldest first
}

// Diagnostics is what one hands to somebody who helps, without secrets.
type Diagnostics struct {
	Text string `json:"text"`
}

// Notifier says who shows notices outside of the pages.
type Notifier struct {
	Desktop bool `json:"desktop"` // the desktop of the control plane's computer; false: the pages, by their browser
}

// SettingsFile is the file in which every setting stands, those of the agent
// included.
type SettingsFile struct {
	Path     string           `json:"path"`
	Settings []Setting        `json:"settings"`
	Problems []SettingProblem `json:"problems"`
}

// Setting is one of them. Values are written as in a variable.
type Setting struct {
	Name string `json:"name"` // its path in the file: gpu.quantum
	// text, integer, number, switch (1 or 0) or list (texts, separated by commas)
	Kind     string   `json:"kind"`
	Choices  []string `json:"choices,omitempty"` // nothing else is allowed; absent: anything else is
	Text     string   `json:"text"`              // what it is about
	Default  string   `json:"default"`           // "": nothing is set
	Value    string   `json:"value"`             // in force, or from the next start on
	Set      bool     `json:"set"`               // it stands in the file
	Variable string   `json:"variable"`          // what overrides it
	Override string   `json:"override"`          // what that variable says; "": it is not set
	Restart  bool     `json:"restart"`           // it is read when Slipway starts
}

// SettingProblem is what is wrong with a setting.
type SettingProblem struct {
	Line    int    `json:"line"` // of the file; 0: it is about a variable
	Name    string `json:"name"` // of the setting or the variable; "": the whole file
	Message string `json:"message"`
}

// SettingUpdate changes one setting.
type SettingUpdate struct {
	Value *string `json:"value"` // as it is written in a variable; null: the default again
}
