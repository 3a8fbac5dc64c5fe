package serving

import (
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Phase is where a replica is in its life.
type Phase string

// The phases. A replica gets requests only while it is healthy.
const (
	Waiting   Phase = "waiting" // its session does not run yet
	Warming   Phase = "warming" // runs and has not passed a check
	Healthy   Phase = "healthy"
	Unhealthy Phase = "unhealthy"
	Draining  Phase = "draining" // out of the router for good
	Ended     Phase = "ended"
)

// Replica is one session of a service. The caller keeps it between snapshots by its methods, and makes it new after a
// restart: warming, or draining if its [Member] is drained.
type Replica struct {
	ID          session.ID
	Revision    int
	Attempt     int
	Phase       Phase
	Since       time.Time      // of the phase
	Running     time.Time      // when its session became RUNNING; zero: not yet
	Queued      bool           // its session waits in the queue and has no grants
	Terminating bool           // its session is TERMINATING
	Outstanding int            // requests under way
	Memory      gpu.Bytes      // device memory that it is granted
	Health      session.Health // of its revision
	Checks      Checks
	End         *End     // if it ended, or is Terminating and this is known
	Log         []string // the last lines, if it ended or fails
}

// End is how a replica ended.
type End struct {
	At     time.Time
	Reason session.Reason
	Said   session.Phrase // in a sentence, for example "The process exited with code 1."
}

// Asked reports whether a person or the queue ended the replica, which says nothing about its revision.
func (e *End) Asked() bool {
	return e != nil && (e.Reason == session.ReasonUser || e.Reason == session.ReasonForced ||
		e.Reason == session.ReasonPendingTimeout || e.Reason == session.ReasonPreempted)
}

// failing reports whether the replica is ending, though nobody asked it to.
func (r *Replica) failing() bool { return r.Terminating && r.End != nil && !r.End.Asked() }

// Checks are what is known of a replica's health.
type Checks struct {
	Asked   time.Time // when the last check was sent
	Passed  time.Time // when one passed last
	Failing time.Time // when the first of the failed ones was sent; zero: the last one passed
	Failed  int       // in a row
	Moved   time.Time // when the last byte of an answer to any request came
}

// Probe is the result of one check. A request that was refused a connection is one, too.
type Probe struct {
	Asked   time.Time // when it was sent
	Status  int       // of the answer; 0: none in time; the expected one if a connection is enough and came about
	Refused bool      // no connection came about
}

// warmEvery is how often a replica is checked that is not healthy.
const warmEvery = 500 * time.Millisecond

// NextCheck is when the next check is due, zero if the replica is not checked. Checks have a connection of their own.
func (r Replica) NextCheck() time.Time {
	switch r.Phase {
	case Warming, Unhealthy:
		return r.Checks.Asked.Add(warmEvery)
	case Healthy:
		return r.Checks.Asked.Add(time.Duration(r.Health.WithDefaults().Interval))
	}
	return time.Time{}
}

// Run returns the replica as its session became RUNNING at a time, which is seen now.
func (r Replica) Run(running, now time.Time) Replica {
	r.Running, r.Queued = running, false
	return r.enter(Warming, now)
}

// Judge returns the replica after a check. Without an answer to any check, nothing changes: a replica of which nothing
// is known keeps running.
func (r Replica) Judge(p Probe, now time.Time) Replica {
	if r.Phase != Warming && r.Phase != Healthy && r.Phase != Unhealthy {
		return r
	}
	// Whoever moves bytes lives, however late or wrong its answer to the check.
	moved := r.Checks.Moved.After(r.Checks.Asked)
	r.Checks.Asked = p.Asked
	if !p.Refused && (p.Status == r.Health.WithDefaults().ExpectedStatusCode || moved) {
		r.Checks.Passed, r.Checks.Failed, r.Checks.Failing = now, 0, time.Time{}
		return r.enter(Healthy, now)
	}
	if r.Checks.Failed++; r.Checks.Failing.IsZero() {
		r.Checks.Failing = p.Asked
	}
	if r.Phase == Healthy && (p.Refused || r.silent(now)) {
		return r.enter(Unhealthy, now)
	}
	return r
}

// silent reports whether enough checks failed in a row, or failed for as long as that many take: a check that gets no
// answer may last longer than the interval.
func (r Replica) silent(now time.Time) bool {
	h := r.Health.WithDefaults()
	return r.Checks.Failed >= h.MaxRetries ||
		now.Sub(r.Checks.Failing) >= time.Duration(h.MaxRetries-1)*time.Duration(h.Interval)
}

func (r Replica) enter(phase Phase, now time.Time) Replica {
	if r.Phase != phase {
		r.Phase, r.Since = phase, now
	}
	return r
}

// overdue explains why a replica must be replaced; nil: it need not.
func (r Replica) overdue(now time.Time) *session.Phrase {
	delay, since := time.Duration(r.Health.WithDefaults().InitialDelay), r.Running
	if since.Before(r.Since) {
		since = r.Since // first seen later than it ran, as after a restart of the caller
	}
	switch {
	case r.Phase == Warming && now.Sub(since) >= delay:
		return new(session.Say("replicaLate", span(delay)))
	case r.Phase == Unhealthy && now.Sub(r.Since) >= r.Health.Patience():
		return new(session.Say("replicaSilent", span(r.Health.Patience())))
	}
	return nil
}
