package api

import (
	"slipway/backend/hub"
	"slipway/backend/session"
)

// LaunchManyRequest asks for several sessions of one spec, named spec.name-1,
// -2 and so on, or at random where it has no name. Key makes it safe to send
// twice, as in a LaunchRequest.
type LaunchManyRequest struct {
	hub.LaunchRequest
	Count int `json:"count,omitempty"` // 1 to 10; 0: 1
}

// Launched is one of several launches: a session, or why there is none.
type Launched struct {
	Session *Session       `json:"session,omitempty"`
	Problem *session.Error `json:"problem,omitempty"`
}

// SessionUpdate changes a session; an absent field is left as it is. A name is
// given to a live session, a priority to one that is PENDING, tags to any.
type SessionUpdate struct {
	Name     *string   `json:"name,omitempty"`
	Priority *int      `json:"priority,omitempty"` // 0 to 100, higher first
	Tags     *[]string `json:"tags,omitempty"`     // in place of those that it has
}

// KeepRequest protects a session from being reclaimed as idle.
type KeepRequest struct {
	For string `json:"for"` // a whole number with s, m, h, d or w, such as 4h; at most 1w
}

// TerminateRequest asks for the end of a session.
type TerminateRequest struct {
	Forced bool `json:"forced,omitempty"`
}

// OpenRequest asks to open an app.
type OpenRequest struct {
	Dir string `json:"dir,omitempty"` // directory that it shall show; empty: its usual one, or the one that it shows
	// Public opens the app to everybody who reaches this computer, without a login.
	Public bool `json:"public,omitempty"`
	Port   int  `json:"port,omitempty"`   // preferred port on this computer, 1024 to 65535; 0: none
	Window bool `json:"window,omitempty"` // in a window of the desktop shell, if one is connected
}

// Shown says whether a desktop shell was there to show its window.
type Shown struct {
	Shown bool `json:"shown"`
}

// LoginLink is a one-time address that logs a browser in.
type LoginLink struct {
	URL string `json:"url"`
}

// PassRequest names the address that a browser is to open.
type PassRequest struct {
	URL string `json:"url"` // of this server or of an app, with its one-time code or ticket
}

// Pass leads to an address without telling it. It is valid for one minute.
type Pass struct {
	URL string `json:"url"`
}

// WindowRequest asks for the main window, and for a page in it.
type WindowRequest struct {
	Path string `json:"path,omitempty"` // empty: it stays where it is
}
