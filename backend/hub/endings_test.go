package hub_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

const theOne = session.ID("aaaaaaaaaaaa")

// inBubble runs a test of a hub over one agent with a running session.
func inBubble(t *testing.T, test func(t *testing.T, w world, stop func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := open(t, "local")
		w.agents[0].Put(session.Session{ID: theOne, Name: "train", Owner: "ada", Status: session.Running})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		stop := func() {
			cancel()
			<-done
		}
		defer stop()
		w.WaitHeard(t.Context())
		test(t, w, stop)
	})
}

// seen is a session as the hub shows it now.
func (w world) seen(t *testing.T) hub.Session {
	t.Helper()
	synctest.Wait()
	s, _, err := w.Get(t.Context(), string(theOne))
	if err != nil {
		t.Fatal(err)
	}
	return w.View(s)
}

func later(t *testing.T, w world) {
	t.Helper()
	if _, err := w.Terminate(t.Context(), string(theOne), false, true); err != nil {
		t.Fatal(err)
	}
}

func TestAnEndIsSentAfterItsTimeAndCanBeUndoneBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, w world, _ func()) {
		watcher := w.Watch(hub.Cursor{}, false)
		defer watcher.Close()
		next(t, watcher)
		later(t, w)
		if e := next(t, watcher); e.Session == nil || e.Session.Ending == nil ||
			!e.Session.Ending.At.Equal(time.Now().Add(hub.UndoTime)) || e.Session.Status != session.Running {
			t.Fatalf("event %+v, want the session with its end", e)
		}
		time.Sleep(hub.UndoTime - time.Second)
		later(t, w) // asking again does not wait longer
		if s, err := w.UndoTerminate(t.Context(), "train"); err != nil || s.Status != session.Running {
			t.Fatalf("undone: %+v, %v", s, err)
		}
		if e := next(t, watcher); e.Session == nil || e.Session.Ending != nil {
			t.Fatalf("event %+v, want the session without an end", e)
		}
		time.Sleep(2 * hub.UndoTime)
		if s := w.seen(t); s.Status != session.Running {
			t.Fatalf("%s after it was undone", s.Status)
		}
		later(t, w)
		time.Sleep(hub.UndoTime - time.Millisecond)
		if s := w.seen(t); s.Status != session.Running || s.Ending == nil {
			t.Fatalf("%s, %+v too early", s.Status, s.Ending)
		}
		time.Sleep(time.Millisecond)
		if s := w.seen(t); s.Status != session.Terminated || s.Reason != session.ReasonUser || s.Ending != nil {
			t.Fatalf("%+v, want it terminated", s)
		}
		if _, err := w.UndoTerminate(t.Context(), string(theOne)); session.CodeOf(err) != session.CodeSessionConflict {
			t.Fatalf("undone too late: %v", err)
		}
	})
}

func TestEndsAreSentAtOnceByForceOrOnRequest(t *testing.T) {
	for _, forced := range []bool{true, false} {
		inBubble(t, func(t *testing.T, w world, _ func()) {
			later(t, w)
			if _, err := w.Terminate(t.Context(), string(theOne), forced, forced); err != nil {
				t.Fatal(err)
			}
			if s := w.seen(t); s.Status != session.Terminated || s.Ending != nil {
				t.Fatalf("forced %t: %+v", forced, s)
			}
			time.Sleep(2 * hub.UndoTime) // its timer does nothing
		})
	}
}

func TestWhatWaitsForItsEndIsTerminatedWhenTheHubStops(t *testing.T) {
	inBubble(t, func(t *testing.T, w world, stop func()) {
		later(t, w)
		began := time.Now()
		stop()
		s, err := w.agents[0].Get(t.Context(), theOne)
		if err != nil || s.Status != session.Terminated || time.Since(began) > time.Second {
			t.Fatalf("%+v, %v after %s", s, err, time.Since(began))
		}
		if _, err := w.Terminate(t.Context(), string(theOne), false, true); err != nil {
			t.Fatal(err) // it has ended
		}
		w.agents[0].Put(session.Session{ID: "bbbbbbbbbbbb", Status: session.Running})
		if _, err := w.Terminate(t.Context(), "bbbbbbbbbbbb", false, true); session.CodeOf(err) !=
			session.CodeServerUnavailable {
			t.Fatalf("a stopped hub: %v", err)
		}
	})
}

