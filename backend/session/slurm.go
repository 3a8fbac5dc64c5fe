package session

import (
	"slipway/gpu"
)

// Slurm is what a session asks of Slurm besides its resources. An empty field is left to the site.
type Slurm struct {
	Partition   string `json:"partition,omitempty"`
	Account     string `json:"account,omitempty"`
	QOS         string `json:"qos,omitempty"`
	GPUType     string `json:"gpuType,omitempty"` // of the devices, as the site names it
	Constraint  string `json:"constraint,omitempty"`
	Reservation string `json:"reservation,omitempty"`
	// Slurm ends the session after this long in RUNNING, counted in whole minutes; 0: as long as the partition allows
	Time    Duration `json:"time,omitempty"`
	Options []string `json:"options,omitempty"` // of sbatch, written by hand, each as "--name" or "--name=value"
}

// SlurmSite is what Slurm offers the agent's person.
type SlurmSite struct {
	Version    string           `json:"version"`
	Partitions []SlurmPartition `json:"partitions"`
	Accounts   []SlurmAccount   `json:"accounts"` // empty: the site has none to choose
	QOS        []SlurmQOS       `json:"qos"`      // empty: the site has none to choose
}

// SlurmPartition is one partition of a site. CPUs, Memory and GPUs are the most that one of its nodes has.
type SlurmPartition struct {
	Name        string     `json:"name"`
	Up          bool       `json:"up"` // it starts sessions
	Default     bool       `json:"default,omitempty"`
	MaxTime     Duration   `json:"maxTime,omitempty"`     // 0: no limit
	DefaultTime Duration   `json:"defaultTime,omitempty"` // 0: as MaxTime
	Nodes       int        `json:"nodes"`
	CPUs        int        `json:"cpus"`
	Memory      gpu.Bytes  `json:"memory"`
	GPUs        []SlurmGPU `json:"gpus,omitempty"`     // none: its nodes have no devices
	Features    []string   `json:"features,omitempty"` // for constraints
	Accounts    []string   `json:"accounts,omitempty"` // that it takes; none: all
	QOS         []string   `json:"qos,omitempty"`      // that it takes; none: all
}

// SlurmGPU is one type of the devices of a partition's nodes.
type SlurmGPU struct {
	Type   string `json:"type,omitempty"`   // empty: the site names no type
	Count  int    `json:"count"`            // on one node
	Shards int    `json:"shards,omitempty"` // parts of all of them together; 0: only whole ones are given
}

// SlurmAccount is one account that the person may use.
type SlurmAccount struct {
	Name       string   `json:"name"`
	Partition  string   `json:"partition,omitempty"` // only in this one, if it is set
	QOS        []string `json:"qos,omitempty"`
	DefaultQOS string   `json:"defaultQOS,omitempty"`
	Default    bool     `json:"default,omitempty"`
}

// SlurmQOS is one quality of service.
type SlurmQOS struct {
	Name    string   `json:"name"`
	MaxTime Duration `json:"maxTime,omitempty"` // 0: no limit of its own
}
