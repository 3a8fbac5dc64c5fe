package session

import (
	"context"
	"time"

	"slipway/gpu"
)

// Machine describes an agent and its machine.
type Machine struct {
	Agent string `json:"agent"` // name of the agent
	// Instance is the random id of the agent's store, however the agent is reached or named. Empty: unknown.
	Instance string `json:"instance,omitempty"`
	Platform
	Capacity
	Load     Load      `json:"load"`
	Warnings []Warning `json:"warnings"` // lasting problems, such as an engine that does not respond
	Caller
}

// Platform is what sessions run on.
type Platform struct {
	Engine        string `json:"engine"` // docker, podman, sim or slurm
	EngineVersion string `json:"engineVersion,omitempty"`
	Version       string `json:"version"` // of the agent
	Hostname      string `json:"hostname"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	// Lacks is what cannot be done with its sessions. An older agent lacks nothing.
	Lacks []Feature  `json:"lacks,omitempty"`
	Slurm *SlurmSite `json:"slurm,omitempty"` // nil: Slurm has nothing to do with it
}

// Capacity is what sessions may use, and how much of it is allocated.
type Capacity struct {
	CPUs       int       `json:"cpus"`
	Memory     gpu.Bytes `json:"memory"`
	UsedCPUs   int       `json:"usedCpus"`   // allocated
	UsedMemory gpu.Bytes `json:"usedMemory"` // allocated
	// Warm is how many containers wait for launches. They have no grants.
	Warm int `json:"warm,omitempty"`
}

// Caller is who asks, as the agent knows them.
type Caller struct {
	Owner     string    `json:"owner,omitempty"` // the name under which their sessions are kept
	Role      Role      `json:"role,omitempty"`  // empty: unknown
	Allowance Allowance `json:"allowance,omitzero"`
}

// Role is what somebody may do with an agent.
type Role string

// The roles. An admin sees every session and may launch for others; a user sees only their own sessions.
const (
	RoleAdmin Role = "admin"
	RoleUser  Role = "user"
)

// Load is what the machine really uses now.
type Load struct {
	CPU       float64   `json:"cpu"`      // busy CPUs, 0 to CPUs
	Memory    gpu.Bytes `json:"memory"`   // used by anything
	DiskFree  gpu.Bytes `json:"diskFree"` // where the engine keeps its data
	DiskTotal gpu.Bytes `json:"diskTotal"`
}

// Usage is one sample of a session's use. Counters grow over the life of the container; readers derive rates.
type Usage struct {
	Session ID        `json:"session"`
	At      time.Time `json:"at"`
	CPU     float64   `json:"cpu"`    // busy CPUs since the sample before
	Memory  gpu.Bytes `json:"memory"` // working set: charged less reclaimable file cache
	// most memory of any sample since the start
	MemoryPeak gpu.Bytes `json:"memoryPeak,omitempty"`
	MemLimit   gpu.Bytes `json:"memLimit"`
	NetRx      gpu.Bytes `json:"netRx"`     // counter
	NetTx      gpu.Bytes `json:"netTx"`     // counter
	DiskRead   gpu.Bytes `json:"diskRead"`  // counter
	DiskWrite  gpu.Bytes `json:"diskWrite"` // counter
	Pids       int       `json:"pids"`

	GPUs []DeviceLoad `json:"gpus"` // one for each device that it holds
}

// DeviceLoad is a session's use of one device in a sample. What was not measured is nil and never zero.
type DeviceLoad struct {
	Device   gpu.UUID   `json:"device"`
	Instance gpu.UUID   `json:"instance,omitempty"`
	Util     *int       `json:"util,omitempty"`   // permyriad of the device
	Memory   *gpu.Bytes `json:"memory,omitempty"` // used by its processes
}

// Preview is what a launch would do now.
type Preview struct {
	Spec     Spec         `json:"spec"`            // with defaults filled in
	Errors   []FieldError `json:"errors"`          // launch would be refused
	Warnings []FieldError `json:"warnings"`        // launch would be accepted all the same
	Image    *Image       `json:"image,omitempty"` // nil: it would be pulled
	Wait     *Wait        `json:"wait,omitempty"`  // of the first session; nil: it would start at once

	Folders []FolderMount `json:"folders"` // that would be mounted
	// where the first session would land, of all kernels; empty while it would wait
	GPUs        []gpu.Grant   `json:"gpus,omitempty"`
	Enforcement gpu.Level     `json:"enforcement"`       // what would limit the share of a device
	Rounded     *gpu.Rounding `json:"rounded,omitempty"` // what would be allocated instead of the request
	Further     []Forecast    `json:"further,omitempty"` // what the sessions after the first would do, in their order
	Sbatch      string        `json:"sbatch,omitempty"`  // the script that Slurm would be given; empty: none
}

// MostLaunches is how many sessions one request can launch.
const MostLaunches = 10

// Forecast is what one session of a launch would do, after those before it.
type Forecast struct {
	Wait *Wait       `json:"wait,omitempty"` // nil: it would start at once
	GPUs []gpu.Grant `json:"gpus,omitempty"` // where it would land, of all kernels
}

// App is something reachable in a running session.
type App struct {
	ID    string   `json:"id"` // "jupyterlab", "notebook", "port-8080"
	Title string   `json:"title"`
	Kind  string   `json:"kind"` // "web" or "tcp"
	Port  int      `json:"port"` // in the container; 0 before it is started
	State AppState `json:"state"`
	Path  string   `json:"path,omitempty"`  // where its address begins, "/" if empty
	Dir   string   `json:"dir,omitempty"`   // directory that the app shows, or would; empty: none
	Found bool     `json:"found,omitempty"` // not announced, but something listens on the port
	Error *Cause   `json:"error,omitempty"`
	// Installable is set if it is not installed, but can be installed into the session; see [AppRequest].
	Installable bool   `json:"installable,omitempty"`
	Progress    string `json:"progress,omitempty"` // last line of the installer while it runs
	// Kept is set if output of its notebooks is kept while no page is open, except as NotKept says; else it is unknown.
	Kept    bool     `json:"kept,omitempty"`
	NotKept []Phrase `json:"notKept,omitempty"` // the notebooks whose output is not kept, and why
}

// AppState is the state of an app.
type AppState string

// The states of an app.
const (
	AppStopped  AppState = "stopped"
	AppStarting AppState = "starting"
	AppReady    AppState = "ready"
	AppFailed   AppState = "failed"
)

// Terminal is a shell in a session.
type Terminal struct {
	ID        string    `json:"id"`
	Title     string    `json:"title"`
	Kernel    string    `json:"kernel,omitempty"` // the container it runs in; empty: main1
	Cols      int       `json:"cols"`
	Rows      int       `json:"rows"`
	Start     uint64    `json:"start"` // offset of the oldest byte kept
	End       uint64    `json:"end"`   // offset after the newest byte
	ExitCode  *int      `json:"exitCode"`
	CreatedAt time.Time `json:"createdAt"`
}

// Host describes the machine of an agent.
type Host interface {
	// Machine reports the machine as it is now.
	//
	//rpc:method name=machine effect=read who=custom
	Machine(ctx context.Context) (Machine, error)
	// Doctor probes what sessions need. A failed probe is a [Check] with its cause and one remedy, never an error.
	//
	//rpc:method name=doctor effect=read limit=long who=anyone
	Doctor(ctx context.Context) ([]Check, error)
	// ListDirectories lists the directories in a directory, for choosing what to mount. path is absolute; empty: the
	// person's home. Fails with file_use_invalid, file_use_not-found or file_use_forbidden.
	//
	//rpc:method name=directories effect=read args=path? who=custom
	ListDirectories(ctx context.Context, path string) (DirectoryListing, error)
}

// CheckResult is how a probe ended.
type CheckResult string

// The results. A warning is something that sessions run without.
const (
	CheckOK      CheckResult = "ok"
	CheckWarning CheckResult = "warning"
	CheckFailed  CheckResult = "failed"
)

// Check is one probe of a machine. Remedy is one command or sentence; a failed check always has one.
type Check struct {
	ID     string      `json:"id"` // what was probed, for programs: "engine", "disk" …
	Title  string      `json:"title"`
	Result CheckResult `json:"result"`
	Text   string      `json:"text"`
	Remedy string      `json:"remedy,omitempty"`
}

// DirectoryListing is a part of a directory of a machine, at most 5,000 entries, sorted by name without regard to case.
type DirectoryListing struct {
	Path    string           `json:"path"`   // absolute and clean
	Parent  string           `json:"parent"` // empty at the root
	Entries []DirectoryEntry `json:"entries"`
}

// DirectoryEntry is one directory in a listing.
type DirectoryEntry struct {
	Name     string `json:"name"`
	Writable bool   `json:"writable"` // by the person whose agent it is
}
