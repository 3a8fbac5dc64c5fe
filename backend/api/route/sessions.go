package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
)

// Routes of sessions, launches and the queue.
var (
	Commit = at[api.Commit, api.Operation]("commit", "POST /sessions/{id}/commit", "Create an image from a running "+
		"interactive session, as an operation. Folders, mounts and /home/work are not included.")
	Queue = at[None, []api.Session]("queue", "GET /queue", "List waiting sessions by agent, in queue order.",
		agentQuery...)
	Sessions = at[None, []api.Session]("sessions", "GET /sessions", "List sessions, newest first.",
		Param{"state", "live, finished or all (default)"}, Param{"limit", "at most this many"},
		Param{"offset", "skip this many"}, agentQuery[0])
	Launch = at[hub.LaunchRequest, api.Session]("launch", "POST /sessions",
		"Launch a session.").answers(http.StatusCreated)
	LaunchMany = at[api.LaunchManyRequest, []api.Launched]("launch-many", "POST /launches", "Launch several "+
		"sessions of one spec. Each has its own outcome, in the order of their numbers; an invalid spec "+
		"launches none.")
	Preview = at[session.Spec, api.Preview]("preview", "POST /preview",
		"Show what a launch would do, and every invalid field.",
		Param{"owner", "the owner, as in a launch; empty: the caller"},
		Param{"count", "how many sessions the launch is of, 1 to 10; empty: 1"})
	Session = at[None, api.Session]("session", "GET /sessions/{id}",
		"Show one session, by id or by the name of a live one.")
	SessionUpdate = at[api.SessionUpdate, api.Session]("session-update", "PATCH /sessions/{id}",
		"Rename a live session, change the priority or the devices of a waiting one, or the tags of any.")
	Keep = at[api.KeepRequest, api.Session]("keep", "POST /sessions/{id}/keep",
		"Protect a session from being reclaimed as idle for some time.")
	IdleSimulation = at[session.IdlePolicy, session.IdleSimulation]("idle-simulation",
		"POST /sessions/{id}/idle-simulation",
		"Show what an idle policy would have done with a session. Nothing is changed.")
	Terminate = at[api.TerminateRequest, api.Session]("terminate", "POST /sessions/{id}/terminate",
		"Terminate a session.").answers(http.StatusAccepted)
	Park = at[None, api.Session]("park", "POST /sessions/{id}/park", "Terminate a running session so that it can be "+
		"continued: an image is made of it, and its home is kept as a folder.").answers(http.StatusAccepted)
	Continue = at[None, api.Session]("continue", "POST /sessions/{id}/continue", "Launch a session again that was "+
		"parked, by its id, or by the name of the one that was parked last.").answers(http.StatusCreated)
	MoveOffers = at[None, []hub.MoveOffer]("move-offers", "GET /sessions/{id}/moves", "List the other machines to "+
		"which a waiting session could be moved, and whether it would start there at once. The list is empty for a "+
		"session that cannot be moved.")
	Move = at[api.MoveRequest, api.Session]("move", "POST /sessions/{id}/move", "Move a waiting session to another "+
		"machine. It gets another id there; the old one leads to it.")
	Relocate = at[api.Relocating, api.Operation]("relocate", "POST /sessions/{id}/relocation", "Move a running or a "+
		"parked session to another machine with its home, its folders and its image, as an operation. It asks at "+
		"the end whether what is left is deleted. If it fails, the session is continued where it was. A copy leaves "+
		"the session running, may be on the same machine, and is deleted again if it fails.")
	RelocationPlan = at[None, hub.RelocationPlan]("relocation-plan", "GET /sessions/{id}/relocation", "Show what "+
		"moving or copying a running or a parked session would send.", Param{"agent", "of the other machine"},
		Param{"copy", "1: copy it"}, Param{"name", "of the copy"})
	TerminateUndo = at[None, api.Session]("terminate-undo", "DELETE /sessions/{id}/terminate",
		"Keep a session that is about to be terminated.")
	Loss = at[None, hub.Loss]("loss", "GET /sessions/{id}/loss",
		"Show what terminating a session would delete and cancel.")
	History = at[None, []session.Phase]("history", "GET /sessions/{id}/history", "Show the phases and steps a "+
		"session went through. All filters must match; each may have several values, separated by commas.",
		Param{"id", "only this phase's record"}, Param{"phase", "schedule, prepare, start or terminate"},
		Param{"result", "for example FAILURE"}, Param{"from", "status before"}, Param{"to", "status after"},
		Param{"code", "error code of the phase or of one of its steps, or a part of one"},
		Param{"text", "part of a message or of the name of a step, ignoring case"},
		Param{"sort", "created (default) or updated; with a leading -, newest first"})
	Logs = at[None, None]("logs", "GET /sessions/{id}/logs",
		"Read a kernel's log. It is kept after the session has ended.", Param{"kernel", "main1 if empty"},
		Param{"follow", "1: follow until the session ends"}, Param{"tail", "only the last lines"},
		Param{"timestamps", "1: begin each line with its time"}).streams(Text)
	Usage = at[None, []session.Usage]("usage", "GET /sessions/{id}/usage", "Read the samples of the last hour.",
		Param{"since", "only newer ones"})
	LastSuccess = at[None, api.SuccessComparison]("last-success", "GET /sessions/{id}/last-success", "Compare a "+
		"session with the last one like it that succeeded: of the same person and name, else image and command.")
	Terminals    = at[None, []session.Terminal]("terminals", "GET /sessions/{id}/terminals", "List a session's shells.")
	TerminalOpen = at[session.TerminalRequest, session.Terminal]("terminal-open", "POST /sessions/{id}/terminals",
		"Start a shell.").answers(http.StatusCreated)
	TerminalClose  = at[None, None]("terminal-close", "DELETE /sessions/{id}/terminals/{terminal}", "End a shell.")
	TerminalSearch = at[None, api.TerminalSearch]("terminal-search", "GET /sessions/{id}/terminal-search",
		"Search the output of the session's shells, ignoring case.", Param{"q", "the text, of 1 to 200 bytes"})
	TerminalOutput = at[None, None]("terminal-output", "GET /sessions/{id}/terminals/{terminal}/output",
		"Download the stored output of a shell.",
		Param{"form", "text, as it was displayed, or raw; text if empty"}).streams(Text)
	TerminalAttach = at[None, None]("terminal-attach", "GET /sessions/{id}/terminals/{terminal}/attach",
		"Join a shell from an offset. Each binary message is one frame of the attach protocol without its length. A "+
			"failure is one text message, a Problem, before the close with 4000 and its HTTP status.",
		Param{"offset", "first output byte wanted"},
		Param{"client", "name of this viewer across reconnections"}).streams(WebSocket)
	Exec = at[session.ExecRequest, None]("exec", "GET /sessions/{id}/exec", "Run one command. The first message is "+
		"an ExecRequest as text; each binary message is one frame of the exec protocol without its length. A "+
		"failure is reported as in attach.").streams(WebSocket)
	Apps    = at[None, []api.App]("apps", "GET /sessions/{id}/apps", "List what a session can serve.")
	AppOpen = at[api.OpenRequest, api.Opened]("app-open", "POST /sessions/{id}/apps/{app}/open",
		"Start an app if necessary, wait for it, and open it.")
	AppDoorClose = at[None, None]("app-door-close", "DELETE /sessions/{id}/apps/{app}/door",
		"Close the local port of an app.")
	AppStop   = at[None, None]("app-stop", "POST /sessions/{id}/apps/{app}/stop", "Stop an app.")
	SSHAccess = at[None, api.SSHAccess]("ssh-access", "GET /sessions/{id}/ssh",
		"Show how to reach a running session by ssh.")
	SSHTest   = at[None, api.SSHTest]("ssh-test", "POST /sessions/{id}/ssh/test", "Test the ssh login to a session.")
	SSHStream = at[None, None]("ssh-stream", "GET /sessions/{id}/ssh/stream", "Connect to a session's ssh server. "+
		"Each binary message is some bytes of the connection. A failure is reported as in attach.",
		Param{"kernel", "main1 if empty"},
		Param{"bulk", "1: for files, with a lower priority than interactive use"}).streams(WebSocket)
	SessionRecipe = at[None, api.Recipe]("session-recipe", "GET /sessions/{id}/recipe",
		"Read the spec of a session as a recipe, without secrets.")
)

