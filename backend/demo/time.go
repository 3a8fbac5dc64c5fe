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

// Time is how time goes by in a demonstration. Both of its machines have the same.
type Time struct {
	Speed int       `json:"speed"` // how much faster than on the wall
	Real  time.Time `json:"real"`  // a moment on the clock on the wall
	Shown time.Time `json:"shown"` // what the demonstration's clock showed then
	First time.Time `json:"first"` // what it showed when it was begun
}

// Clock is what sessions go by. The zero Time goes by the clock on the wall.
func (t Time) Clock() *pace.Clock {
	if t.Speed == 0 {
		return nil
	}
	return pace.New(float64(t.Speed), t.Real, t.Shown)
}

// bootedBefore is how long before it was begun the machines of a demonstration were started.
const bootedBefore = time.Minute

// Boot is when its machines were started: once, however often the demonstration is ended and gone on with.
func (t Time) Boot() (time.Time, error) { return t.First.Add(-bootedBefore), nil }

// Moment reads the clock as accounts are kept by it. Machines of a demonstration are never suspended.
func (t Time) Moment() func() gpu.Moment {
	clock, id := t.Clock(), fmt.Sprintf("demo-%d", t.First.UnixNano())
	return func() gpu.Moment {
		now := clock.Now()
		up := now.Sub(t.First) + bootedBefore
		return gpu.Moment{BootID: id, Boot: up, Awake: up, Wall: now}
	}
}

// timeName is the file that says how far the time of a demonstration has come.
const timeName = "demo-time.json"

// TimeEvery is how often that is kept.
const TimeEvery = 10 * time.Second

// SaveTime keeps how far the time has come in a folder. ahead is for how long, on the wall, it may go on before that is
// kept again: after a crash the clock is never set back behind what was written by it.
func SaveTime(dir string, t Time, ahead time.Duration) error {
	real := time.Now()
	t.Real, t.Shown = real, t.Clock().At(real.Add(ahead))
	return keep(dir, timeName, t)
}

// GoesOn is the time of a demonstration that is served in a folder from now on. One that was kept goes on no earlier
// than it came.
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
