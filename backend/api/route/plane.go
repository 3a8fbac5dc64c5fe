package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/updates"
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
	Secrets   = at[None, []hub.Secret]("secrets", "GET /secrets", "List the user's secrets, without their values.")
	SecretSet = at[hub.SecretContent, hub.Secret]("secret-set", "PUT /secrets",
		"Store a variable for sessions or a registry login, in place of one with the same name.")
	SecretDelete = at[None, None]("secret-delete", "DELETE /secrets/{kind}/{name}", "Delete a secret.")
	Log          = at[None, api.LogTail]("log", "GET /log", "Read the end of Slipway's log, with secrets removed.",
		Param{"tail", "how many of the newest lines, 1 to 5000; 500 if empty"})
	Diagnostics = at[None, api.Diagnostics]("diagnostics", "GET /diagnostics",
		"Create a support report with secrets removed.")
	Updates = at[None, updates.Offer]("updates", "GET /updates",
		"Show what is known of a newer version, and how to upgrade this copy.")
	UpdatesCheck = at[None, updates.Offer]("updates-check", "POST /updates",
		"Ask the release host of the settings for a newer version now.")
	Notifier = at[None, api.Notifier]("notifier", "GET /notifier",
		"Show whether the desktop or the browser shows notifications.")
	NotifierTry = at[None, None]("notifier-try", "POST /notifier", "Show a test notification on the desktop.")
	WindowShow  = at[api.WindowRequest, api.Shown]("window-show", "POST /window",
		"Bring the desktop window to the front, if a desktop shell is connected, and show a page in it.")
	Shutdown = at[None, None]("shutdown", "POST /shutdown",
		"Stop the control plane. Sessions keep running.").answers(http.StatusAccepted)
)

// Routes of agents, their keys and clients, and operations.
var (
	Agents   = at[None, []api.Agent]("agents", "GET /agents", "List agents and their connections.")
	AgentAdd = at[api.AgentRequest, api.Operation]("agent-add", "POST /agents", "Add an agent, or only probe one, "+
		"as an operation, which may ask for a password, a host key or a pairing code.")
	Agent       = at[None, api.Agent]("agent", "GET /agents/{agent}", "Show one agent.")
	AgentUpdate = at[api.AgentUpdate, api.Agent]("agent-update", "PATCH /agents/{agent}",
		"Rename an agent or change its resource group.")
	AgentRemove = at[api.AgentRemoval, api.Operation]("agent-remove", "POST /agents/{agent}/remove",
		"Remove an agent, as an operation. Its sessions keep running unless it is uninstalled.")
	AgentProbe = at[None, api.Operation]("agent-probe", "POST /agents/{agent}/probe",
		"Probe an agent's machine again, as an operation.")
	AgentUpgrade = at[None, api.Operation]("agent-upgrade", "POST /agents/{agent}/upgrade",
		"Upgrade an agent to this version, as an operation. Its sessions keep running.")
	AgentReconnect = at[None, api.Operation]("agent-reconnect", "POST /agents/{agent}/reconnect",
		"Reconnect an agent now, as an operation, which may ask for input.")
	AgentAnswer = at[api.AgentAnswer, api.Agent]("agent-answer", "POST /agents/{agent}/answer",
		"Confirm or reject the changed key of an agent.")
	PairedClients = at[None, []api.PairedClient]("paired-clients", "GET /agents/{agent}/clients",
		"List the computers that are paired with an agent.")
	ClientRevoke = at[None, None]("client-revoke", "DELETE /agents/{agent}/clients/{fingerprint}",
		"Revoke a paired computer and close its connections.")
	AgentAudit = at[None, []session.AuditEntry]("agent-audit", "GET /agents/{agent}/audit",
		"Read the audit log of an agent that you administer, oldest first.",
		Param{"limit", "how many of the newest entries, 1 to 500; 100 if empty"},
		Param{"before", "only entries older than this time"},
		Param{"owner", "only entries of this person"}, Param{"text", "words that an entry contains"},
		Param{"failed", "1 for failures only"}, Param{"security", "1 for security events only"})
	AgentLimits = at[None, api.PersonLimits]("agent-limits", "GET /agents/{agent}/limits",
		"Read the limits of each person on an agent that you administer.")
	AgentLimitSet = at[session.Allowance, None]("agent-limit-set", "PUT /agents/{agent}/limits/{owner}",
		"Set the limits of a person on an agent that you administer.")
	AgentLimitUnset = at[None, None]("agent-limit-unset", "DELETE /agents/{agent}/limits/{owner}",
		"Remove the limits of a person.")
	PairCode = at[api.PairRequest, api.PairCode]("pair-code", "POST /agents/{agent}/pair",
		"Create a code to pair a computer with an agent.").answers(http.StatusCreated)
	AgentRotate = at[None, api.KeyRotation]("agent-rotate", "POST /agents/{agent}/rotate",
		"Have an agent change its key. Paired computers accept the new one by the old one's signature.")
	KeyRotate = at[None, api.KeyRotation]("key-rotate", "POST /key/rotate",
		"Change the key by which agents know this computer.")
	Operations = at[None, []api.Operation]("operations", "GET /operations", "List the operations, newest first.")
	Operation  = at[None, api.Operation]("operation", "GET /operations/{id}",
		"Show one operation.").answers(http.StatusOK)
	OperationAnswer = at[api.PromptAnswer, api.Operation]("operation-answer", "POST /operations/{id}/answer",
		"Answer what an operation asks.").answers(http.StatusOK)
	OperationCancel = at[None, api.Operation]("operation-cancel", "POST /operations/{id}/cancel",
		"Cancel an operation. It ends a moment later and leaves nothing half done.")
)
