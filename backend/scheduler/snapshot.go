// Package scheduler decides which waiting sessions of one machine start, with what, and what the others wait for.
//
// It is pure: [Plan] takes a [Snapshot] of both books (what is allocated, and what the drivers of the devices report as
// free) and of the queue, and returns one [Decision] for each waiting session. The agent stores the placements in one
// transaction, if the books still have the revision of the snapshot.
//
// Higher priority starts first, and among equals the earlier arrival. The first that does not fit is the head and gets
// a reservation: the earliest time at which enough is certainly freed, and what it will get then. A later session
// starts before it only if that takes nothing from the head, so that no session waits forever. A device is allocated
// only as far as the [gpu.Ledger] and the driver, by [gpu.Books], agree. See "How the queue plans" in
// backend/README.md.
package scheduler

import (
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Short is the longest that a session may run that starts before a head whose start is unknown.
const Short = 15 * time.Minute

// Snapshot is everything that a plan depends on.
type Snapshot struct {
	Revision   uint64 // of the books, see the package comment
	Machine    Machine
	Promised   []Promise
	Queue      []Request                    // in the order of arrival
	History    *History                     // nil: no start is estimated
	Allowances map[string]session.Allowance // by owner; absent: no limit
	Ruler      string                       // the owner who sees the names of all sessions; others see only their own
}

// Machine is what sessions may use.
type Machine struct {
	Name      string
	CPUs      []int // numbers of the CPUs
	Memory    gpu.Bytes
	Busy      map[int]float64 // how busy each CPU is, 0 to 1, by number; absent: idle
	Devices   []gpu.Device
	Giving    gpu.Config // how shares of devices are allocated
	Measured  []Measured // the second book; a device that is in neither list is limited by allocations only
	Unread    []gpu.UUID // devices whose second book is unknown; nothing of them is allocated
	WhyUnread string     // in a sentence; may be empty
	NoDevices string     // why there are none, in a sentence; may be empty
}

// Measured is the second book of one device.
type Measured struct {
	Device gpu.UUID
	// Free is the free memory by the driver, less what sessions may still take; negative if they took too much.
	Free    gpu.Bytes
	Used    map[session.ID]gpu.Bytes // that each session holds, as far as it is seen
	Foreign []Foreign                // processes that are no session's, in any order
	// Returned is memory of Free that foreign processes freed lately, and that counts as used until Settles.
	Returned gpu.Bytes
	Settles  time.Time
}

// Foreign is a process on a device that belongs to no session.
type Foreign struct {
	PID    int
	Name   string
	User   string // empty: another user
	Memory gpu.Bytes
}

// Promise is what one session holds.
type Promise struct {
	Session session.ID
	Name    string
	Owner   string // empty: unknown to this agent
	Grants  session.Grants
	Since   *time.Time // when it began to run; nil: not yet
	Ends    *time.Time // when it ends at the latest, if that is known
	Kinds   []string   // for the [History], most specific first
}

// Request is one waiting session. Its resources and GPU are those of each kernel.
type Request struct {
	session.Resources
	Session   session.ID
	Name      string
	Owner     string // empty: one who may see every name
	GPU       gpu.Request
	Kernels   int // 0: 1
	Priority  int
	NotBefore *time.Time
	Deadline  *time.Time // cancelled when it still waits then
	Timeout   time.Duration
	After     []Dependency
	Kinds     []string // for the [History], most specific first
}

// Dependency is a session that another waits for.
type Dependency struct {
	Session session.ID
	Name    string
	Status  session.Status // empty: its record is gone
	Result  session.Result
	Reason  session.Reason
}

func (q Request) kernels() int { return max(1, q.Kernels) }

// cpus and memory are those of all kernels together.
func (q Request) cpus() int         { return q.CPU * q.kernels() }
func (q Request) memory() gpu.Bytes { return q.Memory * gpu.Bytes(q.kernels()) }

// part is what a request asks of devices. Where one does not fit, no other of the same does.
type part struct {
	gpu     gpu.Request
	kernels int
}

func (q Request) part() part { return part{q.GPU, q.kernels()} }

// Schedule is a plan.
type Schedule struct {
	Decisions []Decision // one for each session of the queue, in its order
	Next      time.Time  // when to plan again though nothing has changed; zero: never

	// Contradictions are errors in existing grants, such as too much of a device. That is not allocated further.
	Contradictions []string
	// Refused are placements that the audit took back as already allocated. There are none unless Plan is wrong.
	Refused []string
}

// Decision is what is decided for one waiting session. Exactly one of Place, Wait and End is set.
type Decision struct {
	Session session.ID
	Place   *Placement
	Wait    *session.Wait
	End     *End
}

// Placement is what a session is allocated, and how that was decided.
type Placement struct {
	Kernels []session.Grants // of each kernel, the main one first
	Nodes   []string         // host name of the computer that runs each kernel; none: all run on this machine
	Steps   []Step
}

// Total is the sum over the kernels.
func (p Placement) Total() (total session.Grants) {
	for _, k := range p.Kernels {
		total = total.Plus(k)
	}
	return total
}

// Step is one step of a decision, in words.
type Step struct {
	Name    string
	Message string
}

// The steps of a decision.
const (
	StepOrder    = "order"
	StepValidate = "validate"
	StepChoose   = "choose"
	StepGrant    = "grant"
)

// End is the end of a session that never ran.
type End struct {
	Reason session.Reason
	Cause  session.Cause
}

// RequestOf is a session that waits only for its turn.
func RequestOf(s session.Session) Request {
	return Request{
		Resources: s.Spec.Resources, Session: s.ID, Name: s.Name, Owner: s.Owner, GPU: s.Spec.Accelerator,
		Kernels: s.Spec.Cluster, Priority: s.Priority, NotBefore: s.Spec.NotBefore,
		Timeout: time.Duration(s.Spec.Timeout), Kinds: KindsOf(s),
	}
}

// KindsOf returns the kinds of a session for the [History]: owner, image and name without number, then without name.
func KindsOf(s session.Session) []string {
	stem := strings.TrimRight(s.Spec.Name, "0123456789")
	image := strings.Join([]string{s.Owner, string(s.Spec.Type), s.Spec.Image}, "\x00")
	return []string{image + "\x00" + stem, image}
}
