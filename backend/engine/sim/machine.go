package sim

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway/backend/session"
)

// machine is what the parts of the engine share. One lock guards all of them, because they are stored in one file.
type machine struct {
	config Config
	ctx    context.Context //nolint:containedctx // it is the life of what this process runs, ended by Close
	cancel context.CancelFunc
	lives  sync.WaitGroup // one for each goroutine of a container
	save   func() error   // writes what the rooms hold

	mu      sync.Mutex    // guards what the rooms hold, and what follows
	changed chan struct{} // closed and replaced by every change
	closed  bool
}

// check fails when ctx has ended or the engine is closed.
func (m *machine) check(ctx context.Context) error {
	_, err := locked(ctx, m, func() (struct{}, error) { return struct{}{}, nil })
	return err
}

// locked calls fn with mu held, unless check fails.
func locked[T any](ctx context.Context, m *machine, fn func() (T, error)) (result T, err error) {
	if ctx.Err() != nil {
		return result, cancelled(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return result, closed()
	}
	return fn()
}

func closed() error {
	return session.NewError(session.CodeEngineUnavailable, "The simulated engine is closed.", "Start Slipway again.")
}

func cancelled(ctx context.Context) error {
	return session.WrapError(errors.Join(ctx.Err(), context.Cause(ctx)), session.CodeEngineTimeout,
		"The call was given up before it was done.", "")
}

// pause waits for a simulated duration; it fails if ctx ends first.
func (m *machine) pause(ctx context.Context, d time.Duration) error {
	d = time.Duration(float64(d) / m.config.Speed)
	if d == 0 { // the speed says at once
		return nil
	}
	timer := m.config.Clock.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return cancelled(ctx)
	case <-m.ctx.Done():
		return closed()
	}
}

// await waits until done, called with mu held, returns true.
func (m *machine) await(ctx context.Context, done func() bool) error {
	for {
		m.mu.Lock()
		ended, changed := done(), m.changed
		m.mu.Unlock()
		if ended {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return cancelled(ctx)
		}
	}
}

// wake wakes all who wait. It needs mu.
func (m *machine) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}
