package api

import "time"

// Session is one session as users and programs see it. The first fields are a
// contract for scripts: id, name, type, status, result, reason, exitCode, image,
// agent and createdAt keep their names and meanings.
type Session struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"` // interactive or batch
	// PENDING, SCHEDULED, PREPARING, PULLING, PREPARED, CREATING, RUNNING, TERMINATING, TERMINATED, CANCELLED or ERROR
	Status       string     `json:"status"`
	Result       string     `json:"result"` // undefined, success or failure
	Reason       string     `json:"reason"` // why it ended; empty while live
	ExitCode     *int       `json:"exitCode"`
	Image        string     `json:"image"`
	Agent        string     `json:"agent"`
	Owner        string     `json:"owner"`
	CreatedAt    time.Time  `json:"createdAt"`
	ScheduledAt  *time.Time `json:"scheduledAt,omitempty"`
	StartedAt    *time.Time `json:"startedAt,omitempty"`
	TerminatedAt *time.Time `json:"terminatedAt,omitempty"`
	Spec         Spec       `json:"spec"` // values of secret-looking variables are replaced by "••••••"
	Error        *Problem   `json:"error,omitempty"`
	Wait         *Wait      `json:"wait,omitempty"`
	Pull         *Pull      `json:"pull,omitempty"`
	Kernels      []Kernel   `json:"kernels"`
	Warnings     []Warning  `json:"warnings"`
	CPUs         []int      `json:"cpus"` // CPUs of the machine granted to it
	Usage        *Usage     `json:"usage,omitempty"`
	Revision     uint64     `json:"revision"`

	Priority    int           `json:"priority"`              // 0 to 100, higher first
	DependsOn   []string      `json:"dependsOn"`             // ids of sessions that must end in success first
	Dependents  []string      `json:"dependents"`            // ids of sessions that wait for this one to do so
	Accelerator *Accelerator  `json:"accelerator,omitempty"` // what each kernel asks for, as it was understood
	GPUs        []Grant       `json:"gpus"`                  // granted to all of its kernels
	Enforcement string        `json:"enforcement"`           // how its share of a device is kept; empty without one
	Idle        []IdleCheck   `json:"idle"`                  // what the idle checks found last
	KeepUntil   *time.Time    `json:"keepUntil,omitempty"`   // nobody reclaims it before
	Folders     []FolderMount `json:"folders"`               // mounted, those of the spec and those that always are
	// that is made of it as it ends; absent: not begun, or not asked for
	EndImage *EndImage `json:"endImage,omitempty"`
	// most processes and threads in each container; absent: no limit, or not placed yet
	Processes int        `json:"processes,omitempty"`
	Tags      []string   `json:"tags"`                // a person's own marks, sorted
	LastHeard *time.Time `json:"lastHeard,omitempty"` // its agent is not reached, and this is how it was then
}

// Spec is what is asked for. See POST /api/v1/sessions for the rules.
type Spec struct {
	Name      string     `json:"name,omitempty"`
	Type      string     `json:"type,omitempty"`
	Image     string     `json:"image"`
	Command   string     `json:"command,omitempty"`   // batch: run by the image's shell
	NotBefore *time.Time `json:"notBefore,omitempty"` // batch
	Timeout   string     `json:"timeout,omitempty"`   // batch: a whole number with s, m, h, d or w
	Env       []EnvVar   `json:"env,omitempty"`
	Resources Resources  `json:"resources"`
	Threads   int        `json:"threads,omitempty"` // 0: automatic
	Mounts    []Mount    `json:"mounts,omitempty"`
	Ports     []int      `json:"ports,omitempty"`
	Agent     string     `json:"agent,omitempty"` // empty: Slipway chooses, among those of the group
	Group     string     `json:"group,omitempty"` // resource group to choose in; empty: no matter which

	// of each kernel: 0.5 (share), 2 (whole devices), mig:1g.10gb or vram:12g
	Accelerator string `json:"accelerator,omitempty"`
	// set none of the variables by which frameworks keep to their share
	Uncooperative bool `json:"uncooperative,omitempty"`
	// share the device through MPS, where the agent offers it
	MPS      bool `json:"mps,omitempty"`
	Cluster  int  `json:"cluster,omitempty"`  // kernels on one private network, 1 to 8; 0: 1
	Priority *int `json:"priority,omitempty"` // 0 to 100, higher first; absent: 10
	// ids or names of sessions that must end in success first
	After []string `json:"after,omitempty"`
	// cancelled after waiting this long, from its start time on if it has one, such as 2h; empty: never
	PendingTimeout string `json:"pendingTimeout,omitempty"`
	Label          string `json:"label,omitempty"` // project, for the accounts
	// when it is reclaimed as idle; absent: as its agent does
	Idle  *IdlePolicy `json:"idle,omitempty"`
	NoSSH bool        `json:"noSSH,omitempty"` // it is not reached by ssh
	// make an image of it as it ends, and keep this many of the newest under its name, up to 50; 0: none
	CommitOnEnd int `json:"commitOnEnd,omitempty"`
}

