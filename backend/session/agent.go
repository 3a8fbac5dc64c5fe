package session

import (
	"context"
	"io"
	"net"
	"time"
)

// Agent controls one machine. Callers take the parts that they need. The agent in this process and one behind a tunnel
// are the same here. Every method fails with an [Error]; "agent_*_unavailable" means that the agent was not reached and
// the outcome is unknown. The directive of a method says how it travels and who may call it; build/rpcgen explains the
// words.
type Agent struct {
	Sessions
	Activity
	Terminals
	SSH
	Apps
	Services
	Images
	ImageTransfers
	Projects
	Accelerators
	Queue
	Moves
	Host
	Data
	Admin Admin // calls of admins; nil: not available
}

// Data is what reads and writes files and folders.
type Data struct {
	Files
	Uploads
	Folders
	FolderTrash
}

// AgentOf returns the agent whose parts are all a, and admin, which may be nil. Only what represents a whole agent has
// all of these methods: a client, a gate, a fake.
func AgentOf(a interface {
	Sessions
	Activity
	Terminals
	SSH
	Apps
	Services
	Images
	ImageTransfers
	Projects
	Accelerators
	Queue
	Moves
	Host
	Files
	Uploads
	Folders
	FolderTrash
}, admin Admin) Agent {
	return Agent{a, a, a, a, a, a, a, a, a, a, a, a, a, Data{a, a, a, a}, admin}
}

// Sessions creates, shows, changes and ends sessions.
type Sessions interface {
	// Preview says what count launches, 1 to [MostLaunches], would do for an owner (empty: the caller), with every
	// field that is wrong.
	//
	//rpc:method name=preview effect=read args=owner?,+,count? who=custom
	Preview(ctx context.Context, owner string, spec Spec, count int) (Preview, error)
	// Launch stores a PENDING session and returns it. A second call with the same Key returns the session of the first
	// and creates nothing. It fails with session_create_invalid and Fields, session_create_already-exists, or
	// session_update_conflict if the session of the Key was moved to another agent, which knows the Key.
	//
	//rpc:method name=launch effect=again who=custom
	Launch(ctx context.Context, req LaunchRequest) (Session, error)
	// Get returns one session, live or finished; session_read_not-found.
	//
	//rpc:method name=get effect=read who=owner
	Get(ctx context.Context, id ID) (Session, error)
	// List returns sessions, newest first.
	//
	//rpc:method name=list effect=read limit=long who=custom
	List(ctx context.Context, filter Filter) ([]Session, error)
	// Rename gives a live session another name under the rule for names.
	//
	//rpc:method name=rename effect=again who=owner audit=name
	Rename(ctx context.Context, id ID, name string) (Session, error)
	// SetTags replaces the tags of a session, live or finished; see [CleanTags].
	//
	//rpc:method name=tags effect=again who=owner audit=tags
	SetTags(ctx context.Context, id ID, tags []string) (Session, error)
	// Terminate starts to end a live session and returns it at once, TERMINATING or ended. Forced removes the
	// containers without waiting, also the one that an ended session has kept; see [EndImage].
	//
	//rpc:method name=terminate effect=again args=id,forced? who=owner audit=forced
	Terminate(ctx context.Context, id ID, forced bool) (Session, error)
}

// Activity reports what happens in sessions.
type Activity interface {
	// Watch calls fn for every event after cursor, one at a time, until ctx ends or fn fails. A slow fn delays only
	// itself.
	//
	//rpc:method name=watch effect=read who=custom
	Watch(ctx context.Context, after Cursor, fn func(Event) error) error
	// History returns the phases of a session in the order of their creation.
	//
	//rpc:method name=history effect=read who=owner
	History(ctx context.Context, id ID) ([]Phase, error)
	// Logs writes a kernel's log to the returned reader, which the caller closes.
	//
	//rpc:method name=logs effect=read limit=long args=id,options who=owner audit=opts.Kernel
	Logs(ctx context.Context, id ID, opts LogOptions) (io.ReadCloser, error)
	// Usage returns the samples of the last hour after since.
	//
	//rpc:method name=usage effect=read who=owner
	Usage(ctx context.Context, id ID, since time.Time) ([]Usage, error)
}

