package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtaci/smux"
)

// Role is the part that one side of a connection plays.
type Role int

// The roles. The two sides of one connection have different ones.
const (
	Opener Role = iota + 1
	Accepter
)

// Sizes in bytes, and times, of a [Mux].
const (
	// MaxStreams is how many streams may be open at a time.
	MaxStreams = 256

	streamBuffer      = 256 << 10                 // of one stream that wait for its reader, before the peer has to wait
	sessionBuffer     = MaxStreams * streamBuffer // so that no number of stalled readers stops the others
	frameSize         = 32 << 10                  // an echo waits for at most one frame of bulk
	heartbeatInterval = 5 * time.Second
	heartbeatTimeout  = 20 * time.Second
	writeTimeout      = 15 * time.Second
)

var (
	// ErrWouldAsk is returned by a silent [Dialer.Dial] that would have to ask a person.
	ErrWouldAsk = errors.New("tunnel: the connection needs a person's answer")
	// ErrTooManyStreams means that as many streams are open as may be.
	ErrTooManyStreams = errors.New("tunnel: too many open streams")
)

// Mux multiplexes streams over one connection, which it owns and ends with. All methods are safe for concurrent use.
type Mux struct {
	session  *smux.Session
	accepted chan *smux.Stream
	slots    chan struct{} // one token for each stream that this side has opened
}

// NewMux starts multiplexing over conn, which belongs to the Mux, also when NewMux fails.
func NewMux(conn net.Conn, role Role) (*Mux, error) {
	config := smux.DefaultConfig()
	config.Version = 2
	config.MaxFrameSize = frameSize
	config.MaxReceiveBuffer = sessionBuffer
	config.MaxStreamBuffer = streamBuffer
	config.KeepAliveInterval = heartbeatInterval
	config.KeepAliveTimeout = heartbeatTimeout

	guarded := &deadlineConn{Conn: conn}
	var session *smux.Session
	var err error
	switch role {
	case Opener:
		session, err = smux.Client(guarded, config)
	case Accepter:
		session, err = smux.Server(guarded, config)
	default:
		err = fmt.Errorf("tunnel: role %d is neither opener nor accepter", role)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	m := &Mux{session, make(chan *smux.Stream, MaxStreams), make(chan struct{}, MaxStreams)}
	go m.watch(role)
	return m, nil
}

// watch accepts the peer's streams and ends the Mux as soon as the connection fails; the library would notice only at
// its next heartbeat.
func (m *Mux) watch(role Role) {
	defer m.session.Close()
	for {
		stream, err := m.session.AcceptStream()
		if err != nil || role == Opener {
			return // the connection has failed, or the peer breaks the rules
		}
		select {
		case m.accepted <- stream:
		default:
			go func() { _ = stream.Close() }() // the peer opens more than it may
		}
	}
}

// Open opens a stream without waiting for the peer to accept it. It fails with [ErrTooManyStreams], net.ErrClosed once
// the Mux has ended, or ctx's error.
func (m *Mux) Open(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case m.slots <- struct{}{}:
	default:
		return nil, ErrTooManyStreams
	}
	opened, err := m.session.OpenStream()
	if err != nil {
		<-m.slots
		if m.session.IsClosed() {
			return nil, net.ErrClosed
		}
		return nil, fmt.Errorf("tunnel: open stream: %w", err)
	}
	return &stream{Conn: opened, session: m.session, release: sync.OnceFunc(func() { <-m.slots })}, nil
}

// Accept returns the next stream that the peer opens, net.ErrClosed once the Mux has ended. Read from a stream before
// writing to it: the peer may not be able to receive before it has sent.
func (m *Mux) Accept() (net.Conn, error) {
	if m.session.IsClosed() { // streams that wait to be accepted have ended too
		return nil, net.ErrClosed
	}
	select {
	case accepted := <-m.accepted:
		return &stream{Conn: accepted, session: m.session, release: func() {}}, nil
	case <-m.Done():
		return nil, net.ErrClosed
	}
}

// Done is closed when the Mux has ended, by either side.
func (m *Mux) Done() <-chan struct{} { return m.session.CloseChan() }

// Close ends the Mux, its streams and its connection.
func (m *Mux) Close() error {
	err := m.session.Close()
	if errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// deadlineConn gives every write a deadline, so that a half-open connection fails instead of blocking the writer.
type deadlineConn struct{ net.Conn }

func (c *deadlineConn) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// stream is one stream of a [Mux]. Its end is io.EOF when the peer closed it, net.ErrClosed when this side did, and
// io.ErrUnexpectedEOF when the connection was lost, so that half an answer is not mistaken for a whole one.
type stream struct {
	net.Conn // the library's stream, without its WriteTo, which would bypass Read
	session  *smux.Session
	closed   atomic.Bool
	release  func() // may be called more than once
}

// Read still delivers what had arrived when the connection ended: the library may report the loss first, so a failed
// read is tried once more.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n == 0 && err != nil && !isTimeout(err) {
		n, err = s.Conn.Read(p)
	}
	switch {
	case n > 0:
		return n, nil // the next call returns an error of the window update
	case s.closed.Load():
		return 0, net.ErrClosed
	case err != nil && s.session.IsClosed():
		return 0, io.ErrUnexpectedEOF
	}
	return 0, err
}

// Write fails with net.ErrClosed when either side has closed the stream.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		return n, net.ErrClosed
	}
	return n, err
}

// Close closes both directions. The peer reads what was written before, then io.EOF.
func (s *stream) Close() error {
	defer s.release()
	s.closed.Store(true)
	if err := s.Conn.Close(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return err
	}
	return nil
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
