package serving

import (
	"time"

	"slipway/backend/session"
)

const (
	// giveUp is the number of failures in a row after which a revision is not launched again.
	giveUp = 5
	// settled is how long a replica is healthy until the failures before it no longer count.
	settled = 5 * time.Minute
	// The delay before the next launch doubles with each failure.
	firstDelay, lastDelay = time.Second, time.Minute
)

// delay is how long the launch after this many failures waits.
func delay(failures int) time.Duration {
	d := firstDelay
	for i := 1; i < failures && d < lastDelay; i++ {
		d *= 2
	}
	return min(d, lastDelay)
}

// fail counts the failure of a replica. Replicas that were launched before the previous failure failed for the same
// reason, as when the engine restarts: they do not count again.
func (p *plan) fail(m Member, at time.Time, what session.Phrase, log []string) {
	if m.Revision != p.record.Wanted() {
		return
	}
	f := p.failures()
	if !m.Healthy.IsZero() && at.Sub(m.Healthy) >= settled {
		f.Count, f.Attempt = 0, 0
	}
	if f.Last, f.Log = what, log; m.Attempt > f.Attempt {
		f.Count, f.Attempt = f.Count+1, p.record.Attempt
		f.Next = p.now.Add(delay(f.Count))
	}
	p.record.Failures = f
}

// failures are those of the wanted revision.
func (p *plan) failures() Failures {
	if f := p.record.Failures; f.Revision == p.record.Wanted() {
		return f
	}
	return Failures{Revision: p.record.Wanted()}
}

// forgive forgets the failures when a replica that was launched after them has been healthy for long enough.
func (p *plan) forgive() {
	for _, m := range p.staying() {
		if m.Revision == p.record.Wanted() && m.Attempt > p.record.Failures.Attempt && p.isHealthy(m) &&
			p.now.Sub(m.Healthy) >= settled {
			p.record.Failures = Failures{}
		}
	}
}

// replace removes replicas that do not become healthy in time, or stay unhealthy.
func (p *plan) replace() {
	for i, m := range p.record.Members {
		r := p.replicas[m.Attempt]
		if m.leaves() || r == nil {
			continue
		}
		if r.Terminating && !r.failing() || r.Phase == Draining { // by a person
			p.leave(i, p.now.Add(p.service.grace()))
			continue
		}
		why := r.overdue(p.now)
		if why == nil {
			continue
		}
		p.fail(m, p.now, *why, r.Log)
		if m.Revision == p.record.Updating && !m.Passed {
			p.rollBack(*why, r.Log)
		}
		// Nothing moved all that time: that was its grace.
		p.leave(i, p.now)
	}
	if f := p.failures(); p.record.Updating > 0 && f.Count >= giveUp {
		p.rollBack(count("replicasFailed", f.Count, as("last", f.Last)), f.Log)
	}
}

// rollBack ends an update: the revision before it is wanted again.
func (p *plan) rollBack(why session.Phrase, log []string) {
	p.record.Rejected = &Rejection{Revision: p.record.Updating, At: p.now, Reason: why, Log: log}
	p.record.Updating, p.record.Failures = 0, Failures{}
}

// mayLaunch reports whether failures allow a launch now.
func (p *plan) mayLaunch() bool {
	f := p.failures()
	return f.Count == 0 || !p.now.Before(f.Next) && (f.Count < giveUp || p.healthy() > 0)
}

// gaveUp reports whether the revision is not launched again until a person changes something.
func (p *plan) gaveUp() bool {
	return p.failures().Count >= giveUp && len(p.staying()) == 0
}
