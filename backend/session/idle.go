package session

import (
	"fmt"
	"slices"
	"time"
)

// IdlePolicy is when an idle session is reclaimed. A zero field is off.
type IdlePolicy struct {
	Lifetime Duration  `json:"lifetime,omitempty"` // ended this long after its start, whatever it does
	Network  Duration  `json:"network,omitempty"`  // without traffic through terminal or apps; never for batch
	Use      UsePolicy `json:"use,omitzero"`
	Park     bool      `json:"park,omitempty"` // what is reclaimed is parked, if it can be; see [Moves]
}

// CheckKeep refuses a time for which a session is to be kept from being reclaimed. It may be from a minute to 30 days,
// or 0, which takes that back.
func CheckKeep(length Duration) error {
	d := time.Duration(length)
	if d == 0 || d >= time.Minute && d <= 30*24*time.Hour {
		return nil
	}
	return Refused(CodeSessionInvalid, FieldError{Field: "for", Kind: KindRange,
		Message: fmt.Sprintf("A session cannot be kept for %s.", length),
		Hint:    "Keep it for a time between 1m and 30d; 0 takes it back."})
}

// UsePolicy judges how a session uses its resources, averaged over Window. There is no verdict before Grace is over,
// the window is full and at least 90 % of it was measured. A metric that is missing, or of a resource that was not
// asked for, does not count and is never 0.
type UsePolicy struct {
	Window Duration `json:"window,omitempty"`
	Grace  Duration `json:"grace,omitempty"`
	Any    bool     `json:"any,omitempty"`    // any metric below its threshold is enough; default: all
	CPU    *float64 `json:"cpu,omitempty"`    // percent of the CPUs granted
	Memory *float64 `json:"memory,omitempty"` // percent of the memory granted
	GPU    *float64 `json:"gpu,omitempty"`    // percent of the share granted
	VRAM   *float64 `json:"vram,omitempty"`   // percent of the memory of the share
}

// IdleCheck is the last result of one checker. Unknown means keep running.
type IdleCheck struct {
	Checker    IdleChecker  `json:"checker"`
	State      IdleState    `json:"state"`
	ExpiresAt  *time.Time   `json:"expiresAt,omitempty"`  // when it is reclaimed if nothing changes
	JudgedFrom *time.Time   `json:"judgedFrom,omitempty"` // when it is judged first; set while State is grace
	Message    string       `json:"message"`              // one sentence in numbers
	Metrics    []IdleMetric `json:"metrics"`
	CheckedAt  time.Time    `json:"checkedAt"`
}

// IdleSimulation is what an idle policy would have done with a session. Since is later than its start if what was
// measured does not reach back that far.
type IdleSimulation struct {
	Ended    bool        `json:"ended"`              // it would have been reclaimed
	Unknown  bool        `json:"unknown,omitempty"`  // whether it would have been is unknown
	At       *time.Time  `json:"at,omitempty"`       // when, at the latest
	Earliest *time.Time  `json:"earliest,omitempty"` // when, at the earliest; nil: at At
	Checker  IdleChecker `json:"checker,omitempty"`  // by which check
	Since    time.Time   `json:"since"`              // judged from here on
	Message  string      `json:"message"`            // one sentence in numbers
	Checks   []IdleCheck `json:"checks"`             // what each check would say at the end of the time judged
}

// IdleMetric is one metric of the utilisation check, in percent.
type IdleMetric struct {
	Name      string  `json:"name"` // cpu, memory, gpu or vram
	Average   float64 `json:"average"`
	Threshold float64 `json:"threshold"`
}

// IdleChecker names a checker.
type IdleChecker string

// The checkers.
const (
	CheckLifetime IdleChecker = "lifetime"
	CheckNetwork  IdleChecker = "network"
	CheckUse      IdleChecker = "utilization"
	CheckLimit    IdleChecker = "time-limit" // of Slurm, which ends the session itself
)

// Code is the code of the warning that this checker is about to reclaim a session.
func (c IdleChecker) Code() Code {
	switch c {
	case CheckLifetime:
		return CodeIdleLifetime
	case CheckNetwork:
		return CodeIdleNetwork
	case CheckLimit:
		return CodeIdleLimit
	}
	return CodeIdleUtilization
}

// Deadline returns the idle check that reclaims a running session first if nothing changes, and whether its end is
// announced. It is nil if no check counts down: the end by a check of activity moves while the session is used.
func (s *Session) Deadline() (first *IdleCheck, announced bool) {
	if s.Status != Running {
		return nil, false
	}
	for i, check := range s.Idle {
		counts := check.ExpiresAt != nil && (check.State == IdleIdle ||
			check.State == IdleActive && check.Checker != CheckNetwork)
		if counts && (first == nil || check.ExpiresAt.Before(*first.ExpiresAt)) {
			first = &s.Idle[i]
		}
	}
	announced = first != nil &&
		slices.ContainsFunc(s.Warnings, func(w Warning) bool { return w.Code == first.Checker.Code() })
	return first, announced
}

// IdleState is the result of a checker.
type IdleState string

// The states.
const (
	IdleActive  IdleState = "active"
	IdleGrace   IdleState = "grace"   // too early to judge
	IdleUnknown IdleState = "unknown" // too little was measured to judge
	IdleIdle    IdleState = "idle"    // counting down to ExpiresAt
)
