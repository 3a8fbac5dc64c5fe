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

// conn is the data of a stream as a [net.Conn]. Each direction ends by itself. One that ends without an end frame was
// lost, which reads as io.ErrUnexpectedEOF.
type conn struct {
	tunnel.Stream // of wire

	wire   *wire
	client *Client // of the agent at the other end; nil: that is a caller
	closed atomic.Bool

	// Only for the reader.
	left int   // bytes left of the data frame
	end  error // how reading ended
}

var _ net.Conn = (*conn)(nil)

// Read fails with io.EOF after the peer's end, and with its [session.Error] after a failure.
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
		return n, nil // the next read returns the error
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return 0, c.cause(err)
}

// open reads the header of the next data frame, or the end of the direction.
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
		var body []byte
		if body, c.end = c.wire.body(h); c.end == nil {
			c.end = parseFailure(body)
		}
		if session.CodeOf(c.end) == session.CodeAgentBroken {
			c.end = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, c.end)
		}
	default:
		c.end = broken("frame %q among data", byte(h.kind))
	}
	return nil
}

// cause returns net.ErrClosed if this side closed the conn. If the tunnel closed the stream, it was lost.
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

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.wire.data(p)
	if errors.Is(err, net.ErrClosed) {
		return n, err // the peer accepts no more
	}
	return n, c.cause(err)
}

func (c *conn) CloseWrite() error { return c.cause(c.wire.end()) }

func (c *conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	return c.Stream.Close()
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// halfCloser can end one direction and continue with the other.
type halfCloser interface{ CloseWrite() error }
