package clock

import (
	"testing"
	"time"
)

// interrupted are clocks that go on by so much between two readings.
type interrupted struct {
	at     time.Duration
	pauses []time.Duration
}

func (c *interrupted) pass() {
	c.at += time.Microsecond
	if len(c.pauses) > 0 {
		c.at += c.pauses[0]
		c.pauses = c.pauses[1:]
	}
}

func (c *interrupted) sinceBoot() (boot, awake time.Duration) {
	defer c.pass()
	return c.at, c.at
}

func (c *interrupted) wall() time.Time {
	defer c.pass()
	return time.Unix(0, 0).Add(c.at)
}

func TestClocksAreReadTogetherWhateverComesBetween(t *testing.T) {
	const pause = 30 * time.Millisecond
	busy := func(times int, each time.Duration) []time.Duration {
		var pauses []time.Duration
		for range times {
			pauses = append(pauses, each)
		}
		return pauses
	}
	for name, test := range map[string]struct {
		pauses []time.Duration
		most   time.Duration // that the clocks may differ by
	}{
		"undisturbed":                 {nil, time.Microsecond},
		"interrupted before the wall": {[]time.Duration{pause}, time.Microsecond},
		"interrupted after the wall":  {[]time.Duration{0, pause}, time.Microsecond},
		"interrupted several times":   {[]time.Duration{pause, 0, 0, pause, pause}, time.Microsecond},
		"never left alone, the best there is": {append(busy(6, pause),
			append([]time.Duration{pause / 10}, busy(99, pause)...)...), pause/10 + time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := &interrupted{at: time.Hour, pauses: test.pauses}
			m := together(c.sinceBoot, c.wall)
			if apart := m.Wall.Sub(time.Unix(0, 0)) - m.Boot; apart < 0 || apart > test.most || m.Awake != m.Boot {
				t.Errorf("the clocks were read %s apart", apart)
			}
		})
	}
}