// EndImage is the image that is made of a session as it ends. Where it could not
// be made the session's main container is kept, stopped, until it is committed
// after all or dropped by a forced end.
type EndImage struct {
	State string   `json:"state"` // running, done, failed or cancelled
	Name  string   `json:"name"`
	Ref   string   `json:"ref"`
	Size  int64    `json:"size"` // bytes that the session changed; 0 while unknown
	Kept  bool     `json:"kept"` // the container is kept
	Error *Problem `json:"error,omitempty"`
}

// IdlePolicy says when an idle session is reclaimed. An absent field is off.
type IdlePolicy struct {
	Lifetime string `json:"lifetime,omitempty"` // ended this long after its start, whatever it does
	// ended after this long without traffic through terminal or apps; never for batch
	Network string     `json:"network,omitempty"`
	Use     *UsePolicy `json:"use,omitempty"`
}

// UsePolicy judges what a session makes of what it holds. Thresholds are
// percent, averaged over the window. There is no verdict before the grace is
// over, the window is full and nine tenths of it were measured. A metric that is
// missing, or of a resource that was not asked for, does not count.
type UsePolicy struct {
	Window string   `json:"window,omitempty"` // such as 30m
	Grace  string   `json:"grace,omitempty"`  // after the start
	Any    bool     `json:"any,omitempty"`    // one metric below its threshold is enough; else all must be
	CPU    *float64 `json:"cpu,omitempty"`    // percent of the CPUs granted
	Memory *float64 `json:"memory,omitempty"` // percent of the memory granted
	GPU    *float64 `json:"gpu,omitempty"`    // percent of the share granted
	VRAM   *float64 `json:"vram,omitempty"`   // percent of the memory of the share
}

// IdleCheck is what one checker found last. Unknown means keep running.
type IdleCheck struct {
	Checker    string       `json:"checker"`              // lifetime, network or utilization
	State      string       `json:"state"`                // active, grace, unknown or idle
	ExpiresAt  *time.Time   `json:"expiresAt,omitempty"`  // when it is reclaimed if nothing changes
	JudgedFrom *time.Time   `json:"judgedFrom,omitempty"` // when it is judged first; set while state is grace
	Message    string       `json:"message"`              // one sentence in numbers
	Metrics    []IdleMetric `json:"metrics"`
	CheckedAt  time.Time    `json:"checkedAt"`
}

// IdleMetric is one metric of the check of use, in percent.
type IdleMetric struct {
	Name      string  `json:"name"` // cpu, memory, gpu or vram
	Average   float64 `json:"average"`
	Threshold float64 `json:"threshold"`
}

// IdleSimulation is what an idle policy would have made of a session.
type IdleSimulation struct {
	Ended    bool       `json:"ended"`              // it would have been reclaimed
	Unknown  bool       `json:"unknown,omitempty"`  // whether it would have been cannot be told from what is kept
	At       *time.Time `json:"at,omitempty"`       // when, at the latest
	Earliest *time.Time `json:"earliest,omitempty"` // when, at the earliest; absent: at that time
	Checker  string     `json:"checker,omitempty"`  // by which check
	// it was judged from here on; what was measured reaches no further back
	Since   time.Time   `json:"since"`
	Message string      `json:"message"` // one sentence in numbers
	Checks  []IdleCheck `json:"checks"`  // what each check would say at the end of the time judged
}

