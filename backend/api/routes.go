package api

import "net/http"

// Route describes one endpoint. Request and Response are zero values of the
// body types, or nil. Query names the query parameters with their meaning.
type Route struct {
	Name     string
	Method   string
	Path     string
	Summary  string
	Query    []Param
	Request  any
	Response any
	Status   int    // of success
	Stream   string // how the answer is carried when it is not JSON: websocket, text or bytes
}

// Param is a query parameter.
type Param struct {
	Name string
	Text string
}

// accountQuery is how accounts are asked for.
var accountQuery = []Param{
	{"from", "a time or a day such as 2031-05-01, which begins at midnight here; empty: 30 days before to"},
	{"to", "a time or a day, which is then the last one counted; empty: now"},
	{"bucket", "hour or day: rows for each of them; empty: for the whole span"},
	{"by", "session, day, label, owner or device: sum rows up; empty: each session and device by itself"},
	{"label", "only sessions of this project"},
	agentQuery[0],
}

// agentQuery is how one agent is singled out.
var agentQuery = []Param{{"agent", "only this one; empty: all"}}

// fileQuery is how a file of a session is named, with what else is asked.
func fileQuery(more ...Param) []Param {
	return append([]Param{{"path", "absolute, or from /home/work on; any bytes, percent-encoded"}, {"kernel", "main1 if empty"}}, more...)
}

// folderQuery is how a file of a folder is named, with what else is asked.
func folderQuery(more ...Param) []Param {
	return append([]Param{{"path", "from the folder's root on; any bytes, percent-encoded"}, {"agent", "whose folder; empty: of any"}}, more...)
}

var zipName = Param{"name", "what the archive is called, without its ending; path may be given several times"}

var uploadKey = Param{"key", "names the upload"}

