package clock_test

import (
	"testing"
	"time"

	"slipway/gpu/clock"
)

func TestMomentsFollowOneAnother(t *testing.T) {
	first := clock.Now()
	time.Sleep(time.Millisecond)
	second := clock.Now()
	if second.Boot-first.Boot < time.Millisecond || second.Awake-first.Awake < time.Millisecond {
		t.Errorf("a millisecond took %s, awake %s", second.Boot-first.Boot, second.Awake-first.Awake)
	}
	if first.Boot < first.Awake {
		t.Errorf("more time awake (%s) than since boot (%s)", first.Awake, first.Boot)
	}
	if first.BootID == "" || first.BootID != second.BootID {
		t.Errorf("boots %q and %q", first.BootID, second.BootID)
	}
	if away := time.Since(first.Wall); away < 0 || away > time.Minute {
		t.Errorf("the wall clock is %s away", away)
	}
}
