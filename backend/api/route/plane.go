package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
)

// Routes of the control plane and its settings.
var (
	Version = Route[None, api.Version]{&Endpoint{Name: "version", Pattern: "GET /version",
		Summary: "Say what is running."}}
	Demo = Route[None, api.Demo]{&Endpoint{Name: "demo", Pattern: "GET /demo",
		Summary: "Say whether what is served is a demonstration, and which."}}
	DemoLid = Route[api.DemoLid, api.Demo]{&Endpoint{Name: "demo-lid", Pattern: "PUT /demo/lid",
		Summary: "Close the lid of a demonstration's laptop, which cuts the tunnel, or open it."}}
	DemoStart = Route[api.DemoStart, api.DemoStarted]{&Endpoint{Name: "demo-start", Pattern: "POST /demo/start",
		Summary: "Start a demonstration beside what is real, with a folder and a port of its own, unless it runs."}}
	OpenAPI = Route[None, None]{&Endpoint{Name: "openapi", Pattern: "GET /openapi.json", Summary: "Read this document.",
		Stream: Text}}
	LoginLink = Route[None, api.LoginLink]{&Endpoint{Name: "login-link", Pattern: "POST /login",
		Summary: "Make a one-time address that logs a browser in. It is valid for one minute.",
		Status:  http.StatusCreated}}
	LoginPass = Route[api.PassRequest, api.Pass]{&Endpoint{Name: "login-pass", Pattern: "POST /login/pass",
		Summary: "Make an address for a browser's arguments. It leads this user's connections to a one-time address.",
		Status:  http.StatusCreated}}
	Events = Route[None, api.Event]{&Endpoint{Name: "events", Pattern: "GET /events", Summary: "Follow every change.",
		Query: []Param{{"epoch", "epoch of the last event seen"}, {"after", "its seq"},
			{"shell", "1 for the desktop shell"}}, Stream: WebSocket}}
	SSHSetup = Route[None, api.SSHSetup]{&Endpoint{Name: "ssh-setup", Pattern: "GET /ssh",
		Summary: "Say how ssh on this computer reaches sessions."}}
	SSHUpdate = Route[api.SSHUpdate, api.SSHSetup]{&Endpoint{Name: "ssh-update", Pattern: "PUT /ssh",
		Summary: "Have the person's own configuration of ssh include that of the sessions, or no longer."}}
	Settings = Route[None, hub.Settings]{&Endpoint{Name: "settings", Pattern: "GET /settings",
		Summary: "Read the settings."}}
	SettingsUpdate = Route[hub.Settings, hub.Settings]{&Endpoint{Name: "settings-update", Pattern: "PUT /settings",
		Summary: "Replace the settings."}}
	SettingsFile = Route[None, api.SettingsFile]{&Endpoint{Name: "settings-file", Pattern: "GET /settings/file",
		Summary: "Read every setting with where it stands, what overrides it and what is wrong."}}
	SettingUpdate = Route[api.SettingUpdate, api.SettingsFile]{&Endpoint{Name: "setting-update",
		Pattern: "PATCH /settings/file/{name}", Summary: "Change one setting in the file, or take it out."}}
	Log = Route[None, api.LogTail]{&Endpoint{Name: "log", Pattern: "GET /log",
		Summary: "Read the end of Slipway's own log, without secrets.",
		Query:   []Param{{"tail", "how many of the newest lines, 1 to 5000; 500 if empty"}}}}
	Diagnostics = Route[None, api.Diagnostics]{&Endpoint{Name: "diagnostics", Pattern: "GET /diagnostics",
		Summary: "Sum up versions, checks, settings and the log for somebody who helps, without secrets."}}
	Notifier = Route[None, api.Notifier]{&Endpoint{Name: "notifier", Pattern: "GET /notifier",
		Summary: "Say whether the desktop shows notices, or the pages do."}}
	NotifierTry = Route[None, None]{&Endpoint{Name: "notifier-try", Pattern: "POST /notifier",
		Summary: "Have the desktop show a notice.", Status: http.StatusNoContent}}
	WindowShow = Route[api.WindowRequest, api.Shown]{&Endpoint{Name: "window-show", Pattern: "POST /window",
		Summary: "Bring the desktop window to the front, if a desktop shell is connected, and show a page in it."}}
	Shutdown = Route[None, None]{&Endpoint{Name: "shutdown", Pattern: "POST /shutdown",
		Summary: "Stop the control plane. Sessions go on.", Status: http.StatusAccepted}}
)
