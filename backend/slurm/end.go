package slurm

import "time"

// End is the end of a job as accounting knows it.
type End struct {
	ID         JobID
	State      State
	Exit       int    // exit code of the script
	Signal     int    // that ended the script; 0: none
	By         string // user number of who cancelled it; empty: unknown or not cancelled
	Start, End time.Time
	Nodes      []string
}
