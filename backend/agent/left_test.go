package agent

import (
	"context"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

// TestWhatIsLeftBehindIsGivenToNobody ends a session by force whose container
// cannot be removed: who waits for its CPUs goes on waiting, and is told.
func TestWhatIsLeftBehindIsGivenToNobody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{CPUs: 2})
		w := newWorld(t, fake, nil)
		both := session.Resources{CPU: 2}
		first := w.awaitStatus(w.launch(session.Spec{Name: "stuck", Resources: both}).ID, session.Running)
		second := w.launch(session.Spec{Resources: both})
		broken := &session.Error{Code: "engine_remove_failed", Message: "It cannot be removed."}
		fake.Fail(simtest.CallRemove, broken, broken, broken) // the end, and two comparisons after it
		if _, err := w.agent.Terminate(context.Background(), first.ID, true); err != nil {
			t.Fatal(err)
		}
		w.awaitStatus(first.ID, session.Terminated)
		w.await(second.ID, "waiting for what was left", func(s session.Session) bool {
			return s.Wait != nil && strings.Contains(s.Wait.Message, "left behind) has 2")
		})
		time.Sleep(90 * time.Second) // one comparison has failed too
		if s, _ := w.agent.Get(context.Background(), second.ID); s.Status != session.Pending ||
			!strings.Contains(s.Wait.Message, "(left behind) has 2") {
			t.Errorf("it is %s and waits for %+v", s.Status, s.Wait)
		}
		w.awaitStatus(second.ID, session.Running)
		if states := fake.States(); len(states) != 1 {
			t.Errorf("containers %+v", states)
		}
	})
}
