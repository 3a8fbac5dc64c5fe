package slurm

import (
	"context"
	"slices"
	"sync"
	"time"

	"slipway/backend/pace"
)

// How often the jobs are asked for.
const (
	pollWaiting = 15 * time.Second // while one waits
	pollQuiet   = time.Minute      // otherwise
	pollMost    = 5 * time.Minute  // while calls fail
	pollSoonest = 5 * time.Second  // after a wake-up

	// pollShare is how many times longer than a call the pause after it is, so that a large queue or a busy controller
	// is asked less often.
	pollShare = 20
)

// Snapshot is what is known of the jobs.
type Snapshot struct {
	Jobs []Job     // shared: do not change them
	At   time.Time // when the call that returned Jobs began; zero: there was none yet
	Err  error     // why the last call failed; nil: it succeeded, or there was none yet
}

// Poller follows the jobs with few calls: one every 15 seconds while a job waits, else one a minute, and as few as one
// every 5 minutes while calls fail.
type Poller struct {
	client  *Client
	changed func()
	wake    chan struct{} // of capacity 1

	mu       sync.Mutex // guards everything below
	snapshot Snapshot
	begun    int           // calls that began
	ended    int           // the last of them that ended
	next     chan struct{} // closed when a call ends
}

// NewPoller returns a poller, which calls changed after each call of squeue. [Poller.Run] polls.
func NewPoller(client *Client, changed func()) *Poller {
	return &Poller{client: client, changed: changed, wake: make(chan struct{}, 1), next: make(chan struct{})}
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) {
	clock, failures := p.client.config.Clock, 0
	for ctx.Err() == nil {
		began := clock.Now()
		snapshot := p.poll(ctx, began)
		took := clock.Since(began)
		if failures++; snapshot.Err == nil {
			failures = 0
		}
		pause, least := pauses(snapshot.Jobs, failures)
		pause = min(max(pause, pollShare*took), pollMost)
		p.changed()
		p.rest(ctx, pause, min(max(least, pollShare*took), pause))
	}
}

// pauses are the pause until the next call, and that after a wake-up.
func pauses(jobs []Job, failures int) (pause, least time.Duration) {
	switch {
	case failures > 0:
		return min(pollWaiting<<min(failures, 10), pollMost), pollWaiting
	case slices.ContainsFunc(jobs, Job.changesSoon):
		return pollWaiting, pollSoonest
	}
	return pollQuiet, pollSoonest
}

// changesSoon reports whether a job is expected to start or to disappear.
func (j Job) changesSoon() bool {
	switch j.State {
	case Pending, Requeued:
		return !j.Reason.Never()
	case Configuring, Completing:
		return true
	}
	return false
}

// rest waits for pause, or for a wake-up, but then at least for least.
func (p *Poller) rest(ctx context.Context, pause, least time.Duration) {
	clock := p.client.config.Clock
	began := clock.Now()
	timer := clock.Timer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.wake:
		if rest := least - clock.Since(began); rest > 0 {
			_ = clock.Pause(ctx, rest) // it fails only if ctx ends, which the caller sees
		}
	case <-ctx.Done():
	}
}

func (p *Poller) poll(ctx context.Context, now time.Time) Snapshot {
	p.mu.Lock()
	p.begun++
	number := p.begun
	p.mu.Unlock()

	jobs, err := p.client.Jobs(ctx)

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.snapshot.Err = err; err == nil {
		p.snapshot = Snapshot{Jobs: jobs, At: now}
	}
	p.ended = number
	close(p.next)
	p.next = make(chan struct{})
	return p.snapshot
}

// Wake makes the next call soon, for example after a job was submitted or cancelled. Many wake-ups make one call.
func (p *Poller) Wake() { pace.Signal(p.wake) }

// Snapshot returns what is known.
func (p *Poller) Snapshot() Snapshot {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot
}

// Fresh wakes the poller and returns what a call that began after now returns. It fails if that call fails.
func (p *Poller) Fresh(ctx context.Context) (Snapshot, error) {
	p.mu.Lock()
	wanted := p.begun + 1
	p.mu.Unlock()
	p.Wake()
	for {
		p.mu.Lock()
		snapshot, ended, next := p.snapshot, p.ended, p.next
		p.mu.Unlock()
		if ended >= wanted {
			return snapshot, snapshot.Err
		}
		select {
		case <-next:
		case <-ctx.Done():
			return Snapshot{}, context.Cause(ctx)
		}
	}
}
