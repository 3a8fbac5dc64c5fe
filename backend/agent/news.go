package agent

import (
	"context"
	"sync"

	"slipway/backend/agent/queue"
	"slipway/backend/agent/sessions"
	"slipway/backend/session"
)

// news tells watchers what has changed, and has the queue look at it.
type news struct {
	*stream
	machine  *machine
	sessions *sessions.Sessions
	queue    *queue.Queue
	measure  func() // is called when more is to be measured, or less
	closed   chan struct{}
	once     sync.Once
}

// Watched reports whether somebody watches.
func (n *news) Watched() bool { return n.watched() }

// Publish tells watchers of an event.
func (n *news) Publish(e session.Event) { n.publish(e) }

// PlanAgain has the queue plan: what can start may have changed.
func (n *news) PlanAgain() { n.queue.Wake() }

// PublishMachine tells watchers of the machine as it is now.
func (n *news) PublishMachine() {
	if !n.watched() {
		return
	}
	m, err := n.machine.describe()
	if err != nil {
		n.machine.config.Log.Warn("the machine cannot be described", "err", err)
		return
	}
	n.publish(session.Event{Machine: &m})
}

// PublishBoard tells watchers who holds which device.
func (n *news) PublishBoard(live []session.Session) {
	board := n.machine.board(live)
	n.publish(session.Event{Devices: &board})
}

// Pulling tells watchers that the pull of a session has come on.
func (n *news) Pulling(s session.Session) {
	s = n.sessions.Dress(s)
	n.publish(session.Event{Session: &s})
}

// PublishSession tells watchers of new findings on a session.
func (n *news) PublishSession(s session.Session) {
	if n.watched() {
		n.Pulling(s)
	}
}

// close ends every Watch.
func (n *news) close() { n.once.Do(func() { close(n.closed) }) }

// Watch tells fn of every event after a cursor, until ctx ends or fn fails.
func (n *news) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	n.watchers(1)
	defer n.watchers(-1)
	for {
		events, next, ok := n.since(after)
		if !ok {
			// The cursor is read before the state: what changes between the two
			// is told again, which does no harm.
			cursor := n.now()
			reset, err := n.reset(ctx)
			if err != nil {
				return err
			}
			events = []session.Event{{Epoch: cursor.Epoch, Seq: cursor.Seq, Reset: &reset}}
		}
		for _, e := range events {
			if err := fn(e); err != nil {
				return err
			}
			after = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
		}
		if len(events) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			continue
		}
		select {
		case <-next:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.closed:
			return &session.Error{Code: session.CodeAgentUnavailable, Message: "The agent was closed.",
				Hint: "Connect again."}
		}
	}
}

// watchers counts those who watch. For more of them more is measured.
func (n *news) watchers(more int) {
	n.watch(more)
	n.measure()
}

// reset returns the whole state.
func (n *news) reset(ctx context.Context) (session.Reset, error) {
	machine, err := n.machine.Machine(ctx)
	if err != nil {
		return session.Reset{}, err
	}
	live, err := n.sessions.List(ctx, session.Filter{Live: true})
	if err != nil {
		return session.Reset{}, err
	}
	finished, err := n.sessions.List(ctx, session.Filter{Finished: true, Limit: session.ResetFinished})
	if err != nil {
		return session.Reset{}, err
	}
	board := n.machine.board(live)
	return session.Reset{Sessions: append(live, finished...), Machine: machine, Devices: &board}, nil
}
