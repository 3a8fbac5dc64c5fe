package link

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestPipe(t *testing.T) {
	t.Run("packets arrive at the rate and after the delay", func(t *testing.T) {
		p := &pipe{d: Direction{Rate: 1e6, Delay: 20 * time.Millisecond}}
		for range 3 {
			p.take(make([]byte, 1000), 0)
		}
		for i, want := range []time.Duration{21 * time.Millisecond, 22 * time.Millisecond, 23 * time.Millisecond} {
			if got := p.next(0); got != want {
				t.Errorf("packet %d is due at %v, not %v", i, got, want)
			}
			if p.due(want-1) != nil || p.due(want) == nil {
				t.Errorf("packet %d did not arrive at %v", i, want)
			}
		}
	})
	t.Run("a full queue drops", func(t *testing.T) {
		p := &pipe{d: Direction{Rate: 1e6, Queue: 2500}}
		taken := 0
		for range 5 {
			if p.take(make([]byte, 1000), 0) {
				taken++
			}
		}
		if taken != 2 {
			t.Errorf("%d packets were taken", taken)
		}
		if !p.take(make([]byte, 1000), 2*time.Millisecond) {
			t.Error("an empty queue dropped")
		}
	})
	t.Run("the share that is lost is the share asked for", func(t *testing.T) {
		p := &pipe{d: Direction{Loss: 0.1}, random: rand.New(rand.NewPCG(1, 2))}
		lost := 0
		for range 10000 {
			if !p.take(make([]byte, 1), 0) {
				lost++
			}
		}
		if lost < 900 || lost > 1100 {
			t.Errorf("%d of 10000 were lost", lost)
		}
	})
}
