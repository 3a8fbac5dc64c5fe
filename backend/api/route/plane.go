package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
)

// Routes of the control plane and its settings.
var (
	Version = at[None, api.Version]("version", "GET /version", "Show the running version.")
	Demo    = at[None, api.Demo]("demo", "GET /demo", "Show whether this is a demo, and its state.")
	DemoLid = at[api.DemoLid, api.Demo]("demo-lid", "PUT /demo/lid",
		"Close or open the lid of a demo's laptop. Closing it cuts the tunnel.")
	DemoStart = at[api.DemoStart, api.DemoStarted]("demo-start", "POST /demo/start",
		"Start a demo with its own folder and port, unless one is running.")
	OpenAPI   = at[None, None]("openapi", "GET /openapi.json", "Read this document.").streams(Text)
	LoginLink = at[None, api.LoginLink]("login-link", "POST /login",
		"Create a login link. It can be used once, within one minute.").answers(http.StatusCreated)
	LoginPass = at[api.PassRequest, api.Pass]("login-pass", "POST /login/pass", "Make an address for a browser's "+
		"arguments. It leads this user's connections to a one-time address.").answers(http.StatusCreated)
	Events = at[None, api.Event]("events", "GET /events", "Watch all changes.",
		Param{"epoch", "epoch of the last event seen"}, Param{"after", "its seq"},
		Param{"shell", "1 for the desktop shell"}).streams(WebSocket)
	SSHSetup  = at[None, api.SSHSetup]("ssh-setup", "GET /ssh", "Show how ssh on this computer reaches sessions.")
	SSHUpdate = at[api.SSHUpdate, api.SSHSetup]("ssh-update", "PUT /ssh",
		"Include the ssh configuration of sessions in the user's own, or stop including it.")
	Settings       = at[None, hub.Settings]("settings", "GET /settings", "Read the settings.")
	SettingsUpdate = at[hub.Settings, hub.Settings]("settings-update", "PUT /settings", "Replace the settings.")
	SettingsFile   = at[None, api.SettingsFile]("settings-file", "GET /settings/file",
		"Read all settings with their source, overrides and problems.")
	SettingUpdate = at[api.SettingUpdate, api.SettingsFile]("setting-update", "PATCH /settings/file/{name}",
		"Change or reset one setting in the file.")
	Log = at[None, api.LogTail]("log", "GET /log", "Read the end of Slipway's log, with secrets removed.",
		Param{"tail", "how many of the newest lines, 1 to 5000; 500 if empty"})
	Diagnostics = at[None, api.Diagnostics]("diagnostics", "GET /diagnostics",
		"Create a support report with secrets removed.")
	Notifier = at[None, api.Notifier]("notifier", "GET /notifier",
		"Show whether the desktop or the browser shows notifications.")
	NotifierTry = at[None, None]("notifier-try", "POST /notifier", "Show a test notification on the desktop.")
	WindowShow  = at[api.WindowRequest, api.Shown]("window-show", "POST /window",
		"Bring the desktop window to the front, if a desktop shell is connected, and show a page in it.")
	Shutdown = at[None, None]("shutdown", "POST /shutdown",
		"Stop the control plane. Sessions keep running.").answers(http.StatusAccepted)
)
