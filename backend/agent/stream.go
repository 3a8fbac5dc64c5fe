package agent

import (
	"sync"

	"slipway/backend/session"
)

// ringSize is how many events are kept for watchers that resume.
const ringSize = 1024

// stream numbers events and keeps the newest of them. Watchers read the ring at
// their own pace, so that a slow one delays nobody.
type stream struct {
	epoch string

	mu        sync.Mutex // guards everything below
	seq       uint64     // of the newest event
	ring      [ringSize]session.Event
	changed   chan struct{}         // closed and replaced when an event comes
	usage     uint64                // of the newest event with samples
	board     uint64                // of the newest one with the devices
	revisions map[session.ID]uint64 // of the sessions in the ring
	watchers  int
}

func newStream(epoch string) *stream {
	return &stream{epoch: epoch, changed: make(chan struct{}), revisions: map[session.ID]uint64{}}
}

// publish adds an event. A session that is older than what was published of it
// is dropped: two changes may come here in the other order than they were stored.
func (s *stream) publish(e session.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Session != nil {
		if e.Session.Revision < s.revisions[e.Session.ID] {
			return
		}
		s.revisions[e.Session.ID] = e.Session.Revision
	}
	if e.Removed != nil {
		delete(s.revisions, *e.Removed)
	}
	s.seq++
	e.Epoch, e.Seq = s.epoch, s.seq
	s.forget(s.ring[s.seq%ringSize])
	s.ring[s.seq%ringSize] = e
	if len(e.Usage) > 0 {
		s.outdate(&s.usage)
	}
	if e.Devices != nil {
		s.outdate(&s.board)
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// forget lets go of an event that falls out of the ring, and with the newest of a
// session of its revision: the ring is longer than any two changes swap places
// over. The caller holds mu.
func (s *stream) forget(e session.Event) {
	if e.Session != nil && s.revisions[e.Session.ID] == e.Session.Revision {
		delete(s.revisions, e.Session.ID)
	}
}

// outdate has the newest event take the place of the one at last, of which only
// its number is kept: samples and devices matter as they are now. The caller holds
// mu.
func (s *stream) outdate(last *uint64) {
	if *last > 0 && s.seq-*last < ringSize {
		s.ring[*last%ringSize] = session.Event{Epoch: s.epoch, Seq: *last}
	}
	*last = s.seq
}

// since returns the events after a cursor and, where there are none, the
// channel that tells of the next. It reports false where the cursor is of
// another epoch or too old.
func (s *stream) since(after session.Cursor) ([]session.Event, <-chan struct{}, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if after.Epoch != s.epoch || after.Seq > s.seq || s.seq-after.Seq > ringSize {
		return nil, nil, false
	}
	events := make([]session.Event, 0, min(s.seq-after.Seq, 64))
	for seq := after.Seq + 1; seq <= s.seq && len(events) < cap(events); seq++ {
		events = append(events, s.ring[seq%ringSize])
	}
	return events, s.changed, true
}

// now returns the place after the newest event.
func (s *stream) now() session.Cursor {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.Cursor{Epoch: s.epoch, Seq: s.seq}
}

// next is the channel that tells of the next event.
func (s *stream) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *stream) watch(n int) {
	s.mu.Lock()
	s.watchers += n
	s.mu.Unlock()
}

func (s *stream) watched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchers > 0
}