// LaunchRequest asks for one session.
type LaunchRequest struct {
	Key   string `json:"key"` // idempotency key, unique to the launch; empty: none
	Owner string `json:"owner"`
	Spec  Spec   `json:"spec"`
	// ByAdmin opens every image and the agent's registry logins to the session. The gate sets it for admins.
	ByAdmin bool     `json:"byAdmin,omitempty"`
	Floats  *Floats  `json:"floats,omitempty"` // as in [Move]
	Tags    []string `json:"tags,omitempty"`
	From    ID       `json:"from,omitempty"`   // the session in whose place it is, or that it continues; empty: none
	Launch  ID       `json:"launch,omitempty"` // see [Resolved]
	// Confidential is kept beside the record of the session, not in it.
	Confidential Confidential `json:"confidential,omitzero"`
}

// Filter selects sessions. The zero filter selects all of them.
type Filter struct {
	Live     bool   `json:"live,omitempty"`     // only live ones
	Finished bool   `json:"finished,omitempty"` // only finished ones
	Owner    string `json:"owner,omitempty"`    // only of one person
	Key      string `json:"key,omitempty"`      // only the one, live or finished, that Owner launched with this key
	Limit    int    `json:"limit,omitempty"`    // 0: no limit
	Offset   int    `json:"offset,omitempty"`
}

// LogOptions selects a part of a log.
type LogOptions struct {
	Kernel     string `json:"kernel,omitempty"` // empty: main1
	Follow     bool   `json:"follow,omitempty"` // follow until the session ends
	Tail       int    `json:"tail,omitempty"`   // only the last lines; 0: all
	Timestamps bool   `json:"timestamps,omitempty"`
}

// Terminals holds shells inside running sessions and runs commands there.
type Terminals interface {
	//rpc:method name=terminals effect=read who=owner
	ListTerminals(ctx context.Context, id ID) ([]Terminal, error)
	// OpenTerminal starts a shell; guest_call_internal-error where the image has none.
	//
	//rpc:method name=terminal.open effect=once args=id,terminal who=owner audit=req.Kernel
	OpenTerminal(ctx context.Context, id ID, req TerminalRequest) (Terminal, error)
	// AttachTerminal joins a shell from an offset, with the attach protocol of package terminal. The shell outlives it.
	//
	//rpc:method name=terminal.attach effect=once args=id,attach who=owner audit=req.Terminal
	AttachTerminal(ctx context.Context, id ID, req AttachRequest) (io.ReadWriteCloser, error)
	//rpc:method name=terminal.close effect=once who=owner audit=terminal
	CloseTerminal(ctx context.Context, id ID, terminal string) error
	// Exec runs one command. The stream speaks the exec protocol of package terminal. Closing it ends the command.
	//
	//rpc:method name=exec effect=once args=id,exec who=owner audit=req.Kernel
	Exec(ctx context.Context, id ID, req ExecRequest) (io.ReadWriteCloser, error)
}

// TerminalRequest asks for a shell in a kernel (empty: main1); session_use_not-found if there is none.
type TerminalRequest struct {
	Kernel  string   `json:"kernel,omitempty"`
	Command []string `json:"command,omitempty"` // empty: the user's login shell
	Title   string   `json:"title,omitempty"`
	Cols    int      `json:"cols"`
	Rows    int      `json:"rows"`
}

// AttachRequest asks to join a shell. Client identifies the viewer, so that input that is sent again is recognized.
type AttachRequest struct {
	Terminal string `json:"terminal"`
	Offset   uint64 `json:"offset"` // first output byte wanted
	Client   string `json:"client"`
}

// ExecRequest asks for one command in a kernel (empty: main1); session_use_not-found if there is none.
type ExecRequest struct {
	Kernel  string   `json:"kernel,omitempty"`
	Command []string `json:"command"`
	Env     []EnvVar `json:"env,omitempty"`
	Dir     string   `json:"dir,omitempty"` // empty: /home/work
	Stdin   bool     `json:"stdin,omitempty"`
}

