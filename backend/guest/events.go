package guest

import (
	"context"
	"net"
	"sync"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// eventState is what events report. A stream sends the difference to what it has sent, so it needs no queue.
type eventState struct {
	ready   bool
	exit    *int
	oom     int
	trouble *session.Cause
	behind  int // streams whose callers have not closed them
}

type events struct {
	mu      sync.Mutex // guards the fields below
	state   eventState
	changed chan struct{} // closed and replaced by each change
}

func (e *events) change(apply func(*eventState)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	apply(&e.state)
	close(e.changed)
	e.changed = make(chan struct{})
}

// look returns the state and a channel that the next change closes.
func (e *events) look() (eventState, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state, e.changed
}

// next returns the events between what a stream has sent and the current state.
func next(sent, state eventState) []link.Event {
	var list []link.Event
	if state.trouble != nil && sent.trouble == nil {
		list = append(list, link.Event{Error: state.trouble})
	}
	if state.ready && !sent.ready {
		list = append(list, link.Event{Ready: true})
	}
	if state.oom != sent.oom {
		list = append(list, link.Event{OOM: state.oom})
	}
	if state.exit != nil && sent.exit == nil {
		list = append(list, link.Event{Exit: state.exit})
	}
	return list
}

func (g *Guest) sendEvents(ctx context.Context, stream net.Conn) error {
	g.events.change(func(s *eventState) { s.behind++ })
	defer g.events.change(func(s *eventState) { s.behind-- })
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	gone := make(chan struct{})
	go func() { // the caller sends nothing more, and closes the stream when it has read the exit
		defer close(gone)
		_, _ = stream.Read(make([]byte, 1))
	}()
	var sent eventState
	for {
		state, changed := g.events.look()
		for _, event := range next(sent, state) {
			if link.WriteMessage(stream, event) != nil {
				return nil
			}
		}
		sent = state
		if state.ready {
			g.watch()
		}
		select {
		case <-changed:
		case <-gone:
			return nil
		case <-ctx.Done():
			_ = stream.Close()
			<-gone
			return nil
		}
	}
}

// Flush waits until whoever listens to events has read the exit, if there is one. That it is written is not enough: it
// may still be inside a process of the container, which ends with the guest.
func (g *Guest) Flush(ctx context.Context) error {
	for {
		state, changed := g.events.look()
		if state.exit == nil || state.behind == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
