package agentrpc

import (
	"context"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// Bounds of a handler's memory of one peer's calls.
const (
	memoryAge     = 10 * time.Minute // how long an outcome is kept
	memoryCalls   = 4096             // outcomes kept
	memoryBytes   = 4 << 20          // of outcomes kept
	memoryRunning = 512              // calls under way that change something
	// transit is more than a request is under way between its age being
	// written and read.
	transit = 30 * time.Second
)

// callKey names one call. Callers do not see one another's.
type callKey struct {
	transport, key, name string // of the peer
	id                   string
}

// peer is the same for all calls of one peer.
func (k callKey) peer() callKey {
	k.id = ""
	return k
}

func keyOf(peer tunnel.Peer, id string) callKey {
	return callKey{peer.Transport, peer.Key, peer.Name, id}
}

// memory knows the calls of one peer that change something, those under way and the newest
// that have ended, so that a repetition has no effect of its own.
type memory struct {
	mu      sync.Mutex // guards everything below
	calls   map[callKey]*remembered
	ended   []*remembered // in the order of their end
	bytes   int           // of the outcomes of ended
	running int
	// since is the moment from which on every call is known: the handler's
	// start, or the beginning of the youngest call that was forgotten.
	since time.Time
}

// remembered is one call.
type remembered struct {
	key    callKey
	began  time.Time
	ended  time.Time
	cancel context.CancelFunc
	done   chan struct{} // closed when frame is there
	frame  []byte        // the outcome
}

func newMemory(since time.Time) *memory {
	return &memory{calls: map[callKey]*remembered{}, since: since}
}

// join returns the call of a key. first: it is a new one, which the caller makes
// and settles; cancel ends it. It fails with codeForgotten where the call
// is a repetition that may have been answered and forgotten, and for
// [again] never does.
func (m *memory) join(key callKey, age time.Duration, e effect,
	cancel context.CancelFunc) (call *remembered, first bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.forget(now)
	if known := m.calls[key]; known != nil {
		return known, false, nil
	}
	if age > 0 && e == once && now.Add(-age-transit).Before(m.since) {
		return nil, false, &session.Error{Code: codeForgotten,
			Message: "Whether this was done before is not known any more.",
			Hint:    "Look at what there is, then ask again."}
	}
	if m.running >= memoryRunning {
		return nil, false, &session.Error{Code: CodeBusy, Message: "This computer has too many calls under way.",
			Hint: "Try again in a moment."}
	}
	call = &remembered{key: key, began: now, cancel: cancel, done: make(chan struct{})}
	m.calls[key] = call
	m.running++
	return call, true, nil
}

// settle keeps the outcome of a call and tells whoever waits for it.
func (m *memory) settle(call *remembered, frame []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	call.frame, call.ended = frame, time.Now()
	close(call.done)
	m.running--
	m.ended = append(m.ended, call)
	m.bytes += len(frame)
	m.forget(call.ended)
}

// idle reports whether nothing is known but since when.
func (m *memory) idle() (since time.Time, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(time.Now())
	return m.since, len(m.calls) == 0
}

// forget drops what is too old or too much. m.mu is held.
func (m *memory) forget(now time.Time) {
	drop := 0
	for _, call := range m.ended {
		if len(m.ended)-drop <= memoryCalls && m.bytes <= memoryBytes && now.Sub(call.ended) < memoryAge {
			break
		}
		drop++
		m.bytes -= len(call.frame)
		delete(m.calls, call.key)
		if call.began.After(m.since) {
			m.since = call.began
		}
	}
	m.ended = append(m.ended[:0], m.ended[drop:]...)
}
