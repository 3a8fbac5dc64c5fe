package server_test

import (
	"net"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/session"
)

// TestHostileAgentIsNotJoinedInALoop has an agent let a viewer into a terminal
// and cut it off at once, again and again.
func TestHostileAgentIsNotJoinedInALoop(t *testing.T) {
	w := start(t)
	lab, _ := w.addLab(t)
	var joined atomic.Int64
	lab.Attach = func(_ session.AttachRequest, far net.Conn) {
		joined.Add(1)
		_ = far.Close()
	}
	lab.Wrap = func(near net.Conn) net.Conn { return cutting{near} }
	conn := w.dial(t, "/api/v1/sessions/aaaaaaaaaaaa/terminals/t1/attach?client=me")
	time.Sleep(time.Second)
	if n := joined.Load(); n < 2 || n > 10 {
		t.Errorf("it was joined %d times in a second", n)
	}
	_ = conn.Close()
}
