package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFastClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		shown := began.Add(48 * time.Hour)
		c := New(60, began, shown)
		time.Sleep(time.Second)
		if got := c.Now(); !got.Equal(shown.Add(time.Minute)) {
			t.Errorf("it shows %s", got.Sub(shown))
		}
		if c.Since(shown) != time.Minute || c.Until(shown.Add(time.Hour)) != 59*time.Minute {
			t.Errorf("%s since, %s until", c.Since(shown), c.Until(shown.Add(time.Hour)))
		}
		if !c.At(time.Time{}).IsZero() {
			t.Error("no time became one")
		}
		before := time.Now()
		<-c.Timer(time.Hour).C
		if gone := time.Since(before); gone != time.Minute {
			t.Errorf("an hour took %s", gone)
		}
		before = time.Now()
		<-c.Often(2 * time.Second).C
		if gone := time.Since(before); gone != finest {
			t.Errorf("something is done again after %s", gone)
		}
		if err := c.Pause(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := c.Pause(ctx, time.Hour); !errors.Is(err, gone) {
			t.Error(err)
		}
	})
}

func TestNoClockIsTheOneOnTheWall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c *Clock
		began := c.Now()
		for _, timer := range []*time.Timer{c.Timer(time.Second), c.Often(time.Second)} {
			<-timer.C
		}
		if c.Since(began) != time.Second || c.Until(began.Add(time.Minute)) != 59*time.Second || c.Speed() != 1 ||
			!c.At(began).Equal(began) {
			t.Errorf("%s since it began", c.Since(began))
		}
	})
}
