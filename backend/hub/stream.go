package hub

import (
	"context"
	"maps"
	"slices"
	"time"

	"slipway/backend/notify"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Event is one change, of whatever kind. Exactly one of the pointers or slices
// is set. Seq grows by one with each event of one Epoch, the run of a hub; a
// Window event has the number of the event before it, since only some see it.
type Event struct {
	Cursor
	Snapshot *Snapshot
	Session  *session.Session
	Removed  *session.ID
	Usage    []session.Usage
	Machine  *Machine
	Recents  *[]Recent
	Settings *Settings
	Window   *Window
	Devices  *Board
	Presets  *[]Preset
	Notice   *notify.Notice // that no desktop has shown

	Agent     *Agent
	Operation *Operation
	SessionExtra
}

// SessionExtra is what an event says of its Session that its agent does not tell.
type SessionExtra struct {
	Dependents []session.ID // those that wait for it to end in success
	LastHeard  *time.Time   // its agent is not reached, and this is how it was then
}

// Board is the state of an agent's devices. Online is false while the agent is
// not reached; the rest is then as old as At.
type Board struct {
	session.DeviceBoard
	Agent  string `json:"agent"`
	Online bool   `json:"online"`
}

// Snapshot is everything a page needs to begin with.
type Snapshot struct {
	Sessions []session.Session
	Usage    map[session.ID]session.Usage
	Machines []Machine
	Recents  []Recent
	Settings Settings
	Version  Version
	Devices  []Board
	Presets  []Preset

	Agents     []Agent
	Operations []Operation

	Dependents map[session.ID][]session.ID
	Stale      map[session.ID]time.Time // sessions of agents that are not reached, and when they were heard
}

// Machine is an agent's machine as the hub last heard of it. Online is false
// while the agent is not reached; what Machine says is then as old as LastHeard.
type Machine struct {
	session.Machine
	Online    bool
	LastHeard time.Time
}

// Window asks the desktop shell for a window; an empty URL for the main one.
type Window struct{ URL, Title, Path string }

// Cursor is a place in the hub's stream. The zero cursor asks for a snapshot.
type Cursor struct {
	Epoch string
	Seq   uint64
}

const (
	// kept is how many events the stream remembers. A watcher further behind
	// gets a snapshot: one ring serves all, so a slow one costs the others nothing.
	kept = 1024
	// finishedSlack is how many sessions more than a snapshot's finished ones are
	// known before the oldest are forgotten.
	finishedSlack = 20
	// flushEvery is how often usage samples are sent on, merged.
	flushEvery = time.Second
	// windowsKept is how many window requests wait for a shell that is slow.
	windowsKept = 8
)

// stream is a ring of numbered events with watchers that read it each at its
// own pace. It is guarded by shared.mu.
type stream struct {
	epoch    string
	first    uint64 // seq of ring[0]
	ring     []Event
	closed   bool
	watchers map[*Watcher]struct{}
	samples  map[session.ID]session.Usage // waiting for the next flush
	boards   map[*member]struct{}         // agents whose board waits for the next flush
	links    map[*member]struct{}         // agents whose figures wait for the next flush
	sampled  chan struct{}                // holds one token while samples, boards or links is not empty
}

func (s *stream) open(epoch string) {
	s.epoch, s.first = epoch, 1
	s.watchers = map[*Watcher]struct{}{}
	s.samples = map[session.ID]session.Usage{}
	s.boards = map[*member]struct{}{}
	s.links = map[*member]struct{}{}
	s.sampled = make(chan struct{}, 1)
}

// last is the seq of the newest event, 0 if there was none.
func (s *stream) last() uint64 { return s.first + uint64(len(s.ring)) - 1 }

func (s *stream) publish(e Event) {
	e.Cursor = Cursor{Epoch: s.epoch, Seq: s.last() + 1}
	if len(s.ring) >= kept {
		dropped := kept / 4
		s.ring = append(make([]Event, 0, kept), s.ring[dropped:]...)
		s.first += uint64(dropped)
	}
	s.ring = append(s.ring, e)
	s.wake()
}

// forget drops every event that is kept, so that each watcher takes a snapshot.
func (s *stream) forget() {
	s.first, s.ring = s.last()+2, nil
	s.wake()
}

func (s *stream) wake() {
	for w := range s.watchers {
		pace.Signal(w.wake)
	}
}

func (s *stream) close() {
	s.closed = true
	s.wake()
}

// sample keeps the newest sample of each session for the next flush.
func (s *stream) sample(usage []session.Usage) {
	for _, u := range usage {
		s.samples[u.Session] = u
	}
	pace.Signal(s.sampled)
}

// board has the newest board of an agent published by the next flush.
func (s *stream) board(m *member) {
	s.boards[m] = struct{}{}
	pace.Signal(s.sampled)
}

// link has an agent published by the next flush.
func (s *stream) link(m *member) {
	s.links[m] = struct{}{}
	pace.Signal(s.sampled)
}

// watching hands what the rooms publish to those who watch.
type watching struct {
	*state
	person     *person
	operations *operations
}

// close ends every watching.
func (wa *watching) close() {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	wa.stream.close()
}

// flush publishes merged usage samples, the newest boards and the newest figures
// of agents, at most once every flushEvery, and sleeps while there are none.
func (wa *watching) flush(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wa.stream.sampled:
		}
		wa.mu.Lock()
		if merged := wa.takeSamples(); len(merged) > 0 {
			wa.stream.publish(Event{Usage: merged})
		}
		for _, m := range wa.members {
			if _, waits := wa.stream.boards[m]; waits && m.board != nil {
				wa.stream.publish(Event{Devices: new(m.boardView())})
			}
		}
		for _, m := range wa.members {
			if _, waits := wa.stream.links[m]; waits {
				wa.publishAgent(m)
			}
		}
		clear(wa.stream.boards)
		clear(wa.stream.links)
		wa.mu.Unlock()
		if pace.Wall().Pause(ctx, flushEvery) != nil {
			return
		}
	}
}

