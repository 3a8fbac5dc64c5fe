package tunnel

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/xtaci/smux"
)

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
