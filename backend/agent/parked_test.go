package agent

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

// keepNote makes a directory in the home of a running session.
func (w *world) keepNote(id session.ID) {
	w.t.Helper()
	if err := w.agent.MakeDirectory(w.t.Context(), session.Place{Session: id}, "note", false); err != nil {
		w.t.Fatal(err)
	}
}

// wantNote wants a parked session to have what continues it: its image, and the directory in its home.
func (w *world) wantNote(s session.Session) {
	w.t.Helper()
	if !s.Continuable() || s.EndImage.Kept {
		w.t.Fatalf("it is %s with %+v", s.Status, s.EndImage)
	}
	home := session.Place{Folder: s.HomeFolder().Folder}
	if _, err := w.agent.StatFile(w.t.Context(), home, "note"); err != nil {
		w.t.Errorf("its home: %v", err)
	}
	if f, err := w.agent.GetFolder(w.t.Context(), home.Folder); err != nil || f.Home != nil {
		w.t.Errorf("its home is not kept for good: %+v, %v", f.Home, err)
	}
}

// TestAKilledAgentParksOnce kills the agent after each deed of a parking.
func TestAKilledAgentParksOnce(t *testing.T) {
	killed := 0
	for deeds := 1; deeds <= 40; deeds++ {
		inBubble(t, func(t *testing.T) {
			l := &life{}
			fake := newFake(t, simtest.Config{})
			w := &world{t: t, dir: dirInMemory(t), fake: fake, fault: func(string) error { return l.fault("") }}
			w.config = func(c *Config) { c.Engine = engine.Of(mortal{engine.Of(fake), l}) }
			w.start()
			t.Cleanup(w.halt)
			s := w.launch(session.Spec{Name: "work"})
			w.awaitStatus(s.ID, session.Running)
			w.keepNote(s.ID)
			l.mu.Lock()
			l.left = deeds
			l.mu.Unlock()
			_, err := w.agent.Park(t.Context(), s.ID)
			synctest.Wait()
			w.halt()
			l.mu.Lock()
			if l.dead {
				killed++
			}
			l.left, l.dead = 0, false
			l.mu.Unlock()
			w.start()
			if err != nil { // it was killed before the wish was stored
				if _, err := w.agent.Park(t.Context(), s.ID); err != nil {
					t.Fatal(err)
				}
			}
			s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
			synctest.Wait()
			w.wantNote(s)
			if got := w.madeImages(); !slices.Equal(got, []string{s.ParkedName()}) || len(fake.States()) != 0 {
				t.Errorf("killed after %d deeds the images are %v", deeds, got)
			}
			w.audit()
		})
	}
	if killed < 10 {
		t.Errorf("only %d ends were killed", killed)
	}
}

// TestAHomeThatCannotBeKeptKeepsTheContainer: the home of a parked session is in its container until it is kept.
func TestAHomeThatCannotBeKeptKeepsTheContainer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		fake := newFake(t, simtest.Config{})
		w := newWorld(t, fake, nil)
		s := w.launch(session.Spec{Name: "work"})
		w.awaitStatus(s.ID, session.Running)
		w.keepNote(s.ID)
		fake.Fail(simtest.CallHome, noSpace)
		if _, err := w.agent.Park(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		if s.Continuable() || !s.KeepsContainer() || s.EndImage.Error.Code != session.CodeDiskFull {
			t.Fatalf("it is %s with %+v", s.Status, s.EndImage)
		}
		w.finished(w.commit(s.ID, "rescued"))
		synctest.Wait()
		s = w.await(s.ID, "committed", func(s session.Session) bool { return s.Continuable() })
		w.wantNote(s)
		if len(fake.States()) != 0 {
			t.Errorf("containers are left: %+v", fake.States())
		}
	})
}

// TestAnIdleSessionIsParked: its policy says that what it reclaims is kept.
func TestAnIdleSessionIsParked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		policy := &session.IdlePolicy{Lifetime: session.Duration(time.Minute), Park: true}
		s := w.launch(session.Spec{Name: "work", Lifetime: session.Lifetime{Idle: policy}})
		w.awaitStatus(s.ID, session.Running)
		w.keepNote(s.ID)
		s = w.await(s.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		if s.Reason != session.ReasonLifetime {
			t.Errorf("it ended as %s", s.Reason)
		}
		w.wantNote(s)
		batch := w.launch(session.Spec{Type: session.Batch, Command: "sleep 600",
			Lifetime: session.Lifetime{Idle: policy}})
		batch = w.await(batch.ID, "ended", func(s session.Session) bool { return s.Status.Terminal() })
		if batch.Parked {
			t.Errorf("a batch session is parked: %+v", batch)
		}
	})
}
