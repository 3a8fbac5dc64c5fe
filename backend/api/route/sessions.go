package route

import (
	"net/http"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// Routes of sessions, launches and the queue.
var (
	Commit = Route[api.Commit, api.Operation]{&Endpoint{Name: "commit", Pattern: "POST /sessions/{id}/commit",
		Summary: "Create an image from a running interactive session, as an operation. Folders, mounts and " +
			"/home/work are not included.", Status: http.StatusAccepted}}
	Queue = Route[None, []api.Session]{&Endpoint{Name: "queue", Pattern: "GET /queue",
		Summary: "List waiting sessions by agent, in queue order.", Query: agentQuery}}
	Sessions = Route[None, []api.Session]{&Endpoint{Name: "sessions", Pattern: "GET /sessions",
		Summary: "List sessions, newest first.", Query: []Param{{"state", "live, finished or all (default)"},
			{"limit", "at most this many"}, {"offset", "skip this many"}, agentQuery[0]}}}
	Launch = Route[hub.LaunchRequest, api.Session]{&Endpoint{Name: "launch", Pattern: "POST /sessions",
		Summary: "Launch a session.", Status: http.StatusCreated}}
	LaunchMany = Route[api.LaunchManyRequest, []api.Launched]{&Endpoint{Name: "launch-many", Pattern: "POST /launches",
		Summary: "Launch several sessions of one spec. Each has its own outcome, in the order of their numbers; an " +
			"invalid spec launches none."}}
	Preview = Route[session.Spec, api.Preview]{&Endpoint{Name: "preview", Pattern: "POST /preview",
		Summary: "Show what a launch would do, and every invalid field.",
		Query:   []Param{{"owner", "the owner, as in a launch; empty: the caller"}}}}
	Session = Route[None, api.Session]{&Endpoint{Name: "session", Pattern: "GET /sessions/{id}",
		Summary: "Show one session, by id or by the name of a live one."}}
	SessionUpdate = Route[api.SessionUpdate, api.Session]{&Endpoint{Name: "session-update",
		Pattern: "PATCH /sessions/{id}",
		Summary: "Rename a live session, change the priority of a waiting one, or the tags of any."}}
	Keep = Route[api.KeepRequest, api.Session]{&Endpoint{Name: "keep", Pattern: "POST /sessions/{id}/keep",
		Summary: "Protect a session from being reclaimed as idle for some time."}}
	IdleSimulation = Route[session.IdlePolicy, session.IdleSimulation]{&Endpoint{Name: "idle-simulation",
		Pattern: "POST /sessions/{id}/idle-simulation",
		Summary: "Show what an idle policy would have done with a session. Nothing is changed."}}
	Terminate = Route[api.TerminateRequest, api.Session]{&Endpoint{Name: "terminate",
		Pattern: "POST /sessions/{id}/terminate",
		Summary: "Terminate a session.", Status: http.StatusAccepted}}
	History = Route[None, []session.Phase]{&Endpoint{Name: "history", Pattern: "GET /sessions/{id}/history",
		Summary: "Show the phases and steps a session went through. Filters are joined by and; each may hold " +
			"several values separated by commas.", Query: []Param{{"id", "only this phase's record"},
			{"phase", "schedule, prepare, start or terminate"}, {"result", "for example FAILURE"},
			{"from", "status before"}, {"to", "status after"},
			{"code", "error code of the phase or of one of its steps, or a part of one"},
			{"text", "part of a message or of the name of a step, whatever its case"},
			{"sort", "created (default) or updated; with a - in front the newest first"}}}}
	Logs = Route[None, None]{&Endpoint{Name: "logs", Pattern: "GET /sessions/{id}/logs",
		Summary: "Read a kernel's log. It is kept after the session has ended.",
		Query: []Param{{"kernel", "main1 if empty"}, {"follow", "1: follow until the session ends"},
			{"tail", "only the last lines"}, {"timestamps", "1: begin each line with its time"}}, Stream: Text}}
	Usage = Route[None, []session.Usage]{&Endpoint{Name: "usage", Pattern: "GET /sessions/{id}/usage",
		Summary: "Read the samples of the last hour.", Query: []Param{{"since", "only newer ones"}}}}
	Terminals = Route[None, []session.Terminal]{&Endpoint{Name: "terminals", Pattern: "GET /sessions/{id}/terminals",
		Summary: "List a session's shells."}}
	TerminalOpen = Route[session.TerminalRequest, session.Terminal]{&Endpoint{Name: "terminal-open",
		Pattern: "POST /sessions/{id}/terminals", Summary: "Start a shell.", Status: http.StatusCreated}}
	TerminalClose = Route[None, None]{&Endpoint{Name: "terminal-close",
		Pattern: "DELETE /sessions/{id}/terminals/{terminal}",
		Summary: "End a shell.", Status: http.StatusNoContent}}
	TerminalSearch = Route[None, api.TerminalSearch]{&Endpoint{Name: "terminal-search",
		Pattern: "GET /sessions/{id}/terminal-search",
		Summary: "Search the output of the session's shells, ignoring case.",
		Query:   []Param{{"q", "the text, of 1 to 200 bytes"}}}}
	TerminalOutput = Route[None, None]{&Endpoint{Name: "terminal-output",
		Pattern: "GET /sessions/{id}/terminals/{terminal}/output",
		Summary: "Download the stored output of a shell.",
		Query:   []Param{{"form", "text, as a person has read it, or raw; text if empty"}}, Stream: Text}}
	TerminalAttach = Route[None, None]{&Endpoint{Name: "terminal-attach",
		Pattern: "GET /sessions/{id}/terminals/{terminal}/attach",
		Summary: "Join a shell from an offset. Each binary message is one frame of the attach protocol without its " +
			"length. A failure is one text message, a Problem, before the close with 4000 and its HTTP status.",
		Query:  []Param{{"offset", "first output byte wanted"}, {"client", "name of this viewer across reconnections"}},
		Stream: WebSocket}}
	Exec = Route[session.ExecRequest, None]{&Endpoint{Name: "exec", Pattern: "GET /sessions/{id}/exec",
		Summary: "Run one command. The first message is an ExecRequest as text; each binary message is one frame of " +
			"the exec protocol without its length. A failure is told as in attach.", Stream: WebSocket}}
	Apps = Route[None, []api.App]{&Endpoint{Name: "apps", Pattern: "GET /sessions/{id}/apps",
		Summary: "List what a session can serve."}}
	AppOpen = Route[api.OpenRequest, api.Opened]{&Endpoint{Name: "app-open",
		Pattern: "POST /sessions/{id}/apps/{app}/open",
		Summary: "Start an app if necessary, wait for it, and open it."}}
	AppDoorClose = Route[None, None]{&Endpoint{Name: "app-door-close", Pattern: "DELETE /sessions/{id}/apps/{app}/door",
		Summary: "Close the local port of an app.", Status: http.StatusNoContent}}
	AppStop = Route[None, None]{&Endpoint{Name: "app-stop", Pattern: "POST /sessions/{id}/apps/{app}/stop",
		Summary: "Stop an app.", Status: http.StatusNoContent}}
	SSHAccess = Route[None, api.SSHAccess]{&Endpoint{Name: "ssh-access", Pattern: "GET /sessions/{id}/ssh",
		Summary: "Show how to reach a running session by ssh."}}
	SSHTest = Route[None, api.SSHTest]{&Endpoint{Name: "ssh-test", Pattern: "POST /sessions/{id}/ssh/test",
		Summary: "Test the ssh login to a session."}}
	SSHStream = Route[None, None]{&Endpoint{Name: "ssh-stream", Pattern: "GET /sessions/{id}/ssh/stream",
		Summary: "Connect to a session's ssh server. Each binary message is some bytes of the connection. A failure " +
			"is told as in attach.", Query: []Param{{"kernel", "main1 if empty"},
			{"bulk", "1: it is made for files, and gives way to what a person waits for"}}, Stream: WebSocket}}
	SessionRecipe = Route[None, api.Recipe]{&Endpoint{Name: "session-recipe", Pattern: "GET /sessions/{id}/recipe",
		Summary: "Read the spec of a session as a recipe, without secrets."}}
)
