package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

func launch(t *testing.T, w world, s session.Spec) session.Session {
	t.Helper()
	launched, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: s})
	if err != nil {
		t.Fatal(err)
	}
	return launched
}

func images(recents []hub.Recent) string {
	var names []string
	for _, r := range recents {
		names = append(names, r.Spec.Image)
	}
	return strings.Join(names, " ")
}

func ptr[T any](v T) *T { return &v }

func TestRecentsKeepTheFiveNewestAndAllPinned(t *testing.T) {
	w := open(t, "local")
	launch(t, w, spec("p:1"))
	if _, err := w.UpdateRecent(w.Recents()[0].ID, hub.RecentUpdate{Pinned: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		launch(t, w, spec(fmt.Sprintf("a:%d", i)))
	}
	if got := images(w.Recents()); got != "a:7 a:6 a:5 a:4 a:3 p:1" {
		t.Fatalf("recents %q", got)
	}
	if got := images(openOn(t, w.shelf, nil).Recents()); got != "a:7 a:6 a:5 a:4 a:3 p:1" {
		t.Fatalf("after a restart %q", got)
	}
}

func TestAgentsKnowTheSessionsOfPinnedLaunches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.run(t)
		want := func(ids ...session.ID) {
			t.Helper()
			synctest.Wait()
			if got, _ := w.agents[0].Preferred(); !slices.Equal(got, ids) {
				t.Errorf("it knows %v, want %v", got, ids)
			}
		}
		first := launch(t, w, spec("a:1"))
		synctest.Wait()
		if _, calls := w.agents[0].Preferred(); calls > 0 {
			t.Error("an agent was called although nothing is pinned")
		}
		if _, err := w.UpdateRecent(w.Recents()[0].ID, hub.RecentUpdate{Pinned: ptr(true)}); err != nil {
			t.Fatal(err)
		}
		want(first.ID)
		again := launch(t, w, spec("a:1"))
		want(again.ID)
		w.agents[0].SetDown(true)
		w.agents[0].Restart("epoch-2")
		w.agents[0].Forget()
		w.agents[0].SetDown(false)
		time.Sleep(10 * time.Second)
		want(again.ID)
		if err := w.DeleteRecent(w.Recents()[0].ID); err != nil {
			t.Fatal(err)
		}
		want()
	})
}

func TestTheSameSpecLaunchedAgainMovesUp(t *testing.T) {
	w := open(t, "local")
	launch(t, w, spec("a:1"))
	id := w.Recents()[0].ID
	if _, err := w.UpdateRecent(id, hub.RecentUpdate{Name: ptr("my experiment"), Pinned: ptr(true)}); err != nil {
		t.Fatal(err)
	}
	launch(t, w, spec("b:1"))
	again := spec("a:1")
	again.Resources.CPU = 1 // the default, written out
	launch(t, w, again)
	recents := w.Recents()
	if images(recents) != "a:1 b:1" || recents[0].ID != id || recents[0].Name != "my experiment" || !recents[0].Pinned {
		t.Fatalf("recents %+v", recents)
	}
}

func TestSecretsReachNeitherRecentsNorTheShelf(t *testing.T) {
	w := open(t, "local")
	s := spec("a:1")
	s.Env = []session.EnvVar{{Name: "HF_TOKEN", Value: "hush-hush"}, {Name: "EPOCHS", Value: "3"}}
	launch(t, w, s)
	env := w.Recents()[0].Spec.Env
	if env[0].Value != "" || env[1].Value != "3" {
		t.Fatalf("recent has %+v", env)
	}
	if strings.Contains(w.shelf.Raw("hub.recents"), "hush") {
		t.Fatal("the secret was written to the shelf")
	}
	t.Run("another value of the secret is the same spec", func(t *testing.T) {
		s.Env[0].Value = "other"
		launch(t, w, s)
		if n := len(w.Recents()); n != 1 {
			t.Fatalf("%d entries, want 1", n)
		}
	})
}

func TestRecentsAreToldToWatchers(t *testing.T) {
	w := open(t, "local")
	w.run(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	next(t, watcher)
	launch(t, w, spec("a:1"))
	for {
		if e := next(t, watcher); e.Recents != nil {
			if images(*e.Recents) != "a:1" {
				t.Fatalf("told %+v", *e.Recents)
			}
			return
		}
	}
}

func TestRecentFaults(t *testing.T) {
	w := open(t, "local")
	launch(t, w, spec("a:1"))
	id := w.Recents()[0].ID
	for name, update := range map[string]hub.RecentUpdate{
		"an empty name": {Name: ptr("  ")}, "a long name": {Name: ptr(strings.Repeat("x", 65))},
		"a control character": {Name: ptr("a\x1bb")},
	} {
		if _, err := w.UpdateRecent(id, update); session.CodeOf(err) != "session_update_invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.UpdateRecent("none", hub.RecentUpdate{}); session.CodeOf(err) != "recipe_read_not-found" {
		t.Errorf("unknown entry: %v", err)
	}
	if err := w.DeleteRecent("none"); session.CodeOf(err) != "recipe_read_not-found" {
		t.Errorf("unknown entry: %v", err)
	}
	if err := w.DeleteRecent(id); err != nil || len(w.Recents()) != 0 {
		t.Errorf("delete: %v, %d left", err, len(w.Recents()))
	}
	t.Run("a launch does not fail because the history cannot be saved", func(t *testing.T) {
		w.shelf.Fail(errors.New("the disk is full"))
		if _, err := w.Launch(t.Context(), hub.LaunchRequest{Spec: spec("b:1")}); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a broken history begins anew", func(t *testing.T) {
		shelf := &hubtest.Shelf{}
		shelf.SetRaw("hub.recents", []byte(`[{"id":`))
		if n := len(openOn(t, shelf, nil).Recents()); n != 0 {
			t.Fatalf("%d entries", n)
		}
	})
}

func TestAnyNumberCanBePinned(t *testing.T) {
	w := open(t, "local")
	for i := range 110 {
		launch(t, w, spec(fmt.Sprintf("a:%d", i)))
		if _, err := w.UpdateRecent(w.Recents()[0].ID, hub.RecentUpdate{Pinned: ptr(true)}); err != nil {
			t.Fatalf("pin %d: %v", i, err)
		}
	}
	if n := len(w.Recents()); n != 110 {
		t.Errorf("%d are kept", n)
	}
}