// takeSamples needs mu. Samples of sessions that ended meanwhile are dropped.
func (wa *watching) takeSamples() []session.Usage {
	merged := make([]session.Usage, 0, len(wa.stream.samples))
	for id, u := range wa.stream.samples {
		if k, ok := wa.sessions[id]; ok && k.session.Status.Live() {
			merged = append(merged, u)
		}
	}
	clear(wa.stream.samples)
	return merged
}

// Watcher reads the stream. It belongs to one goroutine, which closes it.
type Watcher struct {
	from    *watching
	cursor  Cursor
	fresh   bool // begin with a snapshot
	shell   bool
	wake    chan struct{}
	windows chan Window
}

// Watch begins to follow the stream after cursor, or with a snapshot where
// that is not possible. A shell watcher also receives Window events.
func (wa *watching) Watch(cursor Cursor, shell bool) *Watcher {
	w := &Watcher{from: wa, cursor: cursor, shell: shell, wake: make(chan struct{}, 1),
		windows: make(chan Window, windowsKept)}
	wa.mu.Lock()
	defer wa.mu.Unlock()
	s := &wa.stream
	w.fresh = cursor.Epoch != s.epoch || cursor.Seq+1 < s.first || cursor.Seq > s.last()
	s.watchers[w] = struct{}{}
	return w
}

// Close ends the watching.
func (w *Watcher) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.stream.watchers, w)
}

// Next waits for the next event. It fails when ctx ends or, with
// server_request_unavailable, when the hub has stopped.
func (w *Watcher) Next(ctx context.Context) (Event, error) {
	for {
		if e, ok, err := w.take(); ok || err != nil {
			return e, err
		}
		select {
		case <-ctx.Done():
			return Event{}, ctx.Err()
		case <-w.wake:
		case window := <-w.windows:
			return Event{Cursor: w.cursor, Window: &window}, nil
		}
	}
}

func (w *Watcher) take() (Event, bool, error) {
	from := w.from
	from.mu.Lock()
	defer from.mu.Unlock()
	s := &from.stream
	if s.closed {
		return Event{}, false, &session.Error{Code: session.CodeServerUnavailable, Message: "Slipway is shutting down."}
	}
	if w.fresh || w.cursor.Seq+1 < s.first {
		w.fresh = false
		w.cursor = Cursor{Epoch: s.epoch, Seq: s.last()}
		return Event{Cursor: w.cursor, Snapshot: from.snapshot()}, true, nil
	}
	if w.cursor.Seq >= s.last() {
		return Event{}, false, nil
	}
	e := s.ring[w.cursor.Seq+1-s.first]
	w.cursor.Seq = e.Seq
	return e, true, nil
}

// OpenWindow hands window to a connected desktop shell and reports whether
// there was one to take it.
func (wa *watching) OpenWindow(window Window) bool {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	for w := range wa.stream.watchers {
		if !w.shell {
			continue
		}
		select {
		case w.windows <- window:
			return true
		default:
		}
	}
	return false
}

// snapshot needs mu.
func (wa *watching) snapshot() *Snapshot {
	sessions := wa.sorted()
	finished := 0
	sessions = slices.DeleteFunc(sessions, func(s session.Session) bool {
		if s.Status.Live() {
			return false
		}
		finished++
		return finished > session.ResetFinished
	})
	snapshot := &Snapshot{
		Sessions: sessions, Usage: maps.Clone(wa.usage), Machines: wa.machines(), Devices: wa.boards(),
		Presets: wa.person.allPresets(), Recents: cloneRecents(wa.person.recents), Settings: wa.person.settings,
		Version:    wa.version,
		Dependents: map[session.ID][]session.ID{},
		Agents:     wa.agents(), Operations: wa.operations.views(), Stale: map[session.ID]time.Time{},
	}
	for _, s := range sessions {
		if at := wa.sessions[s.ID].member.stale(); at != nil {
			snapshot.Stale[s.ID] = *at
		}
		if ids := wa.dependents(s.ID); len(ids) > 0 {
			snapshot.Dependents[s.ID] = ids
		}
	}
	return snapshot
}
