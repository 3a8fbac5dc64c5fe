package api

import (
	"slipway/backend/hub"
	"slipway/backend/session"
)

// LaunchManyRequest launches several sessions of one spec, named spec.name-1, -2 and so on, or at random without a
// name. With a key it can be sent again safely, like a LaunchRequest.
type LaunchManyRequest struct {
	hub.LaunchRequest
	Count int `json:"count,omitempty"` // 1 to 10; 0: 1
}

// Launched is one of several launches: a session, or why there is none.
type Launched struct {
	Session *Session       `json:"session,omitempty"`
	Problem *session.Error `json:"problem,omitempty"`
}

// SessionUpdate changes a session. An absent field is left unchanged. Live sessions can be renamed, PENDING ones get
// another priority, and any gets tags.
type SessionUpdate struct {
	Name     *string   `json:"name,omitempty"`
	Priority *int      `json:"priority,omitempty"` // 0 to 100, higher first
	Tags     *[]string `json:"tags,omitempty"`     // replace the present ones
}

// KeepRequest protects a session from being reclaimed as idle.
type KeepRequest struct {
	For string `json:"for"` // a whole number with s, m, h, d or w, such as 4h; at most 1w
}

// TerminateRequest terminates a session.
type TerminateRequest struct {
	Forced bool `json:"forced,omitempty"`
}

// OpenRequest opens an app.
type OpenRequest struct {
	Dir string `json:"dir,omitempty"` // directory to show; empty: the usual or current one
	// Public opens the app to everybody who reaches this computer, without a login.
	Public bool `json:"public,omitempty"`
	Port   int  `json:"port,omitempty"`   // preferred port on this computer, 1024 to 65535; 0: none
	Window bool `json:"window,omitempty"` // in a window of the desktop shell, if one is connected
}

// Shown says whether a desktop shell showed its window.
type Shown struct {
	Shown bool `json:"shown"`
}

// LoginLink is a one-time address that logs a browser in.
type LoginLink struct {
	URL string `json:"url"`
}

// PassRequest names an address for a browser to open.
type PassRequest struct {
	URL string `json:"url"` // of this server or of an app, with its one-time code or ticket
}

// Pass leads to an address without revealing it. It is valid for one minute.
type Pass struct {
	URL string `json:"url"`
}

// WindowRequest shows the main window, and a page in it.
type WindowRequest struct {
	Path string `json:"path,omitempty"` // empty: the current page
}
