package agentrpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"slipway/backend/session"
	"slipway/tunnel"
)

// conn is the data of a stream of bytes as a [net.Conn]. Each direction ends by itself; a direction that ends otherwise
// than by its end frame was lost, which reads as io.ErrUnexpectedEOF.
type conn struct {
	tunnel.Stream // of wire

	wire   *wire
	client *Client // whose agent the peer is; nil: it is a caller
	closed atomic.Bool

	// The reader's own.
	left int   // bytes of the data frame under way
	end  error // how reading ended
}

var _ net.Conn = (*conn)(nil)

// Read reads what the peer sends: io.EOF after its end, its [session.Error] after a failure.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for c.left == 0 && c.end == nil {
		if err := c.open(); err != nil {
			return 0, c.cause(err)
		}
	}
	if c.left == 0 {
		return 0, c.cause(c.end)
	}
	n, err := c.wire.in.Read(p[:min(len(p), c.left)])
	c.left -= n
	if n > 0 {
		return n, nil // what ended the stream comes back with the next read
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return 0, c.cause(err)
}

// open reads the header of the next data frame, or how the direction ended.
func (c *conn) open() error {
	h, err := c.wire.head()
	if err != nil {
		return err
	}
	switch h.kind {
	case kindData:
		c.left = h.length
	case kindEnd:
		c.end = io.EOF
	case kindAlive:
	case kindFailure:
		c.end = farFailure(readFailure(c.wire, h))
	default:
		c.end = broken("frame %q among data", byte(h.kind))
	}
	return nil
}

// cause tells an end that this side made from others. A tunnel that is given up closes its streams here, which is a
// loss to whoever reads.
func (c *conn) cause(err error) error {
	switch {
	case err == nil || isTimeout(err):
		return err
	case c.closed.Load():
		return net.ErrClosed
	case errors.Is(err, net.ErrClosed):
		return io.ErrUnexpectedEOF
	case c.client != nil && refused(err):
		return c.client.refuse(err)
	}
	return err
}

// Write sends all of p or fails.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.wire.data(p)
	if errors.Is(err, net.ErrClosed) {
		return n, err // the peer takes no more
	}
	return n, c.cause(err)
}

// CloseWrite ends this side's bytes; the peer's still come.
func (c *conn) CloseWrite() error { return c.cause(c.wire.end()) }

// Close ends both directions.
func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.Stream.Close()
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// halfCloser is what can end one direction and go on with the other.
type halfCloser interface{ CloseWrite() error }

// farFailure is what the reader of a stream is told of the far side's failure.
func farFailure(err error) error {
	if session.CodeOf(err) == session.CodeAgentBroken {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return err
}
