package tunnel

import (
	"slices"
	"testing"
	"time"
)

// TestGateNearbyHasMoreThanAFrameOnItsWay sees that on a short path a frame does not fill the window, after which each
// would wait for the answer to the last, and that the window keeps to its bound however fast the answers come.
func TestGateNearbyHasMoreThanAFrameOnItsWay(t *testing.T) {
	now := time.Unix(100, 0)
	g := newGate(now)
	for range 6 {
		g.spend(headerSize + MaxFrame)
		first := g.mark(now)
		for g.open() {
			g.spend(headerSize + MaxFrame)
		}
		last := g.mark(now)
		now = now.Add(100 * time.Microsecond)
		for _, v := range []uint64{first, last} { // the round goes on after the first
			if !g.ack(v, now.Sub(g.start), now) {
				t.Fatal("the answer was refused")
			}
			if g.window > gateMost {
				t.Fatalf("the window is %d bytes", g.window)
			}
		}
	}
	if !g.near() || g.window < gateWide {
		t.Errorf("the window is %d bytes after a round trip of %v", g.window, g.base)
	}
}

// TestTheKernelKeepsToTheGatesRateWherePacketsAreLost sees that the kernel is
// given a rate as long as the path loses packets, and let go afterwards.
func TestTheKernelKeepsToTheGatesRateWherePacketsAreLost(t *testing.T) {
	now := time.Unix(100, 0)
	g := newGate(now)
	if rate := g.kernelRate(now); rate != 0 {
		t.Errorf("an unknown path has the rate %d", rate)
	}
	g.spend(20 << 10)
	v := g.mark(now)
	now = now.Add(40 * time.Millisecond)
	if !g.ack(v, now.Sub(g.start), now) {
		t.Fatal("the answer was refused")
	}
	if rate := g.kernelRate(now); rate != 0 {
		t.Errorf("a path without loss has the rate %d", rate)
	}
	g.lost(now)
	least, most := float64(g.window)/g.base.Seconds(), 3*float64(g.window)/g.base.Seconds()
	if rate := float64(g.kernelRate(now)); rate < least || rate > most {
		t.Errorf("a path with loss has the rate %.0f, not %.0f to %.0f", rate, least, most)
	}
	if rate := g.kernelRate(now.Add(gateLossy)); rate != 0 {
		t.Errorf("the rate is still %d when the loss is forgotten", rate)
	}
}

func TestARateIsToldAgainWhenItHasChanged(t *testing.T) {
	for _, c := range []struct {
		now, before uint64
		told        bool
	}{{0, 0, false}, {1000, 0, true}, {0, 1000, true}, {1040, 1000, false}, {960, 1000, false}, {1100, 1000, true},
		{900, 1000, true}} {
		if differs(c.now, c.before) != c.told {
			t.Errorf("from %d to %d: told %v", c.before, c.now, !c.told)
		}
	}
}

func TestAPathLosesPacketsByItself(t *testing.T) {
	step := func(again, needless int, queue time.Duration) seen {
		return seen{known: true, again: again, needless: needless, queue: queue}
	}
	for name, c := range map[string]struct {
		spans []seen
		lossy bool
	}{
		"not by what was sent once": {[]seen{step(0, 0, 0), step(0, 0, 0), step(0, 0, 0)}, false},
		"not by one mishap": {[]seen{step(0, 0, 0), step(5, 0, 0), step(5, 0, 0), step(5, 0, 0)},
			false},
		"by two": {[]seen{step(0, 0, 0), step(1, 0, 0), step(1, 0, 0), step(2, 0, 0),
			step(2, 0, 0)}, true},
		"not by packets that came twice": {[]seen{step(0, 0, 0), step(1, 0, 0), step(2, 1, 0), step(3, 2, 0),
			step(3, 3, 0)}, false},
		"not while its queue is full": {[]seen{step(0, 0, 0), step(1, 0, lossQueue*2), step(2, 0, lossQueue*2),
			step(3, 0, lossQueue*2)}, false},
		"not when they are far from others": {
			append(append([]seen{step(0, 0, 0), step(1, 0, 0)}, slices.Repeat([]seen{step(1, 0, 0)}, lossSpans+1)...),
				step(2, 0, 0), step(2, 0, 0)), false},
	} {
		t.Run(name, func(t *testing.T) {
			var l losses
			now, lossy := time.Unix(100, 0), false
			for _, s := range c.spans {
				now = now.Add(lossSpan)
				lossy = l.look(s, now) || lossy
			}
			if lossy != c.lossy {
				t.Errorf("it does: %v", lossy)
			}
		})
	}
}

// TestWhatWaitsBehindALostPacketIsNoQueue sees that the window grows on when
// answers are late because a packet had to be sent again, and shrinks when
// nothing was.
func TestWhatWaitsBehindALostPacketIsNoQueue(t *testing.T) {
	const step = 10 * time.Millisecond // a quarter of the round trip
	now := time.Unix(100, 0)
	g := newGate(now)
	var sent []mark
	pass := func(steps int, late time.Duration, again int) {
		for range steps {
			for quarter := g.window / 4; quarter > 0 && g.open(); quarter -= leastFrame {
				g.spend(leastFrame)
			}
			g.limited = true // there is always more to say
			sent = append(sent, mark{g.mark(now), now})
			now = now.Add(step)
			g.see(seen{known: true, again: again}, now)
			for len(sent) > 0 && now.Sub(sent[0].at) >= 4*step+late {
				if !g.ack(sent[0].offset, now.Sub(g.start), now) {
					t.Fatal("the answer was refused")
				}
				sent = sent[1:]
			}
		}
	}
	pass(20, 0, 0)
	before := g.window
	pass(4, 4*step, 0) // nothing is answered until what was lost has come
	pass(1, 0, 1)
	pass(20, 0, 1)
	if !g.growing || g.window <= before {
		t.Errorf("the window went from %d to %d, growing %v", before, g.window, g.growing)
	}
	before = g.window
	pass(40, 4*step, 1)
	if g.window >= before {
		t.Errorf("with a queue in which nothing was lost the window went from %d to %d", before, g.window)
	}
}
