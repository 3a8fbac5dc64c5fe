package session

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

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

// Bounds of what a session asks of Slurm.
const (
	MaxSlurmText    = 255
	MaxSlurmOptions = 32
	// MaxSlurmOption is the longest option, in bytes.
	MaxSlurmOption = 1000
)

var (
	// slurmNames are one or several names, as --partition and --reservation take them.
	slurmNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*(,[A-Za-z0-9_][A-Za-z0-9_.@+-]*)*$`)
	slurmName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]*$`)
	// constraint is an expression of names of features.
	constraint  = regexp.MustCompile(`^[A-Za-z0-9_(\[][A-Za-z0-9_.:@+\-&|,()\[\]*=]*$`)
	slurmOption = regexp.MustCompile(`^--[a-z][a-z-]*(=.*)?$`)
)

// IsZero reports whether nothing is asked of Slurm.
func (s *Slurm) IsZero() bool {
	return s == nil || s.Partition == "" && s.Account == "" && s.QOS == "" && s.GPUType == "" && s.Constraint == "" &&
		s.Reservation == "" && s.Time == 0 && len(s.Options) == 0
}

func (s Spec) validateSlurm(f *findings) {
	asked := s.Slurm
	if asked == nil {
		return
	}
	for _, one := range []struct {
		field, text, what string
		rule              *regexp.Regexp
	}{
		{"partition", asked.Partition, "the name of a partition", slurmNames},
		{"account", asked.Account, "the name of an account", slurmName},
		{"qos", asked.QOS, "the name of a quality of service", slurmName},
		{"gpuType", asked.GPUType, "a type of GPU", slurmName},
		{"constraint", asked.Constraint, "a constraint", constraint},
		{"reservation", asked.Reservation, "the name of a reservation", slurmNames},
	} {
		f.refuse(one.text != "" && (len(one.text) > MaxSlurmText || !one.rule.MatchString(one.text)),
			"slurm."+one.field, KindInvalid, fmt.Sprintf("%q is not %s.", Clip(one.text), one.what),
			"Write it as sbatch takes it, or leave it empty.")
	}
	f.refuse(asked.GPUType != "" && s.Accelerator.IsZero(), "slurm.gpuType", KindConflict,
		"A type of GPU is chosen, and the session asks for none.", "Ask for GPUs, or leave the type empty.")
	f.refuse(asked.Time != 0 && !plausible(asked.Time, Duration(time.Minute)), "slurm.time", KindRange,
		"The time limit is not between 1 m and 520 w.",
		"Write a whole number with m, h, d or w, for example 4h, or leave it empty.")
	if len(asked.Options) > MaxSlurmOptions {
		f.add("slurm.options", KindTooMany, fmt.Sprintf("There are %d options of sbatch; the maximum is %d.",
			len(asked.Options), MaxSlurmOptions), "Leave some out.")
		return
	}
	for i, option := range asked.Options {
		odd := strings.ContainsFunc(option, func(r rune) bool { return !unicode.IsPrint(r) })
		f.refuse(len(option) > MaxSlurmOption || odd || !slurmOption.MatchString(option),
			fmt.Sprintf("slurm.options[%d]", i), KindInvalid, fmt.Sprintf("%q is not an option of sbatch.",
				Clip(option)), "Write each as --name or --name=value.")
	}
}

// SlurmSite is what Slurm offers the agent's person.
type SlurmSite struct {
	Version    string           `json:"version"`
	Partitions []SlurmPartition `json:"partitions"`
	Accounts   []SlurmAccount   `json:"accounts"` // empty: the site has none to choose
	QOS        []SlurmQOS       `json:"qos"`      // empty: the site has none to choose
	// The site refuses a session without a time limit
	TimeRequired bool `json:"timeRequired,omitempty"`
	Calls        int  `json:"calls"` // commands of Slurm that the agent called during the last hour
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
