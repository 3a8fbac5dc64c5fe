package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
)

// Routes of the control plane and its settings.
var (
	Version = Route[None, api.Version]{&Endpoint{Name: "version", Pattern: "GET /version",
		Summary: "Show the running version."}}
	Demo = Route[None, api.Demo]{&Endpoint{Name: "demo", Pattern: "GET /demo",
		Summary: "Show whether this is a demo, and its state."}}
	DemoLid = Route[api.DemoLid, api.Demo]{&Endpoint{Name: "demo-lid", Pattern: "PUT /demo/lid",
		Summary: "Close or open the lid of a demo's laptop. Closing it cuts the tunnel."}}
	DemoStart = Route[api.DemoStart, api.DemoStarted]{&Endpoint{Name: "demo-start", Pattern: "POST /demo/start",
		Summary: "Start a demo with its own folder and port, unless one is running."}}
	OpenAPI = Route[None, None]{&Endpoint{Name: "openapi", Pattern: "GET /openapi.json", Summary: "Read this document.",
		Stream: Text}}
	LoginLink = Route[None, api.LoginLink]{&Endpoint{Name: "login-link", Pattern: "POST /login",
		Summary: "Create a login link. It can be used once, within one minute.",
		Status:  http.StatusCreated}}
	LoginPass = Route[api.PassRequest, api.Pass]{&Endpoint{Name: "login-pass", Pattern: "POST /login/pass",
		Summary: "Make an address for a browser's arguments. It leads this user's connections to a one-time address.",
		Status:  http.StatusCreated}}
	Events = Route[None, api.Event]{&Endpoint{Name: "events", Pattern: "GET /events", Summary: "Follow every change.",
		Query: []Param{{"epoch", "epoch of the last event seen"}, {"after", "its seq"},
			{"shell", "1 for the desktop shell"}}, Stream: WebSocket}}
	SSHSetup = Route[None, api.SSHSetup]{&Endpoint{Name: "ssh-setup", Pattern: "GET /ssh",
		Summary: "Show how ssh on this computer reaches sessions."}}
	SSHUpdate = Route[api.SSHUpdate, api.SSHSetup]{&Endpoint{Name: "ssh-update", Pattern: "PUT /ssh",
		Summary: "Include the ssh configuration of sessions in the user's own, or stop including it."}}
	Settings = Route[None, hub.Settings]{&Endpoint{Name: "settings", Pattern: "GET /settings",
		Summary: "Read the settings."}}
	SettingsUpdate = Route[hub.Settings, hub.Settings]{&Endpoint{Name: "settings-update", Pattern: "PUT /settings",
		Summary: "Replace the settings."}}
	SettingsFile = Route[None, api.SettingsFile]{&Endpoint{Name: "settings-file", Pattern: "GET /settings/file",
		Summary: "Read all settings with their source, overrides and problems."}}
	SettingUpdate = Route[api.SettingUpdate, api.SettingsFile]{&Endpoint{Name: "setting-update",
		Pattern: "PATCH /settings/file/{name}", Summary: "Change or reset one setting in the file."}}
	Log = Route[None, api.LogTail]{&Endpoint{Name: "log", Pattern: "GET /log",
		Summary: "Read the end of Slipway's log, with secrets removed.",
		Query:   []Param{{"tail", "how many of the newest lines, 1 to 5000; 500 if empty"}}}}
	Diagnostics = Route[None, api.Diagnostics]{&Endpoint{Name: "diagnostics", Pattern: "GET /diagnostics",
		Summary: "Create a support report with secrets removed."}}
	Notifier = Route[None, api.Notifier]{&Endpoint{Name: "notifier", Pattern: "GET /notifier",
		Summary: "Show whether the desktop or the browser shows notifications."}}
	NotifierTry = Route[None, None]{&Endpoint{Name: "notifier-try", Pattern: "POST /notifier",
		Summary: "Show a test notification on the desktop.", Status: http.StatusNoContent}}
	WindowShow = Route[api.WindowRequest, api.Shown]{&Endpoint{Name: "window-show", Pattern: "POST /window",
		Summary: "Bring the desktop window to the front, if a desktop shell is connected, and show a page in it."}}
	Shutdown = Route[None, None]{&Endpoint{Name: "shutdown", Pattern: "POST /shutdown",
		Summary: "Stop the control plane. Sessions keep running.", Status: http.StatusAccepted}}
)
