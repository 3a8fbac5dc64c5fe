package slurm

import (
	"slices"
	"strings"

	"slipway/backend/session"
)

// State is the state of a job. The zero value is [Unknown].
type State uint8

// The states of jobs. Those from [Completed] on are ends.
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
	OutOfMemory               // ended, and one of its processes exceeded the memory
	NodeFail                  // ended because a node failed
	Preempted                 // ended in favor of another job
	Cancelled                 // ended by a person, or before it started
	BootFail                  // ended because a node did not start
	Deadline                  // ended because it could not finish by its deadline
	LaunchFailed              // ended because its script could not be started
)

// stateNames are the names of the states in Slurm.
var stateNames = [...]string{
	Unknown: "UNKNOWN", Pending: "PENDING", Configuring: "CONFIGURING", Running: "RUNNING", Suspended: "SUSPENDED",
	Completing: "COMPLETING", Requeued: "REQUEUED", Completed: "COMPLETED", Failed: "FAILED", Timeout: "TIMEOUT",
	OutOfMemory: "OUT_OF_MEMORY", NodeFail: "NODE_FAIL", Preempted: "PREEMPTED", Cancelled: "CANCELLED",
	BootFail: "BOOT_FAIL", Deadline: "DEADLINE", LaunchFailed: "LAUNCH_FAILED",
}

// rareStates are states of which Slipway makes no difference to another one.
var rareStates = map[string]State{
	"RESV_DEL_HOLD": Pending, "POWER_UP_NODE": Configuring, "RESIZING": Running, "SIGNALING": Running,
	"STOPPED": Suspended, "STAGE_OUT": Completing, "REQUEUE_HOLD": Requeued, "REQUEUE_FED": Requeued,
	"SPECIAL_EXIT": Requeued, "REVOKED": Cancelled, "RECONFIG_FAIL": LaunchFailed,
}

// parseState reads a state. Accounting says CANCELLED by 1500, and by is 1500 then.
func parseState(text string) (state State, by string) {
	name, rest, _ := strings.Cut(text, " ")
	name = strings.TrimSuffix(name, "+")
	state = State(max(0, slices.Index(stateNames[:], name)))
	if state == Unknown {
		state = rareStates[name]
	}
	if by, ok := strings.CutPrefix(rest, "by "); ok && state == Cancelled {
		return state, word(by)
	}
	return state, ""
}

// String is the name of the state in Slurm.
func (s State) String() string { return stateNames[s] }

// Ended reports whether the job is over.
func (s State) Ended() bool { return s >= Completed }

// Live reports whether the job waits, runs or is ending. An unknown state is neither live nor ended.
func (s State) Live() bool { return s != Unknown && !s.Ended() }

// Waits reports whether the job has no nodes that its script runs on. One that had them before was put back in the
// queue.
func (s State) Waits() bool { return s == Pending || s == Configuring || s == Requeued }

// Words says how a job ended, for [Requeued] and states that are ends. For all others it is empty.
func (s State) Words() session.Phrase { return session.Phrase{Say: ends[s]} }

// ends are the keys of the phrases about ends.
var ends = map[State]string{
	Completed: "slurmCompleted", Failed: "slurmFailed", Timeout: "slurmTimeout", OutOfMemory: "slurmOutOfMemory",
	NodeFail: "slurmNodeFail", Preempted: "slurmPreempted", Cancelled: "slurmCancelled", BootFail: "slurmBootFail",
	Deadline: "slurmDeadline", LaunchFailed: "slurmLaunchFailed", Requeued: "slurmQueuedAgain",
}
