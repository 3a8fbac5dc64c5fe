package session

import (
	"cmp"
	"slices"
	"time"

	"slipway/gpu"
)

// Type is what a session is for.
type Type string

// The types. An interactive session lives until someone ends it; a batch session runs its startup command and ends with
// it. A system session serves the files of one folder by sftp, runs no program, and ends after a time without use. An
// inference session runs the server of a model and ends with it; it is a replica of a service.
const (
	Interactive Type = "interactive"
	Batch       Type = "batch"
	System      Type = "system"
	Inference   Type = "inference"
)

// Spec is what a person asks for: everything needed to create a session, and nothing that only its course decides. A
// zero field means "choose for me".
type Spec struct {
	Name        string      `json:"name,omitempty"`    // empty: a readable random name
	Type        Type        `json:"type,omitempty"`    // empty: interactive
	Image       string      `json:"image"`             // reference as for docker pull
	Command     string      `json:"command,omitempty"` // startup command of a batch session, run by the image's shell
	Env         []EnvVar    `json:"env,omitempty"`
	Secrets     []string    `json:"secrets,omitempty"` // variables whose values travel in [Confidential]
	Resources   Resources   `json:"resources"`
	Accelerator gpu.Request `json:"accelerator,omitzero"` // of each kernel; zero: none
	Tuning
	Cluster int     `json:"cluster,omitempty"` // kernels on one private network, 1 to 8; 0: 1
	Mounts  []Mount `json:"mounts,omitempty"`
	Access
	Schedule
	Lifetime
	Label string `json:"label,omitempty"` // project, for the accounts
}

// Tuning is how libraries in a session use its CPUs and devices.
type Tuning struct {
	Threads       int  `json:"threads,omitempty"`       // OMP, OpenBLAS and MKL threads; 0: as many as CPUs
	Uncooperative bool `json:"uncooperative,omitempty"` // set no variables that make frameworks keep to their share
	MPS           bool `json:"mps,omitempty"`           // share the device through MPS, where the agent offers it
}

// Access is how a session is reached, and what its person may change in it.
type Access struct {
	Ports []int `json:"ports,omitempty"` // preopened container ports
	NoSSH bool  `json:"noSSH,omitempty"` // it is not reached by ssh
	Admin bool  `json:"admin,omitempty"` // its person is root in the container, and it has no mounts
	// Serving is how the server of an inference session is reached; nil: it is of another type
	Serving *Serving `json:"serving,omitempty"`
}

// Schedule is where and when a session starts.
type Schedule struct {
	Agent     string     `json:"agent,omitempty"`     // agent to run on; empty: Slipway chooses from the group
	Group     string     `json:"group,omitempty"`     // resource group to choose an agent in; empty: no matter which
	NotBefore *time.Time `json:"notBefore,omitempty"` // batch only: not before this time
	Priority  *int       `json:"priority,omitempty"`  // 0 to 100, higher first; nil: 10
	After     []string   `json:"after,omitempty"`     // ids or names of sessions that must end in success first
	// cancelled after waiting this long, from NotBefore on if it is set; 0: never
	PendingTimeout Duration `json:"pendingTimeout,omitempty"`
	Slurm          *Slurm   `json:"slurm,omitempty"` // where Slurm has the resources; nil: all is left to the site
}

// Lifetime is what a session begins with, what ends it by itself, and what is kept of it.
type Lifetime struct {
	// Setup is a script that the image's shell runs once in each kernel, as the person, with its output in the log: of
	// a batch session before its command, else from the start on, while the session is used.
	Setup string `json:"setup,omitempty"`
	// batch only: ended as task-timeout after this long in RUNNING; 0: none
	Timeout Duration    `json:"timeout,omitempty"`
	Idle    *IdlePolicy `json:"idle,omitempty"` // nil: the agent's own
	// make an image of it as it ends, and keep this many of the newest under its name; 0: none
	CommitOnEnd int `json:"commitOnEnd,omitempty"`
	// keep the home after the end, as a folder that is deleted after this long without use; 0: delete it with the
	// session; nil: the person's setting
	KeepHome *Duration `json:"keepHome,omitempty"`
}

// Bare reports whether the session gets no folders but those that it names: no mounts unasked, no cache, no kept home.
func (s Spec) Bare() bool { return s.Admin || s.Type == System }