// Routes is the whole of /api/v1, in the order of the document.
var Routes = []Route{
	{Name: "version", Method: http.MethodGet, Path: "/api/v1/version", Summary: "Say what is running.", Response: Version{}},
	{Name: "demo", Method: http.MethodGet, Path: "/api/v1/demo", Summary: "Say whether what is served is a demonstration, and which.", Response: Demo{}},
	{Name: "demo-lid", Method: http.MethodPut, Path: "/api/v1/demo/lid", Summary: "Close the lid of a demonstration's laptop, which cuts the tunnel, or open it.", Request: DemoLid{}, Response: Demo{}},
	{Name: "demo-start", Method: http.MethodPost, Path: "/api/v1/demo/start", Summary: "Start a demonstration beside what is real, with a folder and a port of its own, unless it runs.", Request: DemoStart{}, Response: DemoStarted{}},
	{Name: "openapi", Method: http.MethodGet, Path: "/api/v1/openapi.json", Summary: "Read this document.", Stream: "text"},
	{Name: "login-link", Method: http.MethodPost, Path: "/api/v1/login", Summary: "Make a one-time address that logs a browser in. It is valid for one minute.", Response: LoginLink{}, Status: http.StatusCreated},
	{Name: "login-pass", Method: http.MethodPost, Path: "/api/v1/login/pass",
		Summary: "Make an address for a browser's arguments. It leads this user's connections to a one-time address.",
		Request: PassRequest{}, Response: Pass{}, Status: http.StatusCreated},
	{Name: "doctor", Method: http.MethodGet, Path: "/api/v1/doctor", Summary: "Probe the machine and say what is missing and how to mend it.",
		Query: []Param{{"agent", "whose machine; empty: this computer's"}}, Response: []Check{}},
	{Name: "events", Method: http.MethodGet, Path: "/api/v1/events", Summary: "Follow every change.", Stream: "websocket",
		Query: []Param{{"epoch", "epoch of the last event seen"}, {"after", "its seq"}, {"shell", "1 for the desktop shell"}}, Response: Event{}},
	{Name: "machines", Method: http.MethodGet, Path: "/api/v1/machines", Summary: "List the agents and their machines.", Response: []Machine{}},
	{Name: "agents", Method: http.MethodGet, Path: "/api/v1/agents", Summary: "List the agents that are known here and how each is reached.", Response: []Agent{}},
	{Name: "agent-add", Method: http.MethodPost, Path: "/api/v1/agents", Summary: "Add an agent, or only probe one. The work goes on as an operation, which may ask for a password, a host key or a pairing code.", Request: AgentRequest{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "agent", Method: http.MethodGet, Path: "/api/v1/agents/{agent}", Summary: "Show one agent.", Response: Agent{}},
	{Name: "agent-update", Method: http.MethodPatch, Path: "/api/v1/agents/{agent}", Summary: "Rename an agent or put it into another resource group.", Request: AgentUpdate{}, Response: Agent{}},
	{Name: "agent-remove", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/remove", Summary: "Forget an agent, as an operation. Its sessions go on unless it is uninstalled.", Request: AgentRemoval{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "agent-probe", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/probe", Summary: "Probe an agent's machine again, as an operation.", Response: Operation{}, Status: http.StatusAccepted},
	{Name: "agent-upgrade", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/upgrade", Summary: "Bring this version to an agent's machine, as an operation. Its sessions go on.", Response: Operation{}, Status: http.StatusAccepted},
	{Name: "agent-reconnect", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/reconnect", Summary: "Try at once to reach an agent. It may ask a person, as an operation does.", Response: Operation{}, Status: http.StatusAccepted},
	{Name: "agent-answer", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/answer", Summary: "Answer the question of an agent that shows another key than before.", Request: AgentAnswer{}, Response: Agent{}},
	{Name: "paired-devices", Method: http.MethodGet, Path: "/api/v1/agents/{agent}/devices", Summary: "List the devices that an agent lets in.", Response: []PairedDevice{}},
	{Name: "device-revoke", Method: http.MethodDelete, Path: "/api/v1/agents/{agent}/devices/{fingerprint}", Summary: "Let a device in no more and end its connections.", Status: http.StatusNoContent},
	{Name: "agent-audit", Method: http.MethodGet, Path: "/api/v1/agents/{agent}/audit", Summary: "Read who did what with an agent that one rules, oldest first.",
		Query: []Param{{"limit", "how many of the newest entries, 1 to 500; 100 if empty"}, {"before", "time of the oldest entry that is known: only older ones"}, {"owner", "only what this person did"}, {"text", "words, each of which is somewhere in an entry"}, {"failed", "1 for what was refused or went wrong"}, {"security", "1 for security events only"}}, Response: []AuditEntry{}},
	{Name: "agent-limits", Method: http.MethodGet, Path: "/api/v1/agents/{agent}/limits", Summary: "Read what each person may hold on an agent that one rules.", Response: PersonLimits{}},
	{Name: "agent-limit-set", Method: http.MethodPut, Path: "/api/v1/agents/{agent}/limits/{owner}", Summary: "Set what a person may hold on an agent that one rules.", Request: PersonLimit{}, Status: http.StatusNoContent},
	{Name: "agent-limit-unset", Method: http.MethodDelete, Path: "/api/v1/agents/{agent}/limits/{owner}", Summary: "Remove the limits of a person.", Status: http.StatusNoContent},
	{Name: "pair-code", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/pair", Summary: "Make a code by which an agent lets one more device in.", Request: PairRequest{}, Response: PairCode{}, Status: http.StatusCreated},
	{Name: "agent-rotate", Method: http.MethodPost, Path: "/api/v1/agents/{agent}/rotate", Summary: "Have an agent change its key. Paired devices accept the new one by the old one's signature.", Response: KeyRotation{}},
	{Name: "key-rotate", Method: http.MethodPost, Path: "/api/v1/key/rotate", Summary: "Change the key by which agents know this computer.", Response: KeyRotation{}},
	{Name: "operations", Method: http.MethodGet, Path: "/api/v1/operations", Summary: "List the operations, newest first.", Response: []Operation{}},
	{Name: "operation", Method: http.MethodGet, Path: "/api/v1/operations/{id}", Summary: "Show one operation.", Response: Operation{}},
	{Name: "operation-answer", Method: http.MethodPost, Path: "/api/v1/operations/{id}/answer", Summary: "Answer what an operation asks.", Request: PromptAnswer{}, Response: Operation{}},
	{Name: "operation-cancel", Method: http.MethodPost, Path: "/api/v1/operations/{id}/cancel", Summary: "Cancel an operation. It ends a moment later and leaves nothing half done.", Response: Operation{}, Status: http.StatusAccepted},
	{Name: "directories", Method: http.MethodGet, Path: "/api/v1/machines/{agent}/directories", Summary: "List the directories in a directory of an agent's machine.",
		Query: []Param{{"path", "absolute path; empty: the person's home"}}, Response: DirectoryListing{}},
	{Name: "image-send", Method: http.MethodPost, Path: "/api/v1/images/send", Summary: "Bring an image from one agent to another without a registry, as an operation. Only the layers that are missing there travel.", Request: ImageSending{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "images", Method: http.MethodGet, Path: "/api/v1/images", Summary: "List the images that are on the agents' machines.", Query: agentQuery, Response: []Image{}},
	{Name: "image-pull", Method: http.MethodPost, Path: "/api/v1/images/pull", Summary: "Pull an image of a registry, as an operation. It goes on while nobody watches.", Request: ImagePull{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "image-remove", Method: http.MethodPost, Path: "/api/v1/images/remove", Summary: "Remove images, as an operation. One that a session uses stays.", Request: ImageRemoval{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "image-disk", Method: http.MethodGet, Path: "/api/v1/images/disk", Summary: "Say what images take on a machine's disk.", Query: []Param{{"agent", "whose machine; empty: this computer"}}, Response: ImageDisk{}},
	{Name: "commit", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/commit", Summary: "Make an image of a running interactive session, as an operation. Folders, mounts and /home/work are not part of it.", Request: Commit{}, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "environments", Method: http.MethodGet, Path: "/api/v1/environments", Summary: "List the image families that the launcher offers.", Response: []Environment{}},
	{Name: "environment-file", Method: http.MethodGet, Path: "/api/v1/environments/file", Summary: "Say where one's own catalogue of environments is looked for, and what is wrong with it.", Response: EnvironmentFile{}},
	{Name: "presets", Method: http.MethodGet, Path: "/api/v1/presets", Summary: "List the resource presets, those of one's own after those built in.", Response: []Preset{}},
	{Name: "preset-create", Method: http.MethodPost, Path: "/api/v1/presets", Summary: "Save a preset of one's own.", Request: PresetRequest{}, Response: Preset{}, Status: http.StatusCreated},
	{Name: "preset-update", Method: http.MethodPatch, Path: "/api/v1/presets/{id}", Summary: "Rename or change a preset of one's own.", Request: PresetUpdate{}, Response: Preset{}},
	{Name: "preset-delete", Method: http.MethodDelete, Path: "/api/v1/presets/{id}", Summary: "Forget a preset of one's own.", Status: http.StatusNoContent},
	{Name: "devices", Method: http.MethodGet, Path: "/api/v1/devices", Summary: "Show the devices of every agent, their load, and who holds them.", Query: agentQuery, Response: []DeviceBoard{}},
	{Name: "device-history", Method: http.MethodGet, Path: "/api/v1/machines/{agent}/devices/{device}/history", Summary: "Read the samples of a device, one a minute beyond the last hour.",
		Query: []Param{{"since", "only newer ones; empty: the last hour"}}, Response: []DevicePoint{}},
	{Name: "resources", Method: http.MethodGet, Path: "/api/v1/resources", Summary: "Sum up what each agent's machine has, promised and uses, and what one's own sessions hold.", Response: []ResourceSummary{}},
	{Name: "accounts", Method: http.MethodGet, Path: "/api/v1/usage", Summary: "Read what was used in a span of time.", Query: accountQuery, Response: UsageReport{}},
	{Name: "accounts-csv", Method: http.MethodGet, Path: "/api/v1/usage.csv", Summary: "Read what was used in a span of time as a CSV table.", Query: accountQuery, Stream: "text"},
	{Name: "queue", Method: http.MethodGet, Path: "/api/v1/queue", Summary: "List the sessions that wait, agent by agent in the order of their turn.", Query: agentQuery, Response: []Session{}},
	{Name: "sessions", Method: http.MethodGet, Path: "/api/v1/sessions", Summary: "List sessions, newest first.",
		Query: []Param{{"state", "live, finished or all (default)"}, {"limit", "at most this many"}, {"offset", "skip this many"}, agentQuery[0]}, Response: []Session{}},
	{Name: "launch", Method: http.MethodPost, Path: "/api/v1/sessions", Summary: "Launch a session.", Request: LaunchRequest{}, Response: Session{}, Status: http.StatusCreated},
	{Name: "launch-many", Method: http.MethodPost, Path: "/api/v1/launches", Summary: "Launch several sessions of one spec. Each has its own outcome, in the order of their numbers; a spec that is wrong launches none.", Request: LaunchManyRequest{}, Response: []Launched{}},
	{Name: "preview", Method: http.MethodPost, Path: "/api/v1/preview", Summary: "Say what a launch would do, with every field that is wrong.", Query: []Param{{"owner", "for whom, as in a launch; empty: oneself"}}, Request: Spec{}, Response: Preview{}},
	{Name: "session", Method: http.MethodGet, Path: "/api/v1/sessions/{id}", Summary: "Show one session, by id or by the name of a live one.", Response: Session{}},
	{Name: "session-update", Method: http.MethodPatch, Path: "/api/v1/sessions/{id}", Summary: "Rename a live session, change the priority of one that waits, or the tags of any.", Request: SessionUpdate{}, Response: Session{}},
	{Name: "keep", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/keep", Summary: "Protect a session from being reclaimed as idle for some time.", Request: KeepRequest{}, Response: Session{}},
	{Name: "idle-simulation", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/idle-simulation", Summary: "Say what an idle policy would have made of a session. It changes nothing.", Request: IdlePolicy{}, Response: IdleSimulation{}},
	{Name: "terminate", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/terminate", Summary: "End a session.", Request: TerminateRequest{}, Response: Session{}, Status: http.StatusAccepted},
	{Name: "history", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/history", Summary: "Show the phases and steps a session went through. Filters are joined by and; each may hold several values separated by commas.",
		Query: []Param{{"id", "only this phase's record"}, {"phase", "schedule, prepare, start or terminate"}, {"result", "for example FAILURE"}, {"from", "status before"}, {"to", "status after"},
			{"code", "error code of the phase or of one of its steps, or a part of one"}, {"text", "part of a message or of the name of a step, whatever its case"},
			{"sort", "created (default) or updated; with a - in front the newest first"}}, Response: []Phase{}},
	{Name: "logs", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/logs", Summary: "Read a kernel's log. It is kept after the session has ended.", Stream: "text",
		Query: []Param{{"kernel", "main1 if empty"}, {"follow", "1: go on until the session ends"}, {"tail", "only the last lines"}, {"timestamps", "1: begin each line with its time"}}},
	{Name: "usage", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/usage", Summary: "Read the samples of the last hour.", Query: []Param{{"since", "only newer ones"}}, Response: []Usage{}},
	{Name: "terminals", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/terminals", Summary: "List a session's shells.", Response: []Terminal{}},
	{Name: "terminal-open", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/terminals", Summary: "Start a shell.", Request: TerminalRequest{}, Response: Terminal{}, Status: http.StatusCreated},
	{Name: "terminal-close", Method: http.MethodDelete, Path: "/api/v1/sessions/{id}/terminals/{terminal}", Summary: "End a shell.", Status: http.StatusNoContent},
	{Name: "terminal-search", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/terminal-search", Summary: "Find a text in what the session's shells have printed, in letters of either case.", Query: []Param{{"q", "the text, of 1 to 200 bytes"}}, Response: TerminalSearch{}},
	{Name: "terminal-output", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/terminals/{terminal}/output", Summary: "Download what a shell has printed, as far as it is kept.", Stream: "text", Query: []Param{{"form", "text, as a person has read it, or raw; text if empty"}}},
	{Name: "terminal-attach", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/terminals/{terminal}/attach", Summary: "Join a shell from an offset. Each binary message is one frame of the attach protocol without its length. A failure is one text message, a Problem, before the close with 4000 and its HTTP status.", Stream: "websocket",
		Query: []Param{{"offset", "first output byte wanted"}, {"client", "name of this viewer across reconnections"}}},
	{Name: "exec", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/exec", Summary: "Run one command. The first message is an ExecRequest as text; each binary message is one frame of the exec protocol without its length. A failure is told as in attach.", Stream: "websocket", Request: ExecRequest{}},
	{Name: "apps", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/apps", Summary: "List what a session can serve.", Response: []App{}},
	{Name: "app-open", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/apps/{app}/open", Summary: "Start an app if need be, wait for it, and open it.", Request: OpenRequest{}, Response: Opened{}},
	{Name: "app-door-close", Method: http.MethodDelete, Path: "/api/v1/sessions/{id}/apps/{app}/door", Summary: "Close the port of this computer that leads to an app.", Status: http.StatusNoContent},
	{Name: "app-stop", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/apps/{app}/stop", Summary: "Stop an app.", Status: http.StatusNoContent},
	{Name: "ssh-setup", Method: http.MethodGet, Path: "/api/v1/ssh", Summary: "Say how ssh on this computer reaches sessions.", Response: SSHSetup{}},
	{Name: "ssh-update", Method: http.MethodPut, Path: "/api/v1/ssh", Summary: "Have the person's own configuration of ssh include that of the sessions, or no longer.", Request: SSHUpdate{}, Response: SSHSetup{}},
	{Name: "ssh-access", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/ssh", Summary: "Say how a running session is reached by ssh.", Response: SSHAccess{}},
	{Name: "ssh-test", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/ssh/test", Summary: "Log in to a session as ssh would, and say how it went.", Response: SSHTest{}},
	{Name: "ssh-stream", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/ssh/stream", Summary: "Connect to a session's ssh server. Each binary message is some bytes of the connection. A failure is told as in attach.", Stream: "websocket",
		Query: []Param{{"kernel", "main1 if empty"}, {"bulk", "1: it is made for files, and gives way to what a person waits for"}}},
	{Name: "files", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files", Summary: "List a directory of a running session, as its user sees it.",
		Query: fileQuery(Param{"after", "the last name of the part before"}, Param{"limit", "at most this many; 10000 are the most"}), Response: FileListing{}},
	{Name: "file-remove", Method: http.MethodDelete, Path: "/api/v1/sessions/{id}/files", Summary: "Remove a file or an empty directory.", Query: fileQuery(Param{"recursive", "1: also what is in it"}), Status: http.StatusNoContent},
	{Name: "file-stat", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files/stat", Summary: "Describe a file.", Query: fileQuery(), Response: FileInfo{}},
	{Name: "file-checksum", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files/checksum", Summary: "Read the checksum of a file.", Query: fileQuery(), Response: Checksum{}},
	{Name: "file-read", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files/content", Summary: "Read a file. Range and If-Range with its ETag resume; a lost connection to the agent is waited for.", Query: fileQuery(), Stream: "bytes"},
	{Name: "file-move", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/files/move", Summary: "Rename a file or directory. Nothing is replaced.", Query: fileQuery(Param{"to", "the new path"}), Status: http.StatusNoContent},
	{Name: "directory-make", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/files/directory", Summary: "Make a directory.", Query: fileQuery(Param{"parents", "1: also those above it; one that is there is no failure then"}), Status: http.StatusNoContent},
	{Name: "upload", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files/upload", Summary: "Say how far an upload is. Its key, 1 to 64 letters and digits, is chosen by who uploads.", Query: fileQuery(uploadKey), Response: UploadState{}},
	{Name: "upload-write", Method: http.MethodPut, Path: "/api/v1/sessions/{id}/files/upload", Summary: "Add the body's bytes to an upload, which gathers hidden until it is finished. A lost connection to the agent is waited for.",
		Query: fileQuery(uploadKey, Param{"offset", "place of the first byte, not beyond what is there"}), Response: UploadState{}},
	{Name: "upload-finish", Method: http.MethodPost, Path: "/api/v1/sessions/{id}/files/upload", Summary: "Make an uploaded file appear, whole and at once.", Query: fileQuery(uploadKey), Request: FinishRequest{}, Response: FileInfo{}},
	{Name: "upload-drop", Method: http.MethodDelete, Path: "/api/v1/sessions/{id}/files/upload", Summary: "Forget an upload.", Query: fileQuery(uploadKey), Status: http.StatusNoContent},
	{Name: "file-zip", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/files/zip", Summary: "Read files and directories as one archive, which is made while it is sent. Links are left out.", Query: fileQuery(zipName), Stream: "bytes"},
	{Name: "folders", Method: http.MethodGet, Path: "/api/v1/folders", Summary: "List the data folders, also those in the trash.", Query: agentQuery, Response: []Folder{}},
	{Name: "folder-create", Method: http.MethodPost, Path: "/api/v1/folders", Summary: "Create a folder, or make a directory of the machine one.", Request: FolderRequest{}, Response: Folder{}, Status: http.StatusCreated},
	{Name: "folder", Method: http.MethodGet, Path: "/api/v1/folders/{folder}", Summary: "Show a folder, by its id or the name of one that is not in the trash.", Query: agentQuery, Response: Folder{}},
	{Name: "folder-update", Method: http.MethodPatch, Path: "/api/v1/folders/{folder}", Summary: "Rename a folder, or change its permission or mode.", Query: agentQuery, Request: FolderUpdate{}, Response: Folder{}},
	{Name: "folder-trash", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/trash", Summary: "Put a folder into the trash. One that a live session has mounted stays.", Query: agentQuery, Response: Folder{}},
	{Name: "folder-restore", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/restore", Summary: "Take a folder out of the trash.", Query: agentQuery, Response: Folder{}},
	{Name: "folder-delete", Method: http.MethodDelete, Path: "/api/v1/folders/{folder}", Summary: "Delete a folder in the trash for ever, as an operation. What is linked stays where it is.", Query: agentQuery, Response: Operation{}, Status: http.StatusAccepted},
	{Name: "folder-delete-stop", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/stop", Summary: "Stop deleting a folder. What is left of it is in the trash.", Query: agentQuery, Response: Folder{}},
	{Name: "folder-files", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files", Summary: "List a directory of a folder.",
		Query: folderQuery(Param{"after", "the last name of the part before"}, Param{"limit", "at most this many; 10000 are the most"}), Response: FileListing{}},
	{Name: "folder-file-remove", Method: http.MethodDelete, Path: "/api/v1/folders/{folder}/files", Summary: "Remove a file or an empty directory.", Query: folderQuery(Param{"recursive", "1: also what is in it"}), Status: http.StatusNoContent},
	{Name: "folder-file-stat", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files/stat", Summary: "Describe a file.", Query: folderQuery(), Response: FileInfo{}},
	{Name: "folder-file-checksum", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files/checksum", Summary: "Read the checksum of a file.", Query: folderQuery(), Response: Checksum{}},
	{Name: "folder-file-read", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files/content", Summary: "Read a file, as a session's is read.", Query: folderQuery(), Stream: "bytes"},
	{Name: "folder-file-zip", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files/zip", Summary: "Read files and directories as one archive.", Query: folderQuery(zipName), Stream: "bytes"},
	{Name: "folder-file-move", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/files/move", Summary: "Rename a file or directory. Nothing is replaced.", Query: folderQuery(Param{"to", "the new path"}), Status: http.StatusNoContent},
	{Name: "folder-directory-make", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/files/directory", Summary: "Make a directory.", Query: folderQuery(Param{"parents", "1: also those above it; one that is there is no failure then"}), Status: http.StatusNoContent},
	{Name: "folder-upload", Method: http.MethodGet, Path: "/api/v1/folders/{folder}/files/upload", Summary: "Say how far an upload is.", Query: folderQuery(uploadKey), Response: UploadState{}},
	{Name: "folder-upload-write", Method: http.MethodPut, Path: "/api/v1/folders/{folder}/files/upload", Summary: "Add the body's bytes to an upload.",
		Query: folderQuery(uploadKey, Param{"offset", "place of the first byte, not beyond what is there"}), Response: UploadState{}},
	{Name: "folder-upload-finish", Method: http.MethodPost, Path: "/api/v1/folders/{folder}/files/upload", Summary: "Make an uploaded file appear, whole and at once.", Query: folderQuery(uploadKey), Request: FinishRequest{}, Response: FileInfo{}},
	{Name: "folder-upload-drop", Method: http.MethodDelete, Path: "/api/v1/folders/{folder}/files/upload", Summary: "Forget an upload.", Query: folderQuery(uploadKey), Status: http.StatusNoContent},
	{Name: "recents", Method: http.MethodGet, Path: "/api/v1/recents", Summary: "List the launch history.", Response: []Recent{}},
	{Name: "recent-update", Method: http.MethodPatch, Path: "/api/v1/recents/{id}", Summary: "Pin, unpin or rename an entry of the launch history.", Request: RecentUpdate{}, Response: Recent{}},
	{Name: "recent-delete", Method: http.MethodDelete, Path: "/api/v1/recents/{id}", Summary: "Forget an entry of the launch history.", Status: http.StatusNoContent},
	{Name: "recent-recipe", Method: http.MethodGet, Path: "/api/v1/recents/{id}/recipe", Summary: "Read an entry of the launch history as a recipe.", Response: Recipe{}},
	{Name: "session-recipe", Method: http.MethodGet, Path: "/api/v1/sessions/{id}/recipe", Summary: "Read what a session was asked for as a recipe. It has no secrets.", Response: Recipe{}},
	{Name: "recipe-read", Method: http.MethodPost, Path: "/api/v1/recipes/read", Summary: "Read a recipe's text. It launches nothing; see preview for what its values are worth here.", Request: RecipeText{}, Response: Spec{}},
	{Name: "recipe-compare", Method: http.MethodPost, Path: "/api/v1/recipes/compare", Summary: "Compare two specs field by field.", Request: RecipePair{}, Response: []RecipeField{}},
	{Name: "link-read", Method: http.MethodPost, Path: "/api/v1/links/read",
		Summary: "Say what a slipway:// link asks for, without doing it.", Request: LinkText{}, Response: Link{}},
	{Name: "settings", Method: http.MethodGet, Path: "/api/v1/settings", Summary: "Read the settings.", Response: Settings{}},
	{Name: "settings-update", Method: http.MethodPut, Path: "/api/v1/settings", Summary: "Replace the settings.", Request: Settings{}, Response: Settings{}},
	{Name: "settings-file", Method: http.MethodGet, Path: "/api/v1/settings/file", Summary: "Read every setting with where it stands, what overrides it and what is wrong.", Response: SettingsFile{}},
	{Name: "setting-update", Method: http.MethodPatch, Path: "/api/v1/settings/file/{name}", Summary: "Change one setting in the file, or take it out.", Request: SettingUpdate{}, Response: SettingsFile{}},
	{Name: "log", Method: http.MethodGet, Path: "/api/v1/log", Summary: "Read the end of Slipway's own log, without secrets.", Query: []Param{{"tail", "how many of the newest lines, 1 to 5000; 500 if empty"}}, Response: LogTail{}},
	{Name: "diagnostics", Method: http.MethodGet, Path: "/api/v1/diagnostics", Summary: "Sum up versions, checks, settings and the log for somebody who helps, without secrets.", Response: Diagnostics{}},
	{Name: "notifier", Method: http.MethodGet, Path: "/api/v1/notifier", Summary: "Say whether the desktop shows notices, or the pages do.", Response: Notifier{}},
	{Name: "notifier-try", Method: http.MethodPost, Path: "/api/v1/notifier", Summary: "Have the desktop show a notice.", Status: http.StatusNoContent},
	{Name: "window-show", Method: http.MethodPost, Path: "/api/v1/window", Summary: "Bring the desktop window to the front, if a desktop shell is connected, and show a page in it.", Request: WindowRequest{}, Response: Shown{}},
	{Name: "shutdown", Method: http.MethodPost, Path: "/api/v1/shutdown", Summary: "Stop the control plane. Sessions go on.", Status: http.StatusAccepted},
}
