package slurm

import (
	"time"

	"slipway/gpu"
)

// Site is what a site offers to the user.
type Site struct {
	Version      string // for example 22.05.8
	Cluster      string
	KillWait     time.Duration // between TERM and KILL when a job ends
	MinJobAge    time.Duration // how long squeue remembers a job that ended
	Proctrack    string        // how the site finds the processes of a job, for example proctrack/cgroup
	Partitions   []Partition
	Accounting   bool          // false: the site keeps no accounts, and Associations and QOS are empty
	Associations []Association // of this user
	QOS          []QOS
}

// Partition is a group of nodes with limits of its own.
type Partition struct {
	Name          string
	Up            bool // jobs start in it
	Default       bool
	MaxTime       time.Duration // may be [Unlimited]
	DefaultTime   time.Duration // 0: MaxTime
	MaxNodes      int           // of one job; 0: not limited
	Nodes         int
	Shapes        []Shape  // kinds of nodes, the most frequent first
	AllowAccounts []string // nil: all
	DenyAccounts  []string
	AllowQOS      []string // nil: all
	DenyQOS       []string
	QOS           string // whose limits apply to all jobs in it
}

// Shape is a kind of node.
type Shape struct {
	Nodes    int // of this kind
	CPUs     int
	Memory   gpu.Bytes
	GPUs     []GPU
	Features []string
}

// GPU is a kind of device of a node.
type GPU struct {
	Type   string // may be empty
	Count  int
	Shards int // of all of them; 0: whole devices only
}

// Association is an account that the user may use.
type Association struct {
	Account    string
	Partition  string // empty: all
	QOS        []string
	DefaultQOS string
	Limits
}

// QOS is a quality of service, a set of limits and a priority.
type QOS struct {
	Name     string
	Priority int64
	Limits
}

// Limits are the limits of an association or a QOS; 0: not limited.
type Limits struct {
	MaxJobs   int // that run at once, of one user
	MaxSubmit int // that run or wait, of one user
	MaxWall   time.Duration
	MaxGPUs   int // at once, of one user
}