// RunsCommand reports whether the session runs one command and ends with it.
func (s Spec) RunsCommand() bool { return s.Type == Batch || s.Type == Inference }

// KeepsHome reports whether the home of the session is to become a folder.
func (s Spec) KeepsHome() bool {
	return s.KeepHome != nil && *s.KeepHome > 0 && !s.Bare() &&
		!slices.ContainsFunc(s.Mounts, func(m Mount) bool { return MountTarget(m) == Home })
}

// DefaultPriority is the priority of a session without one.
const DefaultPriority = 10

// MaxCluster is the most kernels that a session may have.
const MaxCluster = 8

// EnvVar is one environment variable of a session's processes.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Resources is an amount of each resource. Shm zero means automatic: see [Resources.Resolve].
type Resources struct {
	CPU    int       `json:"cpu,omitempty"`    // whole CPUs
	Memory gpu.Bytes `json:"memory,omitempty"` // limit without swap, shared memory included
	Shm    gpu.Bytes `json:"shm,omitempty"`
}

// Defaults for what a spec leaves out.
const (
	DefaultCPU    = 1
	DefaultMemory = 1 * gpu.GiB
	// DefaultProcesses limits processes and threads in each container, unless the machine has another limit.
	DefaultProcesses = 4096
	// MaxWarm is how many containers may wait for launches.
	MaxWarm     = 8
	DefaultWarm = 2
	// SystemMemory is that of a system session, and SystemIdle how long it lives without a transfer.
	SystemMemory = 256 * gpu.MiB
	SystemIdle   = Duration(15 * time.Minute)
	// MinMemory is what the guest and a shell need.
	MinMemory = 64 * gpu.MiB
	// SmallShm and LargeShm are the two amounts that automatic shared memory chooses from; LargeShmFrom is the memory
	// from which it takes the larger.
	SmallShm     = 64 * gpu.MiB
	LargeShm     = 1 * gpu.GiB
	LargeShmFrom = 4 * gpu.GiB
)

// AutomaticShm is the shared memory if none is asked for: 1 GiB when memory is at least 4 GiB and at least 1 GiB above
// what the image needs, else 64 MiB, and never as much as the memory itself.
func AutomaticShm(memory, imageMin gpu.Bytes) gpu.Bytes {
	if memory >= LargeShmFrom && memory >= imageMin+LargeShm {
		return LargeShm
	}
	return min(SmallShm, memory/2)
}

// Mount shows a directory of the agent's machine, or a folder, in the session. Either Source or Folder is set.
type Mount struct {
	Source   string `json:"source,omitempty"` // absolute path on the agent's machine
	Folder   string `json:"folder,omitempty"` // name or id of a folder of the owner's
	Path     string `json:"path,omitempty"`   // of a directory in the folder; empty: all of it
	Target   string `json:"target,omitempty"` // empty: Folder or base name of Source; relative: under /home/work
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// WithDefaults returns spec with every default filled in except the name, and every mount target made absolute.
func (s Spec) WithDefaults() Spec {
	s.Type = cmp.Or(s.Type, Interactive)
	if s.Type == System {
		s.Image = cmp.Or(s.Image, EmptyImage)
		s.Resources.Memory = cmp.Or(s.Resources.Memory, SystemMemory)
		if s.Idle == nil {
			s.Idle = &IdlePolicy{Network: SystemIdle}
		}
	}
	if s.Type == Inference && s.Idle == nil {
		s.Idle = &IdlePolicy{} // its service decides
	}
	if s.Serving != nil {
		serving := *s.Serving
		serving.Health = serving.Health.WithDefaults()
		s.Serving = &serving
	}
	s.Resources.CPU = cmp.Or(s.Resources.CPU, DefaultCPU)
	s.Resources.Memory = cmp.Or(s.Resources.Memory, DefaultMemory)
	s.Resources.Shm = cmp.Or(s.Resources.Shm, AutomaticShm(s.Resources.Memory, 0))
	if s.Slurm.IsZero() {
		s.Slurm = nil
	}
	s.Mounts = slices.Clone(s.Mounts)
	for i, m := range s.Mounts {
		s.Mounts[i].Target = MountTarget(m)
	}
	return s
}
