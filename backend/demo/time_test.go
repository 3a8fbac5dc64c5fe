package demo

import (
	"testing"
	"time"

	"slipway/backend/session"
)

func TestTheTimeOfADemoNeverGoesBack(t *testing.T) {
	dir := t.TempDir()
	first, err := GoesOn(dir, Options{Speed: 60})
	if err != nil {
		t.Fatal(err)
	}
	if first.Speed != 60 || !first.Shown.Equal(first.First) {
		t.Errorf("%+v", first)
	}
	first.Shown = first.Shown.Add(60 * time.Hour) // that have gone by
	last := first.Moment()()
	if err := SaveTime(dir, first, 0); err != nil {
		t.Fatal(err)
	}
	again, err := GoesOn(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := again.Moment()()
	if again.Speed != 1 || now.BootID != last.BootID || now.Boot < last.Boot || now.Wall.Before(last.Wall) {
		t.Errorf("it was %+v and is %+v", last, now)
	}
	if boot, err := again.Boot(); err != nil || now.Wall.Sub(boot) != now.Boot {
		t.Errorf("started at %s and up for %s at %s", boot, now.Boot, now.Wall)
	}
}

func TestTheSpeedOfADemoHasBounds(t *testing.T) {
	for speed, ok := range map[int]bool{-1: false, 0: true, 1: true, 60: true, 61: false} {
		_, err := Claim(t.TempDir(), Options{Speed: speed})
		if (err == nil) != ok || !ok && session.CodeOf(err) != "server_start_invalid" {
			t.Errorf("%d: %v", speed, err)
		}
	}
}
