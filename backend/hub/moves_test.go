package hub_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// yards is a hub over two machines that have the image.
func yards(t *testing.T) world {
	w := open(t, "local", "lab")
	for _, a := range w.agents {
		a.SetImages(session.Image{Refs: []string{"python:3.12"}})
	}
	w.run(t)
	return w
}

// waitingAt launches a session at the first agent, where it then waits.
func waitingAt(t *testing.T, w world, spec session.Spec, on string) session.Session {
	t.Helper()
	spec.Image, spec.Agent = "python:3.12", on
	spec.Resources = session.Resources{CPU: 1, Memory: gpu.GiB}
	s, err := w.Launch(t.Context(), hub.LaunchRequest{Key: spec.Name, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range w.agents {
		a.Change(s.ID, func(s *session.Session) {
			s.Wait = &session.Wait{Code: session.CodeWaitResources, Message: "Needs 1 of 8 CPUs."}
		})
	}
	synctest.Wait()
	return s
}

func TestASessionOnAutomaticMovesAndIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := yards(t)
		s := waitingAt(t, w, session.Spec{Name: "anywhere"}, "")
		fixed := waitingAt(t, w, session.Spec{Name: "here"}, s.Agent)
		if _, err := w.Remind(t.Context(), string(s.ID), true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		now, _, err := w.Get(t.Context(), string(s.ID))
		if err != nil || now.ID == s.ID || now.Agent == s.Agent ||
			now.Name != "anywhere" || now.Held || now.From != s.ID {
			t.Fatalf("it is %+v, %v", now, err)
		}
		if !w.View(now).Reminder {
			t.Error("its reminder has stayed behind")
		}
		if still, _, err := w.Get(t.Context(), string(fixed.ID)); err != nil || still.Agent != s.Agent {
			t.Errorf("one that named its machine is %+v, %v", still, err)
		}
		again, err := w.Launch(t.Context(), hub.LaunchRequest{Key: "anywhere",
			Spec: session.Spec{Name: "anywhere", Image: "python:3.12"}})
		if err != nil || again.ID != now.ID {
			t.Errorf("a repeated launch answers %s, %v", again.ID, err)
		}
		if recents := w.Recents(); len(recents) == 0 || recents[0].Session != now.ID {
			t.Errorf("the recent launches are %+v", recents)
		}
		all, err := w.List(t.Context(), "", session.Filter{Live: true})
		if err != nil || len(all) != 2 {
			t.Errorf("%d sessions are live, %v", len(all), err)
		}
	})
}

func TestASessionIsFoundAtEveryMomentOfItsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := yards(t)
		for i := range 50 {
			s := waitingAt(t, w, session.Spec{Name: fmt.Sprintf("moves-%d", i)}, "local")
			moved := make(chan error, 1)
			go func() {
				_, err := w.Move(t.Context(), string(s.ID), "lab")
				moved <- err
			}()
			for len(moved) == 0 {
				if now, _, err := w.Get(t.Context(), string(s.ID)); err != nil || now.Name != s.Name {
					t.Fatalf("meanwhile it is %+v, %v", now, err)
				}
			}
			if err := <-moved; err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestASessionThatIsAboutToEndDoesNotMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := yards(t)
		s := waitingAt(t, w, session.Spec{Name: "anywhere"}, "")
		if _, err := w.Terminate(t.Context(), string(s.ID), false, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(hub.UndoTime + time.Second)
		ended, _, err := w.Get(t.Context(), string(s.ID))
		if err != nil || ended.ID != s.ID || ended.Status != session.Terminating && ended.Status.Live() {
			t.Errorf("it is %+v, %v", ended, err)
		}
	})
}

func TestAPersonMovesWhatNamedItsMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := yards(t)
		s := waitingAt(t, w, session.Spec{Name: "here"}, "local")
		offers, err := w.MoveOffers(t.Context(), "here")
		if err != nil || len(offers) != 1 || offers[0].Agent != "lab" || offers[0].Wait != nil {
			t.Fatalf("offers %+v, %v", offers, err)
		}
		if _, err := w.Move(t.Context(), "here", "local"); session.CodeOf(err) != session.CodeSessionConflict {
			t.Errorf("moved to where it is: %v", err)
		}
		moved, err := w.Move(t.Context(), "here", "lab")
		if err != nil || moved.Agent != "lab" || moved.From != s.ID || moved.Floats != nil {
			t.Errorf("moved %+v, %v", moved, err)
		}
		w.agents[1].Change(moved.ID, func(s *session.Session) { s.Status = session.Running })
		synctest.Wait()
		if offers, err := w.MoveOffers(t.Context(), "here"); err != nil || len(offers) != 0 {
			t.Errorf("offers for what runs: %+v, %v", offers, err)
		}
		if _, err := w.Move(t.Context(), "here", "local"); session.CodeOf(err) != session.CodeSessionConflict {
			t.Errorf("moved what runs: %v", err)
		}
	})
}

// TestALaunchThatMovedIsNotRepeated loses the answer of a launch, moves its session and asks again with its key.
func TestALaunchThatMovedIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := yards(t)
		asks := session.Spec{Name: "anywhere", Image: "python:3.12"}
		lost, err := w.agents[0].Launch(t.Context(), session.LaunchRequest{Key: "k", Owner: "ada", Spec: asks,
			Floats: &session.Floats{}})
		if err != nil {
			t.Fatal(err)
		}
		w.agents[0].Change(lost.ID, func(s *session.Session) {
			s.Wait = &session.Wait{Code: session.CodeWaitResources, Message: "Needs 1 of 8 CPUs."}
		})
		time.Sleep(5 * time.Second)
		now, _, err := w.Get(t.Context(), "anywhere")
		if err != nil || now.Agent != "lab" || now.From != lost.ID || now.Key != "k" {
			t.Fatalf("it is %+v, %v", now, err)
		}
		for _, ended := range []bool{false, true} {
			if ended { // and its name is free
				w.agents[1].Change(now.ID, func(s *session.Session) { s.Status = session.Terminated })
				synctest.Wait()
			}
			asks.Agent = "local"
			if again, err := w.Launch(t.Context(), hub.LaunchRequest{Key: "k", Spec: asks}); err != nil ||
				again.ID != now.ID {
				t.Errorf("asked again when it had ended is %t: %+v, %v", ended, again, err)
			}
		}
		if other, err := w.Launch(t.Context(), hub.LaunchRequest{Key: "l", Spec: asks}); err != nil ||
			other.ID == now.ID || other.Agent != "local" {
			t.Errorf("with another key: %+v, %v", other, err)
		}
	})
}

// TestALaunchIsRepeatedWhereItWasSent asks a hub that was started again, while the machine of the launch is away.
func TestALaunchIsRepeatedWhereItWasSent(t *testing.T) {
	w := open(t, "local", "lab")
	for _, a := range w.agents {
		a.SetImages(session.Image{Refs: []string{"python:3.12"}})
	}
	req := hub.LaunchRequest{Key: "k", Spec: spec("python:3.12")}
	first, err := w.Launch(t.Context(), req)
	if err != nil || first.Agent != "local" {
		t.Fatal(first, err)
	}
	again := openOn(t, w.shelf, []hub.Member{{Name: "local", Local: true, Agent: w.agents[0].Agent()},
		{Name: "lab", Agent: w.agents[1].Agent()}})
	w.agents[0].SetDown(true)
	if s, err := again.Launch(t.Context(), req); err == nil {
		t.Errorf("it was launched again on %s", s.Agent)
	}
	if s, err := again.Launch(t.Context(), hub.LaunchRequest{Key: "l", Spec: req.Spec}); err != nil ||
		s.Agent != "lab" {
		t.Errorf("another launch: %+v, %v", s, err)
	}
	w.agents[0].SetDown(false)
	if s, err := again.Launch(t.Context(), req); err != nil || s.ID != first.ID {
		t.Errorf("when it is back: %+v, %v", s, err)
	}
}
