package hub_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/notify"
	"slipway/backend/session"
)

// desktop keeps what it is asked to show, or refuses it.
type desktop struct {
	shown  []notify.Notice
	broken bool
}

func (d *desktop) Available(context.Context) bool { return !d.broken }

func (d *desktop) Show(_ context.Context, n notify.Notice) error {
	if d.broken {
		return errors.New("there is no bus")
	}
	d.shown = append(d.shown, n)
	return nil
}

// afterTheEnd runs a hub with a batch session that ends, and returns what its pages
// are told to show.
func afterTheEnd(t *testing.T, d hub.Notifier) *notify.Notice {
	t.Helper()
	agent := hubtest.New("local")
	h, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "local", Local: true, Agent: agent.Agent()}},
		Shelf: &hubtest.Shelf{}, Settings: noSettings(t), Notifier: d, Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	running := session.Session{ID: "aaaaaaaaaaaa", Name: "train", Owner: "ada", Status: session.Running,
		Spec: session.Spec{Type: session.Batch}, CreatedAt: time.Now()}
	agent.Put(running)
	go h.Run(t.Context())
	synctest.Wait()
	watcher := h.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	if _, err := watcher.Next(t.Context()); err != nil { // the snapshot
		t.Fatal(err)
	}
	running.Status, running.Result = session.Terminated, session.ResultSuccess
	agent.Put(running)
	synctest.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for {
		event, err := watcher.Next(ctx)
		if err != nil || event.Notice != nil {
			return event.Notice
		}
	}
}

func TestWhatEndsIsToldOnTheDesktop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desktop{}
		if page := afterTheEnd(t, d); page != nil {
			t.Errorf("the pages were told too: %+v", page)
		}
		if len(d.shown) != 1 || d.shown[0].Title != `"train" has finished` {
			t.Errorf("shown %+v", d.shown)
		}
	})
}

func TestWhatNoDesktopShowsIsLeftToThePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if page := afterTheEnd(t, &desktop{broken: true}); page == nil || page.Session != "aaaaaaaaaaaa" {
			t.Errorf("the pages were told %+v", page)
		}
	})
}

// TestOnesOwnSessionsElsewhereAreTold has the user be known by another name on another machine.
func TestOnesOwnSessionsElsewhereAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, agent := &desktop{}, hubtest.New("lab")
		agent.Owner = "ada.lovelace"
		h, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "lab", Agent: agent.Agent()}},
			Shelf: &hubtest.Shelf{}, Settings: noSettings(t), Notifier: d, Owner: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		go h.Run(t.Context())
		for id, owner := range map[session.ID]string{"aaaaaaaaaaaa": "ada.lovelace", "bbbbbbbbbbbb": "ada"} {
			s := session.Session{ID: id, Name: owner, Owner: owner, Status: session.Running,
				Spec: session.Spec{Type: session.Batch}, CreatedAt: time.Now()}
			agent.Put(s)
			synctest.Wait()
			s.Status, s.Result = session.Terminated, session.ResultSuccess
			agent.Put(s)
			synctest.Wait()
		}
		if len(d.shown) != 1 || d.shown[0].Title != `"ada.lovelace" has finished` {
			t.Errorf("shown %+v", d.shown)
		}
	})
}

// muteDesktop answers nothing.
type muteDesktop struct{ desktop }

func (*muteDesktop) Available(ctx context.Context) bool {
	<-ctx.Done()
	return false
}

func TestADesktopThatDoesNotAnswerIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := hub.Open(hub.Config{
			Members: []hub.Member{{Name: "local", Local: true, Agent: hubtest.New("local").Agent()}},
			Shelf:   &hubtest.Shelf{}, Settings: noSettings(t), Notifier: &muteDesktop{}, Owner: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		if h.Notifies(context.Background()) {
			t.Error("it shows notices")
		}
	})
}

func TestAReminderIsForOneStartWhateverTheSettingsSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent, shelf, d := hubtest.New("local"), &hubtest.Shelf{}, &desktop{}
		const another = session.ID("bbbbbbbbbbbb")
		begin := func() (*hub.Hub, func()) {
			h, err := hub.Open(hub.Config{Members: []hub.Member{{Name: "local", Local: true, Agent: agent.Agent()}},
				Shelf: shelf, Settings: noSettings(t), Notifier: d, Owner: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			quiet := h.Settings()
			quiet.Notifications = false
			if err := h.SaveSettings(quiet); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				h.Run(ctx)
			}()
			synctest.Wait()
			return h, func() {
				cancel()
				<-done
			}
		}
		starts := func(id session.ID, status session.Status) {
			agent.Change(id, func(s *session.Session) { s.Status, s.StartedAt = status, new(time.Now()) })
			synctest.Wait()
		}
		for id, owner := range map[session.ID]string{theOne: "ada", another: "bob"} {
			agent.Put(session.Session{ID: id, Name: owner + "s", Owner: owner, Status: session.Pending,
				CreatedAt: time.Now()})
		}
		h, stop := begin()
		for _, id := range []session.ID{theOne, another} {
			if _, err := h.Remind(t.Context(), string(id), true); err != nil {
				t.Fatal(err)
			}
		}
		if s := h.View(session.Session{ID: another}); !s.Reminder {
			t.Error("it is not shown")
		}
		starts(another, session.Running)
		starts(another, session.Running)
		if len(d.shown) != 1 || d.shown[0].Title != `"bobs" runs now` {
			t.Fatalf("shown %+v", d.shown)
		}
		if _, err := h.Remind(t.Context(), string(another), true); session.CodeOf(err) != session.CodeSessionConflict {
			t.Errorf("a reminder of one that runs: %v", err)
		}
		stop()
		starts(theOne, session.Running) // while nobody looks
		_, stop = begin()
		stop()
		if len(d.shown) != 2 || d.shown[1].Title != `"adas" runs now` {
			t.Fatalf("shown %+v", d.shown)
		}
		_, stop = begin()
		stop()
		if len(d.shown) != 2 {
			t.Errorf("reminded again: %+v", d.shown)
		}
	})
}
