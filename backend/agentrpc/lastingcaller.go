package agentrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"slipway/backend/session"
)

// farFailure is what the reader of a stream is told of the far side's failure.
func farFailure(err error) error {
	if session.CodeOf(err) == codeBroken {
		return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
	return err
}

// caller is the caller's end of a lasting stream.
type caller struct {
	*lasting
	client *Client
	wish   *wish
	stream net.Conn // the first that it ran over, for its addresses
}

var (
	_ net.Conn   = (*caller)(nil)
	_ halfCloser = (*caller)(nil)
)

func (c *caller) LocalAddr() net.Addr  { return c.stream.LocalAddr() }
func (c *caller) RemoteAddr() net.Addr { return c.stream.RemoteAddr() }

// openLasting opens a stream that goes on over the next tunnel when the one that
// it runs over is lost. Where the handler cannot do that, it ends with its tunnel.
func (m duplex[A]) openLasting(ctx context.Context, c *Client, wish *wish) (net.Conn, error) {
	wish.lasting = &lastingAt{Window: m.window}
	call, err := wish.open(ctx, true)
	if err != nil {
		return nil, err
	}
	var answer lastingAnswer
	if err := decodeReply(call.answer, &answer); err != nil {
		call.wire.abandon()
		return nil, c.fail(ctx, wish.spec, err)
	}
	if answer.Lasting == nil { // an older handler
		return &conn{wire: call.wire, client: c}, nil
	}
	wish.lasting.Begun = true
	l := &caller{lasting: newLasting(m.window), client: c, wish: wish, stream: call.wire.stream}
	l.parts, l.refuse = true, c.refuse
	if _, err := l.attach(call.wire, *answer.Lasting); err != nil {
		call.wire.abandon()
		return nil, c.fail(ctx, wish.spec, err)
	}
	go l.last(call.wire)
	return l, nil
}

// last carries the stream over one wire after another until it is over.
func (c *caller) last(w *wire) {
	for {
		c.carry(w)
		if c.isOver() {
			w.abandon()
			return
		}
		w.stream.Close() //nolint:errcheck // it is lost
		next, err := c.reopen()
		if err != nil {
			c.finish(err)
			return
		}
		w = next
	}
}

// carry sends and receives over w until it is lost or the stream is over.
func (c *caller) carry(w *wire) {
	var receiving sync.WaitGroup
	receiving.Go(func() { c.receive(w) })
	c.send(w)
	_ = w.stream.SetReadDeadline(time.Unix(1, 0)) // lets receive go
	receiving.Wait()
}

// reopen waits for the next tunnel and opens a stream there that goes on where
// this one was lost.
func (c *caller) reopen() (*wire, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lastingFor)
	defer cancel()
	c.wish.lasting.Received = c.received()
	for try := 1; ; try++ {
		if !c.client.waitUp(ctx, try) {
			return nil, io.ErrUnexpectedEOF
		}
		call, err := c.again(ctx, try)
		var lost *lostError
		switch {
		case err == nil:
			return call, nil
		case errors.As(err, &lost) || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			continue
		case session.CodeOf(err) == CodeBusy:
			continue
		}
		if refused(err) {
			err = c.client.refuse(err)
		}
		return nil, fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
	}
}

// again asks once for the stream to go on.
func (c *caller) again(ctx context.Context, try int) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, c.wish.spec.limit)
	defer cancel()
	frame, err := c.wish.frame(ctx, try)
	if err != nil {
		return nil, err
	}
	call, err := c.client.start(ctx, c.wish.spec, frame)
	if err == nil && !call.release() {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	var answer lastingAnswer
	if err = decodeReply(call.answer, &answer); err == nil && answer.Lasting == nil {
		err = misfit("the stream that goes on does not last")
	}
	if err != nil {
		call.wire.abandon()
		return nil, err
	}
	if _, err := c.attach(call.wire, *answer.Lasting); err != nil {
		call.wire.abandon()
		return nil, err
	}
	return call.wire, nil
}
