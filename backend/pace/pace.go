// Package pace is the clock of a machine, which runs faster in a demonstration. Everything about sessions uses it, such
// as starts, ends, samples and accounts, but nothing about this computer, such as connections and time limits of calls.
package pace

import (
	"context"
	"time"
)

// Clock tells the time and waits. A nil clock shows the real time. It is safe for concurrent use.
type Clock struct {
	speed float64
	real  time.Time // a real time
	shown time.Time // what this clock showed then
}

// Wall returns the clock of the real time.
func Wall() *Clock { return nil }

// New returns a clock that runs speed times as fast as the real time, and shows shown at the time real.
func New(speed float64, real, shown time.Time) *Clock {
	return &Clock{speed: speed, real: real, shown: shown.Round(0)}
}

// Now returns the time of the clock.
func (c *Clock) Now() time.Time { return c.At(time.Now()) }

// At returns the time of the clock at a real time. The zero time stays zero.
func (c *Clock) At(real time.Time) time.Time {
	if c == nil || real.IsZero() {
		return real
	}
	return c.shown.Add(time.Duration(float64(real.Sub(c.real)) * c.speed))
}

// Since returns how long ago a time was.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until returns how far ahead a time is.
func (c *Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }

// Speed returns the factor of its speed.
func (c *Clock) Speed() float64 {
	if c == nil {
		return 1
	}
	return c.speed
}

// Real returns how long a length of time is in real time.
func (c *Clock) Real(d time.Duration) time.Duration {
	if c == nil {
		return d
	}
	return time.Duration(float64(d) / c.speed)
}

// Timer returns a timer that fires after d.
func (c *Clock) Timer(d time.Duration) *time.Timer { return time.NewTimer(c.Real(d)) }

// finest is the shortest real time between repeated actions, so that a fast clock does not make a computer busy.
const finest = 100 * time.Millisecond

// Often returns a timer for repeated actions: it fires after d, but on a fast clock not before finest, or before d in
// real time if that is shorter.
func (c *Clock) Often(d time.Duration) *time.Timer {
	if real := c.Real(d); c != nil && c.speed > 1 {
		return time.NewTimer(max(real, min(d, finest)))
	}
	return c.Timer(d)
}

// Pause waits for d. It fails if ctx ends before.
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

// Signal wakes the receiver of c, which must have a buffer of one, unless a signal is already waiting.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
