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

// Sizes and times of a [Mux].
const (
	// StreamBuffer is how many bytes of one stream wait for its reader, in bytes; the peer then waits until some are
	// read.
	StreamBuffer = 256 << 10
	// MaxStreams is how many streams may be open at a time.
	MaxStreams = 256
	// sessionBuffer holds every stream's buffer at once, so that no number of stalled readers can stop the others. It
	// bounds memory and reserves none.
	sessionBuffer = MaxStreams * StreamBuffer
	// frameSize is the most that a frame carries, in bytes: an echo waits for one frame of bulk at most.
	frameSize = 32 << 10

	heartbeatInterval = 5 * time.Second
	heartbeatTimeout  = 20 * time.Second
	writeTimeout      = 15 * time.Second
)

// ErrWouldAsk is returned by a silent [Dialer.Dial] that cannot go on without asking a person.
var ErrWouldAsk = errors.New("tunnel: the connection needs a person's answer")

// ErrTooManyStreams is returned by [Mux.Open] when [MaxStreams] are open.
var ErrTooManyStreams = errors.New("tunnel: too many open streams")

// Mux multiplexes streams over one connection. All methods are safe for concurrent use. It owns the connection and ends
// with it.
type Mux struct {
	session  *smux.Session
	accepted chan *smux.Stream
	done     chan struct{}
	slots    chan struct{} // one token for each stream this side has opened
	stop     func() error
}

// NewMux starts multiplexing over conn, which belongs to the Mux from here on, also when NewMux fails.
func NewMux(conn net.Conn, role Role) (*Mux, error) {
	config := smux.DefaultConfig()
	config.Version = 2
	config.MaxFrameSize = frameSize
	config.MaxReceiveBuffer = sessionBuffer
	config.MaxStreamBuffer = StreamBuffer
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
	m := &Mux{
		session:  session,
		accepted: make(chan *smux.Stream, MaxStreams),
		done:     make(chan struct{}),
		slots:    make(chan struct{}, MaxStreams),
	}
	m.stop = sync.OnceValue(func() error {
		err := session.Close()
		close(m.done)
		return err
	})
	go m.watch(role)
	return m, nil
}

// watch accepts the peer's streams and ends the Mux as soon as the connection fails; the library would notice only at
// its next heartbeat.
func (m *Mux) watch(role Role) {
	defer func() { _ = m.stop() }()
	for {
		stream, err := m.session.AcceptStream()
		if err != nil || role == Opener {
			return // the connection is gone, or the peer breaks the rules
		}
		select {
		case m.accepted <- stream:
		default:
			go func() { _ = stream.Close() }() // the peer opens more than it may
		}
	}
}

// Open opens a stream. It returns before the peer has accepted it, and fails with [ErrTooManyStreams], net.ErrClosed
// once the Mux has ended, or ctx's error.
func (m *Mux) Open(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case m.slots <- struct{}{}:
	default:
		return nil, ErrTooManyStreams
	}
	stream, err := m.session.OpenStream()
	if err != nil {
		<-m.slots
		if m.session.IsClosed() {
			return nil, net.ErrClosed
		}
		return nil, fmt.Errorf("tunnel: open stream: %w", err)
	}
	return newStream(m.session, stream, func() { <-m.slots }), nil
}

// Accept returns the next stream that the peer opens, net.ErrClosed once the Mux has ended. Read from a stream before
// writing to it: the peer may not be able to receive before it has sent.
func (m *Mux) Accept() (net.Conn, error) {
	select {
	case <-m.done: // what still waits to be accepted is dead
		return nil, net.ErrClosed
	default:
	}
	select {
	case stream := <-m.accepted:
		return newStream(m.session, stream, func() {}), nil
	case <-m.done:
		return nil, net.ErrClosed
	}
}

// Done is closed when the Mux has ended, by either side.
func (m *Mux) Done() <-chan struct{} { return m.done }

// Close ends the Mux, its streams and its connection.
func (m *Mux) Close() error {
	err := m.stop()
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
	net.Conn // the library's stream, without a WriteTo that would pass this Read by
	session  *smux.Session
	closed   atomic.Bool
	release  func()
}

func newStream(session *smux.Session, s *smux.Stream, release func()) *stream {
	return &stream{Conn: s, session: session, release: sync.OnceFunc(release)}
}

// Read reads as [net.Conn] says. When the connection ends, what had arrived before is still delivered: the library may
// report the loss first, so a failed read is tried once more before it counts.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if n > 0 {
		return n, nil // the next call returns an error of the window update
	}
	if err != nil && !isTimeout(err) {
		n, err = s.Conn.Read(p)
		if n > 0 {
			return n, nil
		}
	}
	return 0, s.cause(err)
}

// cause tells the ends of a stream apart, which the library does not.
func (s *stream) cause(err error) error {
	switch {
	case s.closed.Load():
		return net.ErrClosed
	case err != nil && s.session.IsClosed():
		return io.ErrUnexpectedEOF
	}
	return err
}

// Write writes all of p or fails, with net.ErrClosed when either side has closed the stream.
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
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
