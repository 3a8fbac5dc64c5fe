package hub

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"slipway/backend/notify"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Event is one message of /api/v1/events, a WebSocket. The first message is a snapshot unless the stream resumes. Seq
// grows by one with each message. A page that reconnects with ?epoch=E&after=SEQ resumes there, or gets a new snapshot
// if that is no longer possible. A Window message has the number of the message before it, because only the desktop
// shell receives it.
type Event struct {
	Cursor
	Snapshot *Snapshot        `json:"snapshot,omitempty"` // replaces everything known
	Session  *Session         `json:"session,omitempty"`  // one session
	Removed  string           `json:"removed,omitempty"`  // id of a session that was purged
	Usage    []session.Usage  `json:"usage,omitempty"`
	Machine  *Machine         `json:"machine,omitempty"`
	Recents  *[]Recent        `json:"recents,omitempty"`
	Projects *[]RecentProject `json:"projects,omitempty"` // all that are remembered
	Settings *Settings        `json:"settings,omitempty"`
	Window   *Window          `json:"window,omitempty"` // only to the desktop shell (?shell=1)

	// one agent's devices; at most once a second
	Devices *Board    `json:"devices,omitempty"`
	Presets *[]Preset `json:"presets,omitempty"` // all of them

	Notice *notify.Notice `json:"notice,omitempty"` // no desktop shows it, so the page does

	// one agent; after a rename or a removal there is a snapshot instead
	Agent     *Agent     `json:"agent,omitempty"`
	Operation *Operation `json:"operation,omitempty"` // one operation; its progress at most five times a second
}

// Snapshot is the state that a page needs: live sessions, the newest 100 finished ones, and all machines.
type Snapshot struct {
	Sessions []Session       `json:"sessions"`
	Machines []Machine       `json:"machines"`
	Recents  []Recent        `json:"recents"`
	Projects []RecentProject `json:"projects"` // remembered ones
	Settings Settings        `json:"settings"`
	Version  Version         `json:"version"`

	Devices []Board  `json:"devices"` // of the agents that have reported them
	Presets []Preset `json:"presets"`

	Agents     []Agent     `json:"agents"`
	Operations []Operation `json:"operations"` // newest first
}

// Window asks the desktop shell to open an app window, or to show itself.
type Window struct {
	URL   string `json:"url"` // empty: show the main window
	Title string `json:"title"`
	Path  string `json:"path,omitempty"` // the page that it shows; empty: unchanged
}

// Cursor is a position in the hub's stream. The zero cursor requests a snapshot.
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   uint64 `json:"seq"`
}

const (
	kept          = 1024        // events in the stream; a watcher further behind gets a snapshot
	finishedSlack = 20          // finished sessions that are known beyond those of a snapshot
	flushEvery    = time.Second // how often merged usage samples are published
	windowsKept   = 8           // window requests that wait for a slow shell
)

// stream is a ring of numbered events that each watcher reads at its own pace, so a slow one costs the others nothing.
// It is guarded by shared.mu.
type stream struct {
	epoch    string
	first    uint64 // number of ring[0]
	ring     []Event
	closed   bool
	watchers map[*Watcher]struct{}
	samples  map[session.ID]session.Usage // waiting for the next flush
	boards   map[*member]struct{}         // agents whose devices are published by the next flush
	links    map[*member]struct{}         // agents that are published by the next flush
	sampled  chan struct{}                // holds a token while samples, boards or links is not empty
}

func newStream() stream {
	return stream{epoch: rand.Text(), first: 1, watchers: map[*Watcher]struct{}{},
		samples: map[session.ID]session.Usage{}, boards: map[*member]struct{}{}, links: map[*member]struct{}{},
		sampled: make(chan struct{}, 1)}
}

// last returns the number of the newest event, or 0 if there was none.
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

// forget drops all events, so that each watcher takes a snapshot.
func (s *stream) forget() {
	s.first, s.ring = s.last()+2, nil
	s.wake()
}

func (s *stream) wake() {
	for w := range s.watchers {
		pace.Signal(w.wake)
	}
}

// sample stores a sample for the next flush, in place of an earlier one of its session.
func (s *stream) sample(u session.Usage) {
	s.samples[u.Session] = u
	pace.Signal(s.sampled)
}

func (s *stream) board(m *member) {
	s.boards[m] = struct{}{}
	pace.Signal(s.sampled)
}

func (s *stream) link(m *member) {
	s.links[m] = struct{}{}
	pace.Signal(s.sampled)
}

type watching struct {
	*state
	person     *person
	operations *operations
}

func (wa *watching) close() {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	wa.stream.closed = true
	wa.stream.wake()
}

// flush publishes merged usage samples, the newest boards and agents at most once every flushEvery.
func (wa *watching) flush(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-wa.stream.sampled:
		}
		wa.publishMerged()
		if pace.Wall().Pause(ctx, flushEvery) != nil {
			return
		}
	}
}

// publishMerged publishes the samples of live sessions, and the boards and agents that wait for the next flush.
func (wa *watching) publishMerged() {
	wa.mu.Lock()
	defer wa.mu.Unlock()
	s := &wa.stream
	var merged []session.Usage
	for id, u := range s.samples {
		if k, ok := wa.sessions[id]; ok && k.session.Status.Live() {
			merged = append(merged, u)
		}
	}
	if len(merged) > 0 {
		s.publish(Event{Usage: merged})
	}
	for _, m := range wa.members {
		if _, waits := s.boards[m]; waits && m.board != nil {
			s.publish(Event{Devices: new(boardView(*m.board, m.Name(), m.online))})
		}
		if _, waits := s.links[m]; waits {
			wa.publishAgent(m)
		}
	}
	clear(s.samples)
	clear(s.boards)
	clear(s.links)
}

// Watcher reads the stream. It must be used and closed by one goroutine.
type Watcher struct {
	from    *watching
	cursor  Cursor
	fresh   bool // begin with a snapshot
	shell   bool
	wake    chan struct{}
	windows chan Window
}

// Watch follows the stream after cursor, or from a snapshot. A shell also receives Window events.
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

func (w *Watcher) Close() {
	w.from.mu.Lock()
	defer w.from.mu.Unlock()
	delete(w.from.stream.watchers, w)
}

// Next waits for the next event. It fails when ctx ends or, with server_request_unavailable, when the hub has stopped.
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

// OpenWindow passes a window to a connected desktop shell and reports whether one took it.
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

// snapshot is called with mu held.
func (wa *watching) snapshot() *Snapshot {
	return &Snapshot{
		Sessions: each(newest(slices.DeleteFunc(wa.sorted(), wa.hidden), session.ResetFinished),
			func(s session.Session) Session { return wa.sessionView(s, wa.sessions[s.ID].member.stale()) }),
		Machines: each(wa.members, (*member).view), Devices: wa.boards(), Presets: wa.person.allPresets(),
		Recents:  append([]Recent{}, wa.person.recents...),
		Projects: append([]RecentProject{}, wa.person.projects...), Settings: wa.person.settings, Version: wa.version,
		Agents: each(wa.members, wa.agentView), Operations: wa.operations.views(),
	}
}
