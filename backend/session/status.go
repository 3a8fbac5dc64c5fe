package session

import "slices"

// Status is the state of a session in its life.
//
//	PENDING → SCHEDULED → PREPARING → (PULLING) → PREPARED → CREATING → RUNNING → TERMINATING → TERMINATED
//
// CANCELLED is the end of a session that never ran, ERROR that of one that failed abnormally. The last three are
// terminal: nothing leaves them.
type Status string

// The statuses in the order of a session's life.
const (
	Pending     Status = "PENDING"
	Scheduled   Status = "SCHEDULED"
	Preparing   Status = "PREPARING"
	Pulling     Status = "PULLING"
	Prepared    Status = "PREPARED"
	Creating    Status = "CREATING"
	Running     Status = "RUNNING"
	Terminating Status = "TERMINATING"
	Terminated  Status = "TERMINATED"
	Cancelled   Status = "CANCELLED"
	Failed      Status = "ERROR"
)

// transitions lists for each status those that may follow it. TERMINATING follows every live status because a person
// may end a session at any time; PENDING follows when a placement is retried, and RUNNING where another scheduler took
// the resources for now.
var transitions = map[Status][]Status{
	Pending:     {Scheduled, Terminating, Cancelled, Failed},
	Scheduled:   {Preparing, Pending, Terminating, Cancelled, Failed},
	Preparing:   {Pulling, Prepared, Pending, Terminating, Cancelled, Failed},
	Pulling:     {Prepared, Pending, Terminating, Cancelled, Failed},
	Prepared:    {Creating, Pending, Terminating, Cancelled, Failed},
	Creating:    {Running, Pending, Terminating, Cancelled, Failed},
	Running:     {Pending, Terminating, Terminated, Failed},
	Terminating: {Terminated, Cancelled, Failed},
}

// CanBecome reports whether a session in status s may change to next.
func (s Status) CanBecome(next Status) bool { return slices.Contains(transitions[s], next) }

// Terminal reports whether s is an end: TERMINATED, CANCELLED or ERROR.
func (s Status) Terminal() bool { return s == Terminated || s == Cancelled || s == Failed }

// Live reports whether s is known and not terminal.
func (s Status) Live() bool { return len(transitions[s]) > 0 }

// HoldsResources reports whether a session in status s has grants: it was placed and has not ended.
func (s Status) HoldsResources() bool { return s.Live() && s != Pending }

// Result is how a session's work ended.
type Result string

// The results. A session that has not ended, or that has no work of its own to judge, is undefined.
const (
	ResultUndefined Result = "undefined"
	ResultSuccess   Result = "success"
	ResultFailure   Result = "failure"
)

// Reason is why a session ended.
type Reason string

// The reasons for an end.
const (
	ReasonUser           Reason = "user-requested"
	ReasonForced         Reason = "force-terminated"
	ReasonFinished       Reason = "task-finished"
	ReasonTaskFailed     Reason = "task-failed"
	ReasonTaskTimeout    Reason = "task-timeout"
	ReasonSelf           Reason = "self-terminated"
	ReasonOOM            Reason = "oom-killed"
	ReasonCreateFailed   Reason = "failed-to-create"
	ReasonStartFailed    Reason = "failed-to-start"
	ReasonPullFailed     Reason = "pull-failed"
	ReasonLost           Reason = "container-lost"
	ReasonPreempted      Reason = "preempted" // another job took its resources
	ReasonPendingTimeout Reason = "pending-timeout"
	ReasonDependency     Reason = "dependency-failed"     // a session it waited for did not end in success
	ReasonIdle           Reason = "idle-timeout"          // no traffic for too long
	ReasonLifetime       Reason = "idle-session-lifetime" // lived as long as it may
	ReasonUnused         Reason = "idle-utilization"      // used too little of its resources
	ReasonDeviceMemory   Reason = "device-memory"         // took more of a device than it was granted
)