// Apps starts what a running session can serve and connects to it.
type Apps interface {
	//rpc:method name=apps effect=read who=owner
	ListApps(ctx context.Context, id ID) ([]App, error)
	// StartApp starts an app and waits until it responds, at most 2 min after it is installed. A running app is given
	// as it is, unless another directory is asked for. Failures: app_start_not-installed, app_start_exited,
	// app_start_timeout, app_open_conflict.
	//
	//rpc:method name=app.start effect=again limit=checking args=id,+ who=owner audit=req.App
	StartApp(ctx context.Context, id ID, req AppRequest) (App, error)
	//rpc:method name=app.stop effect=again who=owner audit=app
	StopApp(ctx context.Context, id ID, app string) error
	// DialPort connects to a port on the session's own loopback.
	//
	//rpc:method name=port.dial effect=once who=owner audit=port
	DialPort(ctx context.Context, id ID, port int) (net.Conn, error)
}

// AppRequest asks for an app. Dir is the directory to show, if the app shows one; empty: the default. With Install, an
// app that is not installed but Installable is installed into the session first. See [App].
type AppRequest struct {
	App     string `json:"app"`
	Dir     string `json:"dir,omitempty"`
	Install bool   `json:"install,omitempty"`
}

// Event is one change in an agent's world. One of the pointers is set, or none if a later event has the same content:
// samples and devices are not kept. Seq grows by one with each event of one Epoch, the run of an agent process; a
// watcher that may not see every session misses some numbers. A watcher that knows (Epoch, Seq) resumes after it;
// without it, with another epoch, or with a Seq that is too old it first receives Reset.
type Event struct {
	Epoch   string   `json:"epoch"`
	Seq     uint64   `json:"seq"`
	Reset   *Reset   `json:"reset,omitempty"`
	Session *Session `json:"session,omitempty"` // the session as it is now
	Removed *ID      `json:"removed,omitempty"` // the record was purged
	Owner   string   `json:"owner,omitempty"`   // of the session removed
	Usage   []Usage  `json:"usage,omitempty"`   // newest samples of live sessions; dull: only the last matters
	Machine *Machine `json:"machine,omitempty"` // the machine's resources or warnings changed

	// Devices is the board after every sample and every change of holders; dull: only the last matters.
	Devices *DeviceBoard `json:"devices,omitempty"`
}

// ResetFinished is how many finished sessions a [Reset] has. More are read in pages.
const ResetFinished = 100

// Reset is the whole state, which replaces what a watcher knew: the live and the newest [ResetFinished] sessions.
type Reset struct {
	Sessions []Session `json:"sessions"`
	Machine  Machine   `json:"machine"`

	Devices *DeviceBoard `json:"devices,omitempty"` // nil: none was made yet
}

// Cursor is a place in an event stream. The zero cursor is before everything.
type Cursor struct {
	Epoch string `json:"epoch,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
}

// SSH connects to the SSH server in every kernel, whatever its image contains, on the way of terminals.
type SSH interface {
	// SSHHost returns the host key of a kernel (empty: main1). session_update_conflict if the session was launched
	// without SSH.
	//
	//rpc:method name=ssh.host effect=read args=id,kernel? who=owner
	SSHHost(ctx context.Context, id ID, kernel string) (SSHHost, error)
	// DialSSH connects to a kernel's SSH server, which admits only req.Key. session_update_conflict, ssh_open_invalid.
	//
	//rpc:method name=ssh effect=once args=id,ssh who=owner audit=req.Kernel
	DialSSH(ctx context.Context, id ID, req SSHRequest) (net.Conn, error)
}

// SSHHost identifies the SSH server of one kernel. Its key is made when the kernel starts and lives as long as it.
type SSHHost struct {
	Key string `json:"key"` // public key as a line of authorized_keys: type and base64
}

// SSHRequest asks for one connection.
type SSHRequest struct {
	Kernel string `json:"kernel,omitempty"`
	Key    string `json:"key"`            // the only public key that is admitted, as a line of authorized_keys
	Bulk   bool   `json:"bulk,omitempty"` // it transfers files, and yields to what a person waits for
}

// SSHUse is the traffic of the SSH server of one kernel, without keep-alives.
type SSHUse struct {
	Last    time.Time `json:"last,omitzero"`     // anything; zero: never
	Input   time.Time `json:"input,omitzero"`    // a person's to a terminal; zero: never
	Program string    `json:"program,omitempty"` // one that runs for a caller now, other than a shell that waits
}
