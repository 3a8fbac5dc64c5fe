package guest

import (
	"context"
	"net"
	"sync"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// eventState is what events tell about. Streams send what differs from what
// they have sent, so that none is missed and none is kept.
type eventState struct {
	ready     bool
	exit      *int
	oom       int
	trouble   *session.Cause
	terminals int // counts changes of the list
	services  int
}

// events holds the state and wakes the streams.
type events struct {
	mu      sync.Mutex // guards what follows
	state   eventState
	changed chan struct{} // closed at the next change; nil while nobody waits
	streams map[*eventStream]bool
}

type eventStream struct{ sent eventState }

func (e *events) change(apply func(*eventState)) {
	e.mu.Lock()
	apply(&e.state)
	e.mu.Unlock()
	e.wake()
}

func (e *events) wake() {
	e.mu.Lock()
	changed := e.changed
	e.changed = nil
	e.mu.Unlock()
	if changed != nil {
		close(changed)
	}
}

// look returns the state and a channel that the next change closes.
func (e *events) look() (eventState, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.state, e.changed
}

// next returns what a stream that has sent one state must send to reach the
// other.
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
	if state.terminals != sent.terminals {
		list = append(list, link.Event{Terminals: true})
	}
	if state.services != sent.services {
		list = append(list, link.Event{Services: true})
	}
	if state.exit != nil && sent.exit == nil {
		list = append(list, link.Event{Exit: state.exit})
	}
	return list
}

// sendEvents serves an events stream until its end.
func (g *Guest) sendEvents(ctx context.Context, stream net.Conn) error {
	e := &g.events
	self := &eventStream{}
	e.mu.Lock()
	if e.streams == nil {
		e.streams = map[*eventStream]bool{}
	}
	e.streams[self] = true
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.streams, self)
		e.mu.Unlock()
		e.wake()
	}()
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	gone := make(chan struct{})
	go func() { // the caller says nothing more: a read returns at its end
		defer close(gone)
		_, _ = stream.Read(make([]byte, 1))
	}()
	for {
		state, changed := e.look()
		for _, event := range next(self.sent, state) {
			if link.WriteMessage(stream, event) != nil {
				return nil
			}
		}
		e.mu.Lock()
		self.sent = state
		e.mu.Unlock()
		e.flushed()
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

// flushed wakes flush, which waits on the same channel as the streams do, only
// when there is an exit to wait for: nothing else is ever flushed.
func (e *events) flushed() {
	e.mu.Lock()
	wanted := e.state.exit != nil && e.behind() == 0
	e.mu.Unlock()
	if wanted {
		e.wake()
	}
}

// behind counts the streams that have not sent the exit. e.mu is held.
func (e *events) behind() int {
	count := 0
	for stream := range e.streams {
		if e.state.exit != nil && stream.sent.exit == nil {
			count++
		}
	}
	return count
}

// flush waits until every stream has sent the exit.
func (e *events) flush(ctx context.Context) error {
	for {
		_, changed := e.look()
		e.mu.Lock()
		behind := e.behind()
		e.mu.Unlock()
		if behind == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
