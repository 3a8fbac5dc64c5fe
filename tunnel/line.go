package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// LineState is what a [Line] is doing.
type LineState string

// The states. A line that is probing asks a silent peer for a sign of life; one with a question waits for a person.
const (
	LineOff        LineState = "off" // it does not run
	LineConnecting LineState = "connecting"
	LineConnected  LineState = "connected"
	LineProbing    LineState = "probing"
	LineDown       LineState = "down"
	LineQuestion   LineState = "question"
)

// LineStatus is the status of a line. What is unknown is zero.
type LineStatus struct {
	State     LineState
	Since     time.Time // when the state began
	LastHeard time.Time // of the peer, by any tunnel
	RTT       time.Duration
	NextTry   time.Time // while down: when the next attempt is made; past: one is under way
	Err       error     // why it is down, or what must be asked
	Peer      Peer      // of the newest tunnel
	Carriers  int       // of the tunnel that is up
	Version   int       // of that tunnel
}

// DownError is the status of a line without a tunnel. The state of the peer is unknown.
type DownError struct{ LineStatus }

func (e *DownError) Error() string {
	text := fmt.Sprintf("tunnel: %s since %s", e.State, e.Since.Format(time.TimeOnly))
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *DownError) Unwrap() error { return e.Err }

// LineConfig configures a line.
type LineConfig struct {
	Dialer Dialer
	Tunnel Config // of each tunnel
	// NeedsPerson reports whether an attempt failed so that trying again is useless, or harmful, before a person has
	// done something. nil: only what fails with [ErrWouldAsk].
	NeedsPerson func(error) bool
	Log         *slog.Logger // nil: nothing is logged

	dial func(ctx context.Context, d Dialer, c Config) (link, error) // for tests; nil: Dial
}

// link is a [Tunnel], or a fake in tests.
type link interface {
	Open(ctx context.Context, class Class) (Stream, error)
	Probe(ctx context.Context) error
	Peer() Peer
	Stats() Stats
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Line keeps one tunnel to one peer up while it runs. When the tunnel is lost it dials another one; streams end with
// their tunnel. All methods are safe for concurrent use.
//
// It probes a silent peer, and ends the tunnel after two probes without an answer. Meanwhile it dials another tunnel
// already, since a connection that was cut recovers much later than the path does. Attempts in the background are
// silent. When they need a person, they stop until [Line.Reconnect].
type Line struct {
	config   LineConfig
	nudges   chan struct{} // of capacity 1
	manual   chan manualTry
	over     chan struct{} // closed when Run returns
	attached atomic.Int64  // streams that a person or a transfer waits on

	mu      sync.Mutex // guards what follows
	status  LineStatus
	link    link // nil: none is up
	changed chan struct{}
}

// manualTry is a person's request to connect.
type manualTry struct {
	ctx  context.Context //nolint:containedctx // of the person's request
	done chan error      // of capacity 1
}

// NewLine returns a line that is off until [Line.Run].
func NewLine(config LineConfig) *Line {
	if config.NeedsPerson == nil {
		config.NeedsPerson = func(err error) bool { return errors.Is(err, ErrWouldAsk) }
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.dial == nil {
		config.dial = func(ctx context.Context, d Dialer, c Config) (link, error) {
			t, err := Dial(ctx, d, c)
			if err != nil {
				return nil, err // an interface that holds a nil tunnel is not nil
			}
			return t, nil
		}
	}
	return &Line{
		config: config, nudges: make(chan struct{}, 1), manual: make(chan manualTry), over: make(chan struct{}),
		status: LineStatus{State: LineOff, Since: time.Now()}, changed: make(chan struct{}),
	}
}

// Open opens a stream through the tunnel that is up. It fails at once with [*DownError] if there is none, or with
// [ErrTooManyStreams].
func (l *Line) Open(ctx context.Context, class Class) (Stream, error) {
	l.mu.Lock()
	up := l.link
	l.mu.Unlock()
	if up == nil {
		return nil, l.down()
	}
	stream, err := up.Open(ctx, class)
	if errors.Is(err, net.ErrClosed) {
		return nil, l.down()
	}
	if err != nil || class == Control {
		return stream, err
	}
	l.attached.Add(1)
	return &attachedStream{Stream: stream, detach: sync.OnceFunc(func() { l.attached.Add(-1) })}, nil
}

// attachedStream is a stream that a person or a transfer waits on, so the peer's silence must be noticed quickly.
type attachedStream struct {
	Stream
	detach func()
}

func (s *attachedStream) Close() error {
	s.detach()
	return s.Stream.Close()
}

func (l *Line) down() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &DownError{l.status}
}

// WaitUp waits until there is a tunnel. It fails with ctx's error, or with [*DownError] once Run has returned.
func (l *Line) WaitUp(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, changed := l.link, l.changed
		l.mu.Unlock()
		if up != nil && !expired(up.Done()) {
			return ctx.Err()
		}
		select {
		case <-l.over:
			return l.down()
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Status returns the status, and a channel that is closed when its state, error, peer, carriers or next try changes.
func (l *Line) Status() (LineStatus, <-chan struct{}) {
	l.mu.Lock()
	s, up, changed := l.status, l.link, l.changed
	l.mu.Unlock()
	if up != nil {
		stats := up.Stats()
		s.RTT, s.Carriers, s.Version = stats.RTT, stats.Carriers, stats.Version
		s.heard(up)
	}
	return s, changed
}

// heard moves LastHeard to the last sign of life on a tunnel, if that is later.
func (s *LineStatus) heard(up link) {
	if last := up.Stats().LastHeard; last.After(s.LastHeard) {
		s.LastHeard = last
	}
}

// Nudge checks the tunnel at once, since the network may have changed or the machine woke up.
func (l *Line) Nudge() { notify(l.nudges) }

// Reconnect connects for a person who can answer questions, and returns when a tunnel is up or this attempt has failed.
// If a tunnel is up, it only checks it.
func (l *Line) Reconnect(ctx context.Context) error {
	try := manualTry{ctx: ctx, done: make(chan error, 1)}
	select {
	case l.manual <- try:
	case <-l.over:
		return l.down()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-try.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish changes the status and announces that. change is called with l.mu held and may set l.link.
func (l *Line) publish(change func(s *LineStatus)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.status
	change(&l.status)
	if l.status.State != before.State {
		l.status.Since = time.Now()
	}
	close(l.changed)
	l.changed = make(chan struct{})
}