// Routes of recipes, presets and recent launches.
var (
	Presets = at[None, []hub.Preset]("presets", "GET /presets",
		"List resource presets: built-in ones first, then the user's own.")
	PresetCreate = at[hub.PresetContent, hub.Preset]("preset-create", "POST /presets",
		"Save a preset.").answers(http.StatusCreated)
	PresetUpdate = at[hub.PresetUpdate, hub.Preset]("preset-update", "PATCH /presets/{id}",
		"Rename or change a preset.")
	PresetDelete = at[None, None]("preset-delete", "DELETE /presets/{id}", "Delete a preset.")
	Recents      = at[None, []hub.Recent]("recents", "GET /recents", "List the launch history.")
	RecentUpdate = at[api.RecentUpdate, hub.Recent]("recent-update", "PATCH /recents/{id}",
		"Pin, unpin or rename an entry of the launch history.")
	RecentDelete = at[None, None]("recent-delete", "DELETE /recents/{id}", "Delete an entry of the launch history.")
	RecentRecipe = at[None, api.Recipe]("recent-recipe", "GET /recents/{id}/recipe",
		"Read an entry of the launch history as a recipe.")
	RecipeRead = at[api.RecipeText, session.Spec]("recipe-read", "POST /recipes/read",
		"Parse a recipe. Nothing is launched; preview validates its values.")
	RecipeCompare = at[api.RecipePair, []recipe.Field]("recipe-compare", "POST /recipes/compare",
		"Compare two specs field by field.")
	LinkRead = at[api.LinkText, recipe.Link]("link-read", "POST /links/read",
		"Show what a slipway:// link asks for, without doing it.")
)
