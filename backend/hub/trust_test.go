package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// settled waits until the hub has taken in everything that an agent told before.
func (f *fleet) settled(t *testing.T) {
	t.Helper()
	const mark = session.ID("zzzzzzzzzzzz")
	f.lab.Put(session.Session{ID: mark, Name: "mark", Status: session.Running})
	f.awaitShown(t, mark)
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	f.lab.Remove(mark)
	for shows(f, mark) {
		next(t, watcher)
	}
}

func shows(f *fleet, id session.ID) bool {
	_, known := f.Keeper(id)
	return known
}

// awaitShown waits until the hub knows a session.
func (f *fleet) awaitShown(t *testing.T, id session.ID) {
	t.Helper()
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	for !shows(f, id) {
		next(t, watcher)
	}
}

// TestHostileAgentTakesNothingOver has an agent claim sessions and folders of
// this computer: it would get their terminals, files and ends.
func TestHostileAgentTakesNothingOver(t *testing.T) {
	const mine = session.ID("aaaaaaaaaaaa")
	for name, attack := range map[string]func(*testing.T, *fleet){
		"by an event": func(_ *testing.T, f *fleet) {
			f.lab.Put(session.Session{ID: mine, Name: "taken", Status: session.Running, Owner: "eve"})
		},
		"by a removal": func(_ *testing.T, f *fleet) { id := mine; f.lab.Tell(session.Event{Removed: &id}) },
		"by samples": func(_ *testing.T, f *fleet) {
			f.lab.Tell(session.Event{Usage: []session.Usage{{Session: mine, Pids: 666}}})
		},
		"by a list": func(t *testing.T, f *fleet) {
			f.lab.Put(session.Session{ID: mine, Name: "taken", Status: session.Running})
			all, err := f.List(t.Context(), "", session.Filter{})
			if err != nil || len(all) != 1 || all[0].Agent != "local" {
				t.Errorf("the list has %+v, %v", all, err)
			}
		},
		"by its name": func(t *testing.T, f *fleet) {
			f.lab.Put(session.Session{ID: mine, Name: "taken", Status: session.Running})
			if _, _, err := f.Find(t.Context(), "taken"); session.CodeOf(err).Detail() != session.DetailNotFound {
				t.Errorf("it was found: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			f.local.Put(session.Session{ID: mine, Name: "train", Status: session.Running, Owner: "ada"})
			f.awaitShown(t, mine)
			f.add(t)
			attack(t, f)
			f.settled(t)
			keeper, known := f.Keeper(mine)
			s, _, err := f.Get(t.Context(), string(mine))
			if !known || keeper.Name != "local" || err != nil || s.Name != "train" {
				t.Errorf("the session is kept by %q (%v) and is %q, %v", keeper.Name, known, s.Name, err)
			}
			if u := f.View(session.Session{ID: mine}).Usage; u != nil {
				t.Errorf("samples of %+v came", u)
			}
			a, err := f.Agent("lab")
			if err != nil || a.Untrusted == nil || a.Untrusted.Error.Code != "agent_reply_invalid" ||
				!strings.Contains(a.Untrusted.Error.Message, "local") {
				t.Errorf("the agent is %+v, %v", a.Untrusted, err)
			}
			if local, _ := f.Agent("local"); local.Untrusted != nil {
				t.Errorf("the agent of this computer is distrusted: %+v", local.Untrusted)
			}
		})
	}
}

// TestHostileAgentDoesNotDecideWhoWaits has an agent tell of sessions that wait
// for one of this computer.
func TestHostileAgentDoesNotDecideWhoWaits(t *testing.T) {
	f := newFleet(t)
	f.local.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "train", Status: session.Running})
	f.awaitShown(t, "aaaaaaaaaaaa")
	f.add(t)
	f.lab.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "waits", Status: session.Pending,
		Resolved: session.Resolved{DependsOn: []session.ID{"aaaaaaaaaaaa"}}})
	f.settled(t)
	if ids := f.View(session.Session{ID: "aaaaaaaaaaaa"}).Dependents; len(ids) > 0 {
		t.Errorf("%v wait for it", ids)
	}
}

// TestHostileAgentFillsNoMemory has an agent tell of sessions without end, each
// with long texts.
func TestHostileAgentFillsNoMemory(t *testing.T) {
	f := newFleet(t)
	f.add(t)
	long := strings.Repeat("x", 16<<20)
	for i := range 40 {
		f.lab.Put(session.Session{ID: session.ID(fmt.Sprintf("cccccccccc%02d", i)), Name: "many",
			Status: session.Running, Spec: session.Spec{Command: long}})
	}
	a := f.awaitDistrust(t)
	if a.Live > 16 {
		t.Errorf("%d sessions of 16 MiB each are kept", a.Live)
	}
}

// TestHostileAgentShowsNoEndlessNotices has an agent end sessions of the person
// without end, each of which is news.
func TestHostileAgentShowsNoEndlessNotices(t *testing.T) {
	f := newFleet(t)
	f.add(t)
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	end := func(id string) {
		s := session.Session{ID: session.ID(id), Name: "many", Owner: "ada", Status: session.Running,
			Spec:      session.Spec{Type: session.Batch},
			CreatedAt: time.Now()}
		f.lab.Put(s)
		s.Status, s.Result = session.Terminated, session.ResultFailure
		f.lab.Put(s)
	}
	count := func(patience time.Duration) (notices int) {
		quiet, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			event, err := watcher.Next(quiet)
			if err != nil {
				return notices
			}
			if event.Notice != nil {
				notices++
			}
		}
	}
	shown := 0
	for n := 0; shown == 0; n++ { // what ended before notices are followed is no news
		end(fmt.Sprintf("bbbbbbbbb%03d", n))
		shown += count(100 * time.Millisecond)
	}
	for n := range 200 {
		end(fmt.Sprintf("ccccccccc%03d", n))
	}
	for tries := 0; shown < 30 && tries < 300; tries++ {
		shown += count(100 * time.Millisecond)
	}
	if shown += count(300 * time.Millisecond); shown != 30 {
		t.Errorf("%d notices are shown", shown)
	}
}

func (f *fleet) awaitDistrust(t *testing.T) hub.Agent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watcher := f.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	for {
		a, err := f.Agent("lab")
		if err != nil {
			t.Fatal(err)
		}
		if a.Untrusted != nil {
			return a
		}
		if _, err := watcher.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
