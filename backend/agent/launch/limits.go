package launch

import (
	"time"

	"slipway/backend/agent/images"
)

// Limits are the times after which a step counts as failed. Zero fields have
// defaults.
type Limits struct {
	images.Limits
	Pull      time.Duration   // a pull as a whole; 6 h
	Create    time.Duration   // 2 min
	Start     time.Duration   // 2 min
	Guest     time.Duration   // until the guest is ready; 1 min
	Prepare   time.Duration   // all attempts at preparing; 12 h
	Launch    time.Duration   // all attempts at starting; 15 min
	Grace     time.Duration   // between asking a session to end and killing it; 10 s
	Logs      time.Duration   // to copy a log; 1 min
	Reconcile time.Duration   // between two comparisons of records and containers; 1 min
	Stray     time.Duration   // before a container without a record is removed; 5 min
	Backoff   []time.Duration // pauses between attempts; 1, 2, 4, 8 s
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	for _, field := range []struct {
		value *time.Duration
		zero  time.Duration
	}{
		{&l.Call, 30 * time.Second}, {&l.Pull, 6 * time.Hour}, {&l.PullStall, 5 * time.Minute},
		{&l.Commit, time.Hour}, {&l.Remove, 5 * time.Minute},
		{&l.Create, 2 * time.Minute}, {&l.Start, 2 * time.Minute}, {&l.Guest, time.Minute},
		{&l.Prepare, 12 * time.Hour}, {&l.Launch, 15 * time.Minute}, {&l.Grace, 10 * time.Second},
		{&l.Logs, time.Minute}, {&l.Reconcile, time.Minute}, {&l.Stray, 5 * time.Minute},
	} {
		if *field.value == 0 {
			*field.value = field.zero
		}
	}
	if len(l.Backoff) == 0 {
		l.Backoff = []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second}
	}
	return l
}

// Pause is the time after the given attempt, which counts from 1.
func (l Limits) Pause(attempt int) time.Duration {
	return l.Backoff[min(max(attempt, 1), len(l.Backoff))-1]
}
