package nvml

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/gpu"
)

func TestReadersThatCannotBeEndedAreNotMadeWithoutEnd(t *testing.T) {
	s := Open(Config{Root: t.TempDir(), Command: []string{"/nowhere/slipway-gpu"}})
	hanging := make(chan struct{})
	for range mostLeft {
		s.left = append(s.left, &child{gone: hanging})
	}
	if err := s.ready(); err == nil || !strings.Contains(err.Message, "3 readers of its devices cannot be ended") {
		t.Errorf("got %+v", err)
	}
	close(hanging)
	if err := s.ready(); err == nil || !strings.Contains(err.Message, "cannot be started") || len(s.left) != 0 {
		t.Errorf("after their end: %+v, %d left", err, len(s.left))
	}
}

func TestWhatFailsAgainIsLeftOutLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Open(Config{Root: t.TempDir()})
		o := omission{Device: "GPU-0"}
		var last time.Duration
		for range 12 {
			s.avoid(o, "it hangs")
			span := time.Until(s.avoided[0].until)
			if span < last || span > longestAvoid {
				t.Errorf("%s after %s", span, last)
			}
			last = span
		}
		if last != longestAvoid || len(s.avoided) != 1 {
			t.Errorf("%s, %d", last, len(s.avoided))
		}
		if why := s.why(loss{Device: "GPU-0", Call: "anything"}); !strings.Contains(why,
			"it hangs; it is asked again in 10m0s") {
			t.Errorf("got %q", why)
		}
		if _, left := s.avoids(loss{Device: "GPU-1", Call: "anything"}); left {
			t.Error("another device is left out")
		}
	})
}

func TestAPauseGrowsWithEachFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Open(Config{Root: t.TempDir()})
		var last time.Duration
		for range 12 {
			if err := s.giveUp(&gpu.Error{Message: "no"}); err == nil {
				t.Fatal("no error")
			}
			pause := time.Until(s.notBefore)
			if pause < last || pause > longestPause {
				t.Errorf("%s after %s", pause, last)
			}
			last = pause
		}
		if last != longestPause {
			t.Errorf("ends at %s", last)
		}
		var e *gpu.Error
		if _, err := s.ask(t.Context(), request{Op: opSample}); !errors.As(err, &e) ||
			!strings.Contains(e.Hint, "Next try in") {
			t.Errorf("got %v", err)
		}
	})
}
