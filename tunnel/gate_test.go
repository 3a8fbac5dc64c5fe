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
