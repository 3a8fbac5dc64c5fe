package slurm

import (
	"context"
	"time"
)

// Snapshot is what was known of the jobs at a time.
type Snapshot struct {
	Jobs []Job     // shared: do not change them
	At   time.Time // when the call that returned Jobs began; zero: there was none yet
	Err  error     // why the last call failed; nil: it succeeded
}

// Poller follows the jobs with as few calls as possible: every 15 seconds while one waits, else every minute, and up to
// every 5 minutes while calls fail.
type Poller struct {
	client  *Client
	changed func()
}

// NewPoller returns a poller that calls changed after each answer, and after the first failure that follows one.
// [Poller.Run] polls.
func NewPoller(client *Client, changed func()) *Poller { return &Poller{client: client, changed: changed} }

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) {}

// Wake polls soon, for example after a job was submitted or canceled. Many calls are one.
func (p *Poller) Wake() {}

// Snapshot returns what is known.
func (p *Poller) Snapshot() Snapshot { return Snapshot{} }

// Fresh wakes the poller and returns the result of a call that began after now. It fails if that call fails.
func (p *Poller) Fresh(ctx context.Context) (Snapshot, error) { return Snapshot{}, nil }
