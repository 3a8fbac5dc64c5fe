package slurm

import (
	"time"

	"slipway/gpu"
)

// Request is what is asked of Slurm for one session: one job with one kernel on each node.
type Request struct {
	Name    JobName
	Comment string // kept by squeue, not by accounting
	Target
	Time   time.Duration // rounded up to whole minutes; 0: the partition's default; may be [Unlimited]
	Nodes  int           // at least 1
	Each   Each
	Begin  time.Time // not before; zero: at once
	Nice   int       // lowers the priority
	Array  int       // number of tasks, each with these nodes; 0: no array
	Dir    string    // absolute path of the working folder; [Client.Submit] stores its mark in it
	Script string    // absolute path of the script
	Log    string    // absolute path of what the script prints
	Extra  []string  // options by hand that [CheckExtra] allows
}

// Target is where a job should run. Empty fields are left to the site.
type Target struct {
	Partition, Account, QOS, Constraint, Reservation string
}

// Each is what a job gets on each node.
type Each struct {
	CPUs    int       // at least 1
	Memory  gpu.Bytes // rounded up to whole MiB; 0: the site's default
	GPUs    int       // whole devices
	GPUType string    // empty: any
	Shards  int       // of one device, instead of whole devices
}
