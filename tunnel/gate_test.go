package tunnel

import (
	"testing"
	"time"
)

// TestGateNearbyHasMoreThanAFrameOnItsWay sees that on a short path a frame does
// not fill the window, after which each would wait for the answer to the last.
func TestGateNearbyHasMoreThanAFrameOnItsWay(t *testing.T) {
	now := time.Unix(100, 0)
	g := newGate(now)
	for range 3 {
		for g.open() {
			g.spend(headerSize + MaxFrame)
		}
		v := g.mark(now)
		now = now.Add(100 * time.Microsecond)
		if !g.ack(v, now.Sub(g.start), now) {
			t.Fatal("the answer was refused")
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
	}{{0, 0, false}, {1000, 0, true}, {0, 1000, true}, {1040, 1000, false}, {960, 1000, false}, {1100, 1000, true}, {900, 1000, true}} {
		if differs(c.now, c.before) != c.told {
			t.Errorf("from %d to %d: told %v", c.before, c.now, !c.told)
		}
	}
}
