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

// The states. A line that is probing has a peer that has gone silent and is being asked for a sign of life; one with a
// question waits for a person.
const (
	LineOff        LineState = "off" // it does not run
	LineConnecting LineState = "connecting"
	LineConnected  LineState = "connected"
	LineProbing    LineState = "probing"
	LineDown       LineState = "down"
	LineQuestion   LineState = "question"
)

// LineStatus is a line at one moment. What is unknown is zero.
type LineStatus struct {
	State     LineState
	Since     time.Time // when the state began
	LastHeard time.Time // of the peer, by whichever tunnel
	RTT       time.Duration
	NextTry   time.Time // while down: of the next attempt; past: one is under way
	Err       error     // why it is down, or what must be asked
	Peer      Peer      // of the newest tunnel
	Carriers  int       // of the tunnel that is up
	Version   int       // that it speaks
}

// DownError says that there is no tunnel now. It says nothing about the far side.
type DownError struct {
	State     LineState
	Since     time.Time
	LastHeard time.Time // zero: never
	NextTry   time.Time // zero: none is planned
	Err       error     // of the last attempt
}

func (e *DownError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("tunnel: %s since %s: %v", e.State, e.Since.Format(time.TimeOnly), e.Err)
	}
	return fmt.Sprintf("tunnel: %s since %s", e.State, e.Since.Format(time.TimeOnly))
}

// Unwrap returns why the last attempt failed.
func (e *DownError) Unwrap() error { return e.Err }

// LineConfig says where a line leads.
type LineConfig struct {
	Dialer Dialer
	Tunnel Config // of each tunnel
	// NeedsPerson reports whether an attempt failed so that trying again is useless, or harmful, before a person has
	// done something. nil: only what fails with [ErrWouldAsk].
	NeedsPerson func(error) bool
	// Attempt is how long one silent attempt may take; 0: 20 s.
	Attempt time.Duration
	Log     *slog.Logger // nil: nothing is logged

	dial func(ctx context.Context, d Dialer, c Config) (link, error) // for tests; nil: Dial
}

// link is a [Tunnel] as a line needs it.
type link interface {
	Open(ctx context.Context, class Class) (Stream, error)
	Probe(ctx context.Context) error
	Peer() Peer
	Stats() Stats
	Done() <-chan struct{}
	Err() error
	Close() error
}

// Line keeps one tunnel to one peer alive for as long as it runs. When the tunnel is lost it dials another one: streams
// end with their tunnel, and whatever lives longer resumes on the next. All methods are safe for concurrent use.
//
// A peer that is silent is asked for a sign of life, and its tunnel ends after two questions without an answer.
// Meanwhile a fresh tunnel is dialled already: a connection that was cut recovers much later than the path does.
// Attempts in the background are silent. When they need a person, they stop until [Line.Reconnect].
type Line struct {
	config   LineConfig
	nudges   chan struct{} // of capacity 1
	manual   chan manualTry
	running  sync.Mutex   // held by Run
	attached atomic.Int64 // streams that a person or a transfer waits on

	mu      sync.Mutex // guards what follows
	status  LineStatus
	link    link // nil: none is up
	changed chan struct{}
	over    bool // Run has returned
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
	if config.Attempt == 0 {
		config.Attempt = 20 * time.Second
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
		config: config, nudges: make(chan struct{}, 1), manual: make(chan manualTry),
		status: LineStatus{State: LineOff, Since: time.Now()}, changed: make(chan struct{}),
	}
}

// Open opens a stream through the tunnel that is up. It fails at once: with [*DownError] where there is none, or
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
	s := l.status
	return &DownError{State: s.State, Since: s.Since, LastHeard: s.LastHeard, NextTry: s.NextTry, Err: s.Err}
}

// WaitUp waits until there is a tunnel. It fails with ctx's error, or with [*DownError] once Run has returned.
func (l *Line) WaitUp(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, over, changed := l.link, l.over, l.changed
		l.mu.Unlock()
		if over {
			return l.down()
		}
		var done <-chan struct{}
		if up != nil {
			if done = up.Done(); !expired(done) {
				return ctx.Err()
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Status returns the line as it is now, and a channel that is closed when its state, error, peer, carriers or plan
// changes.
func (l *Line) Status() (LineStatus, <-chan struct{}) {
	l.mu.Lock()
	s, up, changed := l.status, l.link, l.changed
	l.mu.Unlock()
	if up != nil {
		stats := up.Stats()
		s.RTT, s.Carriers, s.Version = stats.RTT, stats.Carriers, stats.Version
		if stats.LastHeard.After(s.LastHeard) {
			s.LastHeard = stats.LastHeard
		}
	}
	return s, changed
}

// Nudge says that the network may have changed or that the machine woke up: the line checks its tunnel at once.
func (l *Line) Nudge() {
	select {
	case l.nudges <- struct{}{}:
	default:
	}
}

// Reconnect tries at once, on behalf of a person who can answer questions, and returns when a tunnel is up or this
// attempt has failed. If a tunnel is up, it only checks it.
func (l *Line) Reconnect(ctx context.Context) error {
	try := manualTry{ctx: ctx, done: make(chan error, 1)}
	for {
		l.mu.Lock()
		over, changed := l.over, l.changed
		l.mu.Unlock()
		if over {
			return l.down()
		}
		select {
		case l.manual <- try:
		case <-changed:
			continue // it may be over
		case <-ctx.Done():
			return ctx.Err()
		}
		break
	}
	select {
	case err := <-try.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish changes the status and announces it.
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

// use makes t the tunnel that streams are opened through; nil: none.
func (l *Line) use(t link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link = t
}

func (l *Line) busy() bool { return l.attached.Load() > 0 }
