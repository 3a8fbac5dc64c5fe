// Package pace is the clock that a machine lives by: that on the wall, or, for a demonstration, one that runs faster.
// Whatever belongs to sessions goes by it: when they start and end, how often they are measured, what they are charged.
// What belongs to this computer does not: connections, signs of life, and how long a call may take.
package pace

import (
	"context"
	"time"
)

// Clock tells the time and waits. A nil one is the clock on the wall. It is safe for concurrent use.
type Clock struct {
	speed float64
	real  time.Time // a moment on the clock on the wall
	shown time.Time // what this clock showed then
}

// Wall returns the clock on the wall.
func Wall() *Clock { return nil }

// New returns a clock that runs speed times as fast as the one on the wall, and showed one time when that showed
// another.
func New(speed float64, real, shown time.Time) *Clock {
	return &Clock{speed: speed, real: real, shown: shown.Round(0)}
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c.At(time.Now())
}

// At is what the clock shows when the one on the wall shows real. The zero time, which is none, stays so.
func (c *Clock) At(real time.Time) time.Time {
	if c == nil || real.IsZero() {
		return real
	}
	return c.shown.Add(time.Duration(float64(real.Sub(c.real)) * c.speed))
}

// Since is how long ago a time was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is how far ahead a time is.
func (c *Clock) Until(t time.Time) time.Duration {
	if c == nil {
		return time.Until(t)
	}
	return t.Sub(c.Now())
}

// Speed is how much faster than the one on the wall it runs.
func (c *Clock) Speed() float64 {
	if c == nil {
		return 1
	}
	return c.speed
}

// Real is how long a length of time takes on the clock on the wall.
func (c *Clock) Real(d time.Duration) time.Duration {
	if c == nil {
		return d
	}
	return time.Duration(float64(d) / c.speed)
}

// Timer returns a timer that fires after d.
func (c *Clock) Timer(d time.Duration) *time.Timer { return time.NewTimer(c.Real(d)) }

// finest is how seldom, on the clock on the wall, something is done that is done again and again: a fast clock does not
// make a computer busy with measuring.
const finest = 100 * time.Millisecond

// Often returns a timer that fires after d, and on a fast clock no sooner than the computer can bear what is done again
// and again.
func (c *Clock) Often(d time.Duration) *time.Timer {
	if real := c.Real(d); c != nil && c.speed > 1 {
		return time.NewTimer(max(real, min(d, finest)))
	}
	return c.Timer(d)
}

// Pause waits for d or until ctx ends, which it reports.
func (c *Clock) Pause(ctx context.Context, d time.Duration) error {
	timer := c.Timer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal tells whoever waits on c, which has room for one, that something changed. A signal that nobody has taken yet
// is enough.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
