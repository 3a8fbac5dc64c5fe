package guest

import (
	"context"
	"net"
	"sync"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// eventState is what events tell about. Streams send what differs from what they have sent, so that none is missed and
// none is kept.
type eventState struct {
	ready   bool
	exit    *int
	oom     int
	trouble *session.Cause
}

// events holds the state and wakes the streams.
type events struct {
	mu      sync.Mutex // guards what follows
	state   eventState
	changed chan struct{} // closed at the next change; nil while nobody waits
	behind  int           // streams that have not sent the exit
}

func (e *events) change(apply func(*eventState)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	apply(&e.state)
	e.wake()
}

// wake wakes whoever waits; e.mu is held.
func (e *events) wake() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}

// look returns the state and a channel that the next change closes.
func (e *events) look() (eventState, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state, e.wait()
}

// wait returns a channel that the next change closes; e.mu is held.
func (e *events) wait() <-chan struct{} {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	return e.changed
}

// join counts a stream that is behind until the function that it returns is called, which may be called again.
func (e *events) join() (told func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.behind++
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.behind--
		e.wake()
	})
}

// next returns what a stream that has sent one state must send to reach the other.
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

// sendEvents serves an events stream until its end.
func (g *Guest) sendEvents(ctx context.Context, stream net.Conn) error {
	e := &g.events
	told := e.join()
	defer told()
	if err := link.ReplyOK(stream, struct{}{}); err != nil {
		return nil
	}
	gone := make(chan struct{})
	go func() { // the caller says nothing more: a read returns at its end
		defer close(gone)
		_, _ = stream.Read(make([]byte, 1))
	}()
	var sent eventState
	for {
		state, changed := e.look()
		for _, event := range next(sent, state) {
			if link.WriteMessage(stream, event) != nil {
				return nil
			}
		}
		sent = state
		if state.exit != nil {
			told()
		}
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

// flush waits until every stream has sent the exit, if there is one.
func (e *events) flush(ctx context.Context) error {
	for {
		e.mu.Lock()
		done, changed := e.state.exit == nil || e.behind == 0, e.wait()
		e.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
