package agent

import (
	"context"
	"sync"

	"slipway/backend/session"
)

// ringSize is how many events are kept for watchers that resume.
const ringSize = 1024

// news numbers events, keeps the newest of them and tells watchers, and has the queue look at what has changed.
// Watchers read the ring at their own pace, so that a slow one delays nobody.
type news struct {
	agent *Agent
	epoch string
	over  chan struct{} // closed when every Watch is to end
	close func()        // closes over; may be called again

	mu        sync.Mutex // guards everything below
	seq       uint64     // of the newest event
	ring      [ringSize]session.Event
	changed   chan struct{}         // closed and replaced when an event comes
	usage     uint64                // of the newest event with samples
	board     uint64                // of the newest one with the devices
	revisions map[session.ID]uint64 // of the sessions in the ring
	watchers  int
}

func newNews(a *Agent, epoch string) *news {
	over := make(chan struct{})
	return &news{agent: a, epoch: epoch, over: over, close: sync.OnceFunc(func() { close(over) }),
		changed: make(chan struct{}), revisions: map[session.ID]uint64{}}
}

// Publish adds an event. A session that is older than what was published of it is dropped: two changes may come here in
// the other order than they were stored.
func (n *news) Publish(e session.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.Session != nil {
		if e.Session.Revision < n.revisions[e.Session.ID] {
			return
		}
		n.revisions[e.Session.ID] = e.Session.Revision
	}
	if e.Removed != nil {
		delete(n.revisions, *e.Removed)
	}
	n.seq++
	e.Epoch, e.Seq = n.epoch, n.seq
	n.forget(n.ring[n.seq%ringSize])
	n.ring[n.seq%ringSize] = e
	if len(e.Usage) > 0 {
		n.outdate(&n.usage)
	}
	if e.Devices != nil {
		n.outdate(&n.board)
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// forget lets go of an event that falls out of the ring, and with the newest of a session of its revision: the ring is
// longer than any two changes swap places over. The caller holds mu.
func (n *news) forget(e session.Event) {
	if e.Session != nil && n.revisions[e.Session.ID] == e.Session.Revision {
		delete(n.revisions, e.Session.ID)
	}
}

// outdate has the newest event take the place of the one at last, of which only its number is kept: samples and devices
// matter as they are now. The caller holds mu.
func (n *news) outdate(last *uint64) {
	if *last > 0 && n.seq-*last < ringSize {
		n.ring[*last%ringSize] = session.Event{Epoch: n.epoch, Seq: *last}
	}
	*last = n.seq
}

// since returns the events after a cursor and, where there are none, the channel that tells of the next. It reports
// false where the cursor is of another epoch or too old.
func (n *news) since(after session.Cursor) ([]session.Event, <-chan struct{}, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if after.Epoch != n.epoch || after.Seq > n.seq || n.seq-after.Seq > ringSize {
		return nil, nil, false
	}
	events := make([]session.Event, 0, min(n.seq-after.Seq, 64))
	for seq := after.Seq + 1; seq <= n.seq && len(events) < cap(events); seq++ {
		events = append(events, n.ring[seq%ringSize])
	}
	return events, n.changed, true
}

// now returns the place after the newest event.
func (n *news) now() session.Cursor {
	n.mu.Lock()
	defer n.mu.Unlock()
	return session.Cursor{Epoch: n.epoch, Seq: n.seq}
}

// next is the channel that tells of the next event.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

// Watched reports whether somebody watches.
func (n *news) Watched() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.watchers > 0
}

// PlanAgain has the queue plan: what can start may have changed.
func (n *news) PlanAgain() { n.agent.queue.Wake() }

// PublishMachine tells watchers of the machine as it is now.
func (n *news) PublishMachine() {
	if !n.Watched() {
		return
	}
	m, err := n.agent.describe()
	if err != nil {
		n.agent.config.Log.Warn("the machine cannot be described", "err", err)
		return
	}
	n.Publish(session.Event{Machine: &m})
}

// PublishBoard tells watchers who holds which device.
func (n *news) PublishBoard(live []session.Session) {
	board := n.agent.board(live)
	n.Publish(session.Event{Devices: &board})
}

// PublishSession tells watchers of new findings on a session.
func (n *news) PublishSession(about session.Session) {
	if n.Watched() {
		about = n.agent.Dress(about)
		n.Publish(session.Event{Session: &about})
	}
}

// Watch tells fn of every event after a cursor, until ctx ends or fn fails.
func (a *Agent) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	n := a.news
	n.watch(1)
	defer n.watch(-1)
	for {
		events, next, ok := n.since(after)
		if !ok {
			// The cursor is read before the state: what changes between the two is told again, which does no harm.
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
		case <-n.over:
			return session.NewError(session.CodeAgentUnavailable, "The agent was closed.", "Connect again.")
		}
	}
}

// watch counts those who watch. For more of them more is measured.
func (n *news) watch(more int) {
	n.mu.Lock()
	n.watchers += more
	n.mu.Unlock()
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
		a.news.Publish(session.Event{Session: &v})
	}
}
