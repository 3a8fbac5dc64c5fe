package slurm

// State is the state of a job. The zero value is [Unknown].
type State uint8

// The states of jobs.
const (
	Unknown      State = iota // one that the table does not have
	Pending                   // it waits
	Configuring               // it has nodes, which are still starting
	Running                   // it has its nodes
	Suspended                 // it has its nodes, but its processes are stopped
	Completing                // its processes are ending
	Requeued                  // it ended and will wait again, or is held to do so
	Completed                 // ended with exit code 0
	Failed                    // ended with another exit code or by a signal
	Timeout                   // ended at its time limit
	OutOfMemory               // ended because a process of it exceeded the memory
	NodeFail                  // ended because a node failed
	Preempted                 // ended in favor of another job
	Cancelled                 // ended by a person, or before it started
	BootFail                  // ended because a node did not start
	Deadline                  // ended because it could not finish by its deadline
	LaunchFailed              // ended because its script could not be started
)