// EnvVar is one environment variable.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Resources is an amount of each resource.
type Resources struct {
	CPU    int   `json:"cpu,omitempty"`   // whole CPUs; 0: 1
	Memory Bytes `json:"memory,omitzero"` // 0: 1 GiB
	Shm    Bytes `json:"shm,omitzero"`    // 0: automatic
}

// Mount shows a directory of the agent's machine inside the session.
type Mount struct {
	Source   string `json:"source,omitempty"` // absolute path of a directory of the machine
	Folder   string `json:"folder,omitempty"` // name or id of a folder, in place of source
	Path     string `json:"path,omitempty"`   // of a directory in the folder; empty: all of it
	Target   string `json:"target,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Wait says why a PENDING session is not placed, in numbers.
type Wait struct {
	Code     string     `json:"code"`
	Message  string     `json:"message"`
	Said     []Phrase   `json:"said,omitempty"` // the sentences of message, for other languages
	Position int        `json:"position"`
	Until    *time.Time `json:"until,omitempty"`

	Start  *time.Time `json:"start,omitempty"`  // estimated start, where history allows one
	Margin string     `json:"margin,omitempty"` // by how much such estimates were wrong before, either way, such as 5m
}

// Phrase is a sentence, or a piece of one, that can be said in any language: say
// names the words, count decides between one and many, and with fills the holes
// in them. Where say is absent it is text as it stands, such as a name or an
// amount, or the pieces of with with text between them.
type Phrase struct {
	Hole  string   `json:"hole,omitempty"` // that it fills
	Say   string   `json:"say,omitempty"`
	Count int      `json:"count,omitempty"`
	Text  string   `json:"text,omitempty"`
	With  []Phrase `json:"with,omitempty"`
}

// Pull is the progress of an image pull, in bytes and layers.
type Pull struct {
	Current    int64 `json:"current"`
	Total      int64 `json:"total"`
	Rate       int64 `json:"rate"`
	LayersDone int   `json:"layersDone"`
	Layers     int   `json:"layers"`
}

// Kernel is one container of a session.
type Kernel struct {
	Name      string `json:"name"`
	Hostname  string `json:"hostname"`
	Container string `json:"container"`
	Status    string `json:"status"`
	ExitCode  *int   `json:"exitCode"`

	CPUs   []int   `json:"cpus"`   // CPUs of the machine granted to it
	Memory int64   `json:"memory"` // granted, in bytes
	GPUs   []Grant `json:"gpus"`   // parts of devices granted to it
}

// Warning is trouble that stands without ending anything.
type Warning struct {
	Code   string    `json:"code"`
	Title  string    `json:"title"`
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
	Device string    `json:"device,omitempty"` // UUID of the device that it is about, if it is about one
}

// Usage is one sample of what a session uses.
type Usage struct {
	Session   string    `json:"session"`
	At        time.Time `json:"at"`
	CPU       float64   `json:"cpu"`    // busy CPUs
	Memory    int64     `json:"memory"` // bytes, working set
	MemLimit  int64     `json:"memLimit"`
	NetRx     int64     `json:"netRx"` // counters, in bytes
	NetTx     int64     `json:"netTx"`
	DiskRead  int64     `json:"diskRead"`
	DiskWrite int64     `json:"diskWrite"`
	Pids      int       `json:"pids"`

	GPUs []DeviceLoad `json:"gpus"` // one for each device that it holds
}

// Phase is one row of a session's history.
type Phase struct {
	ID        string    `json:"id"`
	Session   string    `json:"session"`
	Phase     string    `json:"phase"`
	Result    string    `json:"result"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Attempts  int       `json:"attempts"`
	Code      string    `json:"code,omitempty"`
	Message   string    `json:"message,omitempty"`
	Said      []Phrase  `json:"said,omitempty"` // the sentences of message, for other languages
	Steps     []Step    `json:"steps"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Step is one sub-step of a phase.
type Step struct {
	Step      string     `json:"step"`
	Result    string     `json:"result"`
	Message   string     `json:"message,omitempty"`
	Said      []Phrase   `json:"said,omitempty"` // as of a phase
	Code      string     `json:"code,omitempty"`
	StartedAt time.Time  `json:"startedAt"`
	EndedAt   *time.Time `json:"endedAt,omitempty"`
}
