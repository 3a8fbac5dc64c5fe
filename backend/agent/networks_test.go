package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	"slipway/backend/engine"
	"slipway/backend/engine/enginetest"
	"slipway/backend/engine/sim/simtest"
	"slipway/backend/session"
)

// launchFor launches a session of somebody's and waits until it runs.
func (w *world) launchFor(owner string, spec session.Spec) session.Session {
	w.t.Helper()
	spec.Image = enginetest.ImageMinimal
	s, err := w.agent.Launch(context.Background(), session.LaunchRequest{Owner: owner, Spec: spec})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.awaitStatus(s.ID, session.Running)
}

// networkIn is the network that a session's container is in.
func (w *world) networkIn(s session.Session) engine.Network {
	w.t.Helper()
	c, _ := w.fake.Container(s.Kernels[0].Container)
	n, there := w.fake.MadeNetworks()[c.Network]
	if !there || n.Labels[engine.LabelInstance] == "" {
		w.t.Errorf("%s is in the network %q, which is %+v", s.Name, c.Network, n)
	}
	return n
}

func (w *world) end(s session.Session) {
	w.t.Helper()
	if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
		w.t.Fatal(err)
	}
	w.awaitStatus(s.ID, session.Terminated)
}

func TestSessionsAreKeptApart(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, newFake(t, simtest.Config{}), nil)
		first, second := w.launchFor("ann", session.Spec{Name: "first"}),
			w.launchFor("ann", session.Spec{Name: "second"})
		other, pair := w.launchFor("bob", session.Spec{Name: "other"}),
			w.launchFor("ann", session.Spec{Name: "pair", Cluster: 2})
		anns, bobs, pairs := w.networkIn(first), w.networkIn(other), w.networkIn(pair)
		if !anns.Apart || !bobs.Apart || pairs.Apart {
			t.Errorf("kept apart: %+v, %+v, %+v", anns, bobs, pairs)
		}
		if w.networkIn(second).Name != anns.Name || anns.Name == bobs.Name || pairs.Name == anns.Name {
			t.Errorf("they are in %s, %s, %s and %s", anns.Name, w.networkIn(second).Name, bobs.Name, pairs.Name)
		}
		w.end(first)
		if got := w.fake.Networks(); !slices.Contains(got, anns.Name) {
			t.Errorf("with one of two ended there are %v", got)
		}
		w.end(second)
		w.end(other)
		if got := w.fake.Networks(); !slices.Equal(got, []string{pairs.Name}) {
			t.Errorf("with all of them ended there are %v", got)
		}
		w.end(pair)
		w.audit()
	})
}

func TestNetworksAreLeftToNobody(t *testing.T) {
	clean := func(t *testing.T, w *world) {
		t.Helper()
		time.Sleep(2 * time.Minute) // two comparisons
		if left := w.fake.Networks(); len(left) > 0 {
			t.Errorf("left are %v", left)
		}
	}
	t.Run("after a kill between the containers' end and theirs", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{}), nil)
			s := w.launchFor("ann", session.Spec{})
			gate := w.fake.Block(simtest.CallRemoveNetwork)
			if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
				t.Fatal(err)
			}
			<-gate.Entered()
			w.halt()
			gate.Release()
			w.start()
			w.awaitStatus(s.ID, session.Terminated)
			clean(t, w)
		})
	})
	t.Run("after a launch that comes to nothing", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{}), nil)
			w.fake.Fail(simtest.CallCreate, &session.Error{Code: "engine_call_invalid", Message: "No."})
			s := w.launch(session.Spec{})
			w.awaitStatus(s.ID, session.Failed)
			clean(t, w)
		})
	})
	t.Run("and one that was removed by hand is made again", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{}), nil)
			gate := w.fake.Block(simtest.CallCreate)
			s := w.launch(session.Spec{})
			<-gate.Entered()
			for _, name := range w.fake.Networks() {
				if err := w.fake.RemoveNetwork(context.Background(), name); err != nil {
					t.Fatal(err)
				}
			}
			gate.Release()
			w.end(w.awaitStatus(s.ID, session.Running))
			clean(t, w)
		})
	})
	t.Run("when all of a person's sessions end at once", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{}), nil)
			gate := w.fake.Block(simtest.CallRemove)
			var all []session.Session
			for range 4 {
				all = append(all, w.launchFor("ann", session.Spec{}))
			}
			for _, s := range all {
				if _, err := w.agent.Terminate(context.Background(), s.ID, false); err != nil {
					t.Fatal(err)
				}
			}
			for range all {
				<-gate.Entered()
			}
			gate.Release()
			for _, s := range all {
				w.awaitStatus(s.ID, session.Terminated)
			}
			if left := w.fake.Networks(); len(left) > 0 { // without waiting for a comparison
				t.Errorf("left are %v", left)
			}
		})
	})
	t.Run("while another session begins", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			w := newWorld(t, newFake(t, simtest.Config{}), nil)
			s := w.launchFor("ann", session.Spec{})
			for range 10 {
				ended := s
				if _, err := w.agent.Terminate(context.Background(), ended.ID, false); err != nil {
					t.Fatal(err)
				}
				s = w.launchFor("ann", session.Spec{})
				if p := w.phaseOf(s.ID, session.PhaseStart); p.Attempts != 1 {
					t.Fatalf("it took %d attempts: %+v", p.Attempts, p.Steps)
				}
				w.awaitStatus(ended.ID, session.Terminated)
			}
			w.end(s)
			clean(t, w)
		})
	})
}
