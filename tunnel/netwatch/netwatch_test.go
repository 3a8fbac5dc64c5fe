package netwatch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestClocksThatDisagreeAreAWake(t *testing.T) {
	var told []Change
	wall, awake := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Duration(0)
	w := watch{fn: func(c Change) { told = append(told, c) }, state: func() (string, error) { return "", nil },
		clocks: func() (time.Time, time.Duration) { return wall, awake }}
	w.begin()
	for _, c := range []struct {
		name          string
		passed, awake time.Duration
		want          int
	}{
		{"a second awake", time.Second, time.Second, 0},
		{"a clock that is set by a second", 2 * time.Second, time.Second, 0},
		{"a clock that is set back", -time.Hour, time.Second, 0},
		{"a night", 9 * time.Hour, time.Second, 1},
		{"the second after it", time.Second, time.Second, 0},
		{"a short sleep", 6 * time.Second, 2 * time.Second, 1},
		{"a program that was stopped", 20 * time.Second, 20 * time.Second, 1},
		{"a busy machine", 3 * time.Second, 3 * time.Second, 0},
	} {
		told = nil
		wall, awake = wall.Add(c.passed), awake+c.awake
		w.tick()
		if len(told) != c.want {
			t.Errorf("%s: told %v", c.name, told)
		}
	}
}

func TestOnlyWhatMattersIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Change
		now, failure := "lan0 10.0.0.1/24", error(nil)
		w := watch{fn: func(c Change) { told = append(told, c) }, state: func() (string, error) { return now, failure },
			clocks: clocks}
		w.begin()
		w.noticed(t.Context())
		if len(told) != 0 {
			t.Errorf("told %v of nothing", told)
		}
		now = "lan0 10.0.0.2/24"
		w.noticed(t.Context())
		w.noticed(t.Context())
		if !slices.Equal(told, []Change{Network}) {
			t.Errorf("told %v of one change", told)
		}
		failure = errors.New("cannot be read")
		w.noticed(t.Context())
		if len(told) != 2 {
			t.Errorf("what cannot be read was told as %v", told)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		failure, now = nil, "other"
		w.noticed(ended)
		if len(told) != 2 {
			t.Error("told after the end")
		}
	})
}

func TestInterfacesOfContainersAreNotLookedAt(t *testing.T) {
	for name, want := range map[string]bool{"docker0": true, "br-01ab": true, "veth9f": true, "eth0": false,
		"wlp2s0": false, "wg0": false, "tun0": false, "en0": false} {
		if internal(name) != want {
			t.Errorf("internal(%q) = %v", name, !want)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := Run(ctx, func(Change) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ended with %v", err)
	}
	if text, err := state(); err != nil {
		t.Errorf("state %q, %v", text, err)
	}
}
