package agent

import (
	"context"
	"sync"
	"sync/atomic"

	"slipway/backend/session"
)

// ringSize is the number of events that are kept for watchers that resume.
const ringSize = 1024

// news numbers, keeps and publishes events. Watchers read the ring at their own pace, so a slow one delays no other.
type news struct {
	agent    *Agent
	epoch    string
	over     chan struct{} // closed when every Watch is to end
	close    func()        // closes over; may be called again
	watchers atomic.Int64

	mu        sync.Mutex // guards everything below
	seq       uint64     // of the newest event
	ring      [ringSize]session.Event
	changed   chan struct{}         // closed and replaced at each event
	usage     uint64                // number of the newest event with samples
	board     uint64                // number of the newest event with the devices
	revisions map[session.ID]uint64 // of the sessions in the ring
}

func newNews(a *Agent, epoch string) *news {
	over := make(chan struct{})
	return &news{agent: a, epoch: epoch, over: over, close: sync.OnceFunc(func() { close(over) }),
		changed: make(chan struct{}), revisions: map[session.ID]uint64{}}
}

// Publish adds an event, unless it is about a session of which a newer version was published: changes may overtake.
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
	oldest := &n.ring[n.seq%ringSize]
	if old := oldest.Session; old != nil && n.revisions[old.ID] == old.Revision {
		delete(n.revisions, old.ID) // changes that overtake each other are closer together than the ring is long
	}
	*oldest = e
	if len(e.Usage) > 0 {
		n.outdate(&n.usage)
	}
	if e.Devices != nil {
		n.outdate(&n.board)
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// outdate puts the newest event in the place of the one at last: only the newest matters. The caller holds mu.
func (n *news) outdate(last *uint64) {
	if *last > 0 && n.seq-*last < ringSize {
		n.ring[*last%ringSize] = session.Event{Epoch: n.epoch, Seq: *last}
	}
	*last = n.seq
}

// since returns the events after a cursor, and a channel that is closed at the next one. It reports false if the cursor
// is of another epoch or too old.
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

func (n *news) now() session.Cursor {
	n.mu.Lock()
	defer n.mu.Unlock()
	return session.Cursor{Epoch: n.epoch, Seq: n.seq}
}

// next returns a channel that is closed at the next event.
func (n *news) next() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *news) Watched() bool { return n.watchers.Load() > 0 }

func (n *news) PlanAgain() { n.agent.queue.Wake() }

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

func (n *news) PublishBoard(live []session.Session) {
	board := n.agent.board(live)
	n.Publish(session.Event{Devices: &board})
}

func (n *news) PublishSession(about session.Session) {
	if n.Watched() {
		about = n.agent.Dress(about)
		n.Publish(session.Event{Session: &about})
	}
}

// Watch calls fn with every event after a cursor, until ctx ends or fn fails.
func (a *Agent) Watch(ctx context.Context, after session.Cursor, fn func(session.Event) error) error {
	n := a.news
	n.watch(1)
	defer n.watch(-1)
	for {
		events, next, ok := n.since(after)
		if !ok {
			// The cursor is read before the state, so a change between the two is sent twice, which does no harm.
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

// watch counts watchers. While there are any, the machine is measured more often.
func (n *news) watch(more int64) {
	n.watchers.Add(more)
	n.agent.meter.Wake()
	n.agent.sampler.Wake()
}

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

// publishVersions publishes what was stored of sessions, and informs the rooms.
func (a *Agent) publishVersions(versions []session.Session) {
	for _, v := range versions {
		if v.Status.Terminal() {
			a.queue.Forget(v.ID)
			a.apps.Forget(v.ID)
			a.meter.Ended(v.ID)
			a.secrets.Drop(v.ID)
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
			a.warm.Wake()
		}
		v = a.Dress(v)
		a.news.Publish(session.Event{Session: &v})
	}
}
