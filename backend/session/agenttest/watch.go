package agenttest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"slipway/backend/session"
)

// watcher follows an agent as a hub does: it resumes after the last event. Each must come once and in order.
type watcher struct {
	s      *suite
	cursor session.Cursor
	resets int
	events []session.Event
}

var errEnough = errors.New("agenttest: enough was seen")

// follow watches until enough reports true or ctx ends, again if that is lost.
func (w *watcher) follow(ctx context.Context, enough func(session.Event) bool) error {
	for {
		err := w.s.agent.Watch(ctx, w.cursor, func(e session.Event) error {
			if err := w.take(e); err != nil {
				return err
			}
			if enough(e) {
				return errEnough
			}
			return nil
		})
		switch {
		case errors.Is(err, errEnough):
			return nil
		case !w.s.Mortal || !lost(err) || ctx.Err() != nil:
			return err
		}
		w.s.pause()
	}
}

// parts is the number of things in an event.
func parts(e session.Event) int {
	parts := 0
	for _, set := range []bool{e.Reset != nil, e.Session != nil, e.Removed != nil, e.Usage != nil, e.Machine != nil,
		e.Devices != nil} {
		if set {
			parts++
		}
	}
	return parts
}

// take checks an event against those before it.
func (w *watcher) take(e session.Event) error {
	switch {
	case parts(e) > 1: // 0: a later event replaces it
		return errors.New("an event is of one kind")
	case e.Reset != nil:
		w.resets++
	case w.cursor.Epoch != e.Epoch:
		return errors.New("another epoch begins with a reset")
	case e.Seq != w.cursor.Seq+1:
		w.s.Errorf("event %d came after %d", e.Seq, w.cursor.Seq)
		return errors.New("events come in order, each once")
	}
	w.cursor = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
	w.events = append(w.events, e)
	return nil
}

// about returns a session in an event, also in a reset.
func about(e session.Event, id session.ID) *session.Session {
	if e.Session != nil && e.Session.ID == id {
		return e.Session
	}
	if e.Reset != nil {
		for i := range e.Reset.Sessions {
			if e.Reset.Sessions[i].ID == id {
				return &e.Reset.Sessions[i]
			}
		}
	}
	return nil
}

// endOf reports whether an event is about the end of a session.
func endOf(id session.ID) func(session.Event) bool {
	return func(e session.Event) bool {
		x := about(e, id)
		return x != nil && x.Status.Terminal()
	}
}

func caseWatch(s *suite) {
	w := &watcher{s: s}
	if err := w.follow(s.ctx, func(e session.Event) bool { return e.Reset != nil }); err != nil || w.resets != 1 ||
		w.events[0].Reset.Machine.Agent == "" {
		s.Fatalf("it began with %+v, %v", w.events, err)
	}
	var all sync.WaitGroup
	ids := make(chan session.ID, 3)
	for range cap(ids) {
		all.Go(func() { ids <- s.launch(session.Spec{Type: session.Batch, Command: "echo watched"}).ID })
	}
	all.Wait()
	close(ids)
	for id := range ids {
		if !slices.ContainsFunc(w.events, endOf(id)) {
			s.ok(w.follow(s.ctx, endOf(id)))
		}
		w.checkCourse(id)
	}
	if w.resets != 1 {
		s.Errorf("%d resets in one run of an agent", w.resets)
	}
}

// checkCourse checks the events of one session: no revision precedes an earlier one, and an end is final. An agent may
// leave out a revision that a later one overtakes, even the first.
func (w *watcher) checkCourse(id session.ID) {
	w.s.Helper()
	var last *session.Session
	for _, e := range w.events {
		x := about(e, id)
		if x == nil {
			continue
		}
		if last != nil && x.Revision < last.Revision {
			w.s.Errorf("revision %d of %s came after %d", x.Revision, id, last.Revision)
		}
		if last != nil && last.Status.Terminal() && x.Status != last.Status {
			w.s.Errorf("%s went from %s to %s", id, last.Status, x.Status)
		}
		last = x
	}
}

func caseWatchResumes(s *suite) {
	whole := &watcher{s: s}
	s.ok(whole.follow(s.ctx, func(e session.Event) bool { return e.Reset != nil }))
	id := s.launch(session.Spec{Type: session.Batch, Command: "true"}).ID
	done := endOf(id)
	s.ok(whole.follow(s.ctx, done))
	for _, from := range []int{0, len(whole.events) / 2, len(whole.events) - 2} {
		after := whole.events[from]
		w := &watcher{s: s, cursor: session.Cursor{Epoch: after.Epoch, Seq: after.Seq}}
		s.ok(w.follow(s.ctx, done))
		if w.resets != 0 || len(w.events) != len(whole.events)-from-1 {
			s.Fatalf("after event %d came %d events with %d resets, want %d", from, len(w.events), w.resets,
				len(whole.events)-from-1)
		}
		for i, e := range w.events {
			was := whole.events[from+1+i]
			if parts(e) == 0 && (was.Usage != nil || was.Devices != nil) {
				continue // outdated meanwhile
			}
			if got, want := asJSON(s, e), asJSON(s, was); got != want {
				s.Errorf("event %d is %s, was %s", e.Seq, got, want)
			}
		}
	}
	stale := &watcher{s: s, cursor: session.Cursor{Epoch: "another", Seq: 3}}
	if err := stale.follow(s.ctx, func(session.Event) bool { return true }); err != nil || stale.resets != 1 {
		s.Errorf("a cursor of another run: %d resets, %v", stale.resets, err)
	}
}

func asJSON(s *suite, value any) string {
	s.Helper()
	text, err := json.Marshal(value)
	s.ok(err)
	return string(text)
}

func caseWatchEnds(s *suite) {
	own := errors.New("of the watcher")
	for {
		err := s.agent.Watch(s.ctx, session.Cursor{}, func(session.Event) error { return own })
		if errors.Is(err, own) {
			break
		}
		if !s.Mortal || !lost(err) || s.ctx.Err() != nil {
			s.Fatalf("it ended with %v", err)
		}
		s.pause()
	}
	ctx, cancel := context.WithCancel(s.ctx)
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	ended := make(chan error, 1)
	go func() {
		w := &watcher{s: s}
		ended <- w.follow(ctx, func(session.Event) bool { begin(); return false })
	}()
	receive(s, began, "there was no event")
	cancel()
	if err := receive(s, ended, "it continues without its context"); !errors.Is(err, context.Canceled) {
		s.Errorf("it ended with %v", err)
	}
}

func caseWatchSlow(s *suite) {
	held, entered := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(s.ctx)
	var stalled sync.WaitGroup
	stalled.Go(func() {
		enter := sync.OnceFunc(func() { close(entered) })
		w := &watcher{s: s}
		_ = w.follow(ctx, func(session.Event) bool { // ends with ctx
			enter()
			<-held
			return false
		})
	})
	defer func() { close(held); cancel(); stalled.Wait() }()
	receive(s, entered, "there was no event")
	id := s.launch(session.Spec{Type: session.Batch, Command: "true"}).ID
	quick := &watcher{s: s}
	if err := quick.follow(s.ctx, endOf(id)); err != nil {
		s.Errorf("another watcher: %v", err)
	}
	s.awaitEnd(id)
}
