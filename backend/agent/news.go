package agent

import (
	"context"
	"sync"

	"slipway/backend/session"
)

// news tells watchers what has changed, and has the queue look at it.
type news struct {
	*stream
	agent  *Agent
	closed chan struct{}
	once   sync.Once
}

// Watched reports whether somebody watches.
func (n *news) Watched() bool { return n.watched() }

// Publish tells watchers of an event.
func (n *news) Publish(e session.Event) { n.publish(e) }

// PlanAgain has the queue plan: what can start may have changed.
func (n *news) PlanAgain() { n.agent.queue.Wake() }

// PublishMachine tells watchers of the machine as it is now.
func (n *news) PublishMachine() {
	if !n.watched() {
		return
	}
	m, err := n.agent.describe()
	if err != nil {
		n.agent.config.Log.Warn("the machine cannot be described", "err", err)
		return
	}
	n.publish(session.Event{Machine: &m})
}

// PublishBoard tells watchers who holds which device.
func (n *news) PublishBoard(live []session.Session) {
	board := n.agent.board(live)
	n.publish(session.Event{Devices: &board})
}

// PublishSession tells watchers of new findings on a session.
func (n *news) PublishSession(s session.Session) {
	if n.watched() {
		s = n.agent.Dress(s)
		n.publish(session.Event{Session: &s})
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
			return session.NewError(session.CodeAgentUnavailable, "The agent was closed.", "Connect again.")
		}
	}
}

// watchers counts those who watch. For more of them more is measured.
func (n *news) watchers(more int) {
	n.watch(more)
	n.agent.meter.Wake()
	n.agent.sampler.Wake()
}

// reset returns the whole state.
func (n *news) reset(ctx context.Context) (session.Reset, error) {
	machine, err := n.agent.Machine(ctx)
	if err != nil {
		return session.Reset{}, err
	}
	live, err := n.agent.List(ctx, session.Filter{Live: true})
	if err != nil {
		return session.Reset{}, err
	}
	finished, err := n.agent.List(ctx, session.Filter{Finished: true, Limit: session.ResetFinished})
	if err != nil {
		return session.Reset{}, err
	}
	board := n.agent.board(live)
	return session.Reset{Sessions: append(live, finished...), Machine: machine, Devices: &board}, nil
}

// publishVersions passes on what was stored of sessions.
func (a *Agent) publishVersions(versions []session.Session) {
	for _, v := range versions {
		if v.Status.Terminal() {
			a.queue.Forget(v.ID)
			a.apps.Forget(v.ID)
			a.meter.Forget(v.ID)
		}
		if v.Status == session.Running && v.StartedAt != nil {
			a.accounts.Begin(a.devices.Moment(), v) // it may end before the next sample
		}
		if v.Status == session.Running || v.Status == session.Terminating {
			a.meter.Wake() // its first and last seconds count
		}
		if v.Status == session.Running || v.Status == session.Terminating || v.Status.Terminal() {
			a.sampler.Wake()
			a.folders.Used(v)
		}
		v = a.Dress(v)
		a.stream.publish(session.Event{Session: &v})
	}
}
