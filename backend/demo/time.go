package demo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"slipway/backend/pace"
	"slipway/gpu"
)

const (
	timeName     = "demo-time.json"
	bootedBefore = time.Minute // how long before the first start the machines were booted
	// TimeEvery is how often the time is stored.
	TimeEvery = 10 * time.Second
)

// Time is the time of a demonstration, the same on both machines.
type Time struct {
	Speed int       `json:"speed"` // how many times faster than real it passes
	Real  time.Time `json:"real"`  // a moment
	Shown time.Time `json:"shown"` // what the demonstration's clock showed at that moment
	First time.Time `json:"first"` // what it showed at the first start
}

// Clock returns the clock of sessions, nil (the wall clock) for the zero Time.
func (t Time) Clock() *pace.Clock {
	if t.Speed == 0 {
		return nil
	}
	return pace.New(float64(t.Speed), t.Real, t.Shown)
}

// Boot returns when the machines were booted. It does not change when the demonstration is started again.
func (t Time) Boot() (time.Time, error) { return t.First.Add(-bootedBefore), nil }

// Moment returns the clock of accounts. The machines are never suspended.
func (t Time) Moment() func() gpu.Moment {
	clock, id := t.Clock(), fmt.Sprintf("demo-%d", t.First.UnixNano())
	return func() gpu.Moment {
		now := clock.Now()
		up := now.Sub(t.First) + bootedBefore
		return gpu.Moment{BootID: id, Boot: up, Awake: up, Wall: now}
	}
}

// SaveTime stores the time that the clock shows after ahead of real time, so that the clock never goes back after a
// crash before the next call.
func SaveTime(dir string, t Time, ahead time.Duration) error {
	real := time.Now()
	t.Real, t.Shown = real, t.Clock().At(real.Add(ahead))
	return keep(dir, timeName, t)
}

// GoesOn returns the time of a demonstration that starts now. It is not before the stored time.
func GoesOn(dir string, o Options) (Time, error) {
	now, t := time.Now(), Time{}
	data, err := os.ReadFile(filepath.Join(dir, timeName))
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, unusable(dir, err)
	}
	if t.Shown.Before(now) {
		t.Shown = now
	}
	if t.First.IsZero() {
		t.First = t.Shown
	}
	t.Speed, t.Real = cmp.Or(o.Speed, 1), now
	return t, SaveTime(dir, t, TimeEvery)
}