func TestAnEndThatFailsIsShown(t *testing.T) {
	inBubble(t, func(t *testing.T, w world, _ func()) {
		later(t, w)
		w.agents[0].SetDown(true)
		time.Sleep(2 * hub.UndoTime)
		w.agents[0].SetDown(false)
		time.Sleep(time.Minute)
		s := w.seen(t)
		if s.Status != session.Running || s.Ending == nil || s.Ending.Error == nil ||
			s.Ending.Error.Code.Detail() != session.DetailUnavailable {
			t.Fatalf("%s, %+v, want why it failed", s.Status, s.Ending)
		}
		later(t, w) // again
		if s := w.seen(t); s.Ending == nil || s.Ending.Error != nil {
			t.Fatalf("%+v, want another try", s.Ending)
		}
		w.agents[0].SetDown(true)
		time.Sleep(2 * hub.UndoTime)
		w.agents[0].SetDown(false)
		time.Sleep(time.Minute)
		if _, err := w.UndoTerminate(t.Context(), string(theOne)); err != nil || w.seen(t).Ending != nil {
			t.Fatalf("a failure stays: %v", err)
		}
	})
}

func TestAnAgentThatIsNotReachedRefusesAnEndAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w world, _ func()) {
		w.agents[0].SetDown(true)
		if _, err := w.Terminate(t.Context(), string(theOne), false, true); session.CodeOf(err).Detail() !=
			session.DetailUnavailable {
			t.Fatalf("no failure: %v", err)
		}
	})
}

func TestASessionThatEndsByItselfNeedsNoEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w world, _ func()) {
		later(t, w)
		w.agents[0].Change(theOne, func(s *session.Session) {
			s.Status, s.Reason = session.Terminated, session.ReasonFinished
		})
		time.Sleep(2 * hub.UndoTime)
		if s := w.seen(t); s.Reason != session.ReasonFinished || s.Ending != nil {
			t.Fatalf("%+v", s)
		}
	})
}

// home lists the same names for every session.
type home struct {
	session.Files
	names []session.FilePath
	err   error
}

func (h home) ListFiles(context.Context, session.Place, session.ListRequest) (session.FileListing, error) {
	listing := session.FileListing{Path: session.Home}
	for _, name := range h.names {
		listing.Entries = append(listing.Entries, session.FileInfo{Name: name})
	}
	return listing, h.err
}

func TestLossNamesWhatIsDeletedAndCancelled(t *testing.T) {
	w := open(t, "local")
	a := w.agents[0]
	a.Files = home{names: []session.FilePath{".cache", "a.txt", "data", "runs", "shared"}}
	w.Hub = openOn(t, w.shelf, []hub.Member{{Name: "local", Local: true, Agent: a.Agent()}})
	after := func(id session.ID, name string, status session.Status, on ...session.ID) {
		a.Put(session.Session{ID: id, Name: name, Status: status, Resolved: session.Resolved{DependsOn: on}})
	}
	a.Put(session.Session{ID: theOne, Name: "train", Status: session.Running,
		Spec:       session.Spec{Mounts: []session.Mount{{Source: "/srv/data"}, {Folder: "f", Target: "runs/old"}}},
		Allocation: session.Allocation{Folders: []session.FolderMount{{Target: "/home/work/shared"}}}})
	after("bbbbbbbbbbbb", "eval", session.Pending, theOne)
	after("cccccccccccc", "report", session.Pending, "bbbbbbbbbbbb", theOne)
	after("dddddddddddd", "old", session.Cancelled, theOne)
	w.run(t)
	loss, err := w.Loss(t.Context(), "train")
	if err != nil || loss.Unknown || loss.Count != 1 || !slices.Equal(loss.Files, []string{"a.txt"}) ||
		!slices.Equal(loss.Cancels, []hub.Cancelled{{ID: "bbbbbbbbbbbb", Name: "eval"},
			{ID: "cccccccccccc", Name: "report"}}) {
		t.Fatalf("%+v, %v", loss, err)
	}
	t.Run("of one that waits", func(t *testing.T) {
		loss, err := w.Loss(t.Context(), "eval")
		if err != nil || loss.Count != 0 || loss.Unknown || len(loss.Cancels) != 1 {
			t.Fatalf("%+v, %v", loss, err)
		}
	})
	t.Run("with many files", func(t *testing.T) {
		a.Files = home{names: slices.Repeat([]session.FilePath{"x"}, 25)}
		again := openOn(t, &hubtest.Shelf{}, []hub.Member{{Name: "local", Local: true, Agent: a.Agent()}})
		if loss, err := again.Loss(t.Context(), string(theOne)); err != nil || loss.Count != 25 ||
			len(loss.Files) != 20 {
			t.Fatalf("%+v, %v", loss, err)
		}
	})
	t.Run("without an answer", func(t *testing.T) {
		a.Files = home{err: &session.Error{Code: "file_list_unavailable"}}
		again := openOn(t, &hubtest.Shelf{}, []hub.Member{{Name: "local", Local: true, Agent: a.Agent()}})
		if loss, err := again.Loss(t.Context(), string(theOne)); err != nil || !loss.Unknown {
			t.Fatalf("%+v, %v", loss, err)
		}
	})
}
