package agentrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/tunnel/resume"
)

// reader reads a download. If the client can wait for its connection, a download that is cut continues at the next byte
// when it is back.
type reader[A any] struct {
	method download[A]
	client *Client
	args   A
	ctx    context.Context //nolint:containedctx // of the whole download
	cancel context.CancelFunc

	// Only for Read.
	base int64 // offset of the first byte; negative: it cannot be resumed
	read int64 // bytes since then
	idle int   // how often in a row it was resumed without a byte
	end  error

	mu      sync.Mutex // guards what follows
	conn    *conn
	release func() bool
	closed  bool
}

// open begins a download. ctx bounds all of it.
func (m download[A]) open(ctx context.Context, c *Client, args A) (io.ReadCloser, error) {
	r := &reader[A]{method: m, client: c, args: args}
	r.ctx, r.cancel = context.WithCancel(ctx)
	if err := r.begin(args); err != nil {
		r.cancel()
		return nil, c.fail(ctx, err)
	}
	return r, nil
}

func (r *reader[A]) begin(args A) error {
	patience := time.Duration(0)
	if r.method.at == nil { // it cannot begin at a given byte, so its stream survives cuts
		patience = streamPatience
	}
	call, err := r.client.wish(r.method.spec, args, patience).open(r.ctx)
	if err != nil {
		return err
	}
	var head downloadHead
	if err := decodeReply(call.answer, &head); err != nil {
		call.discard()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		call.discard()
		return net.ErrClosed
	}
	r.base, r.read = head.Offset, 0
	r.conn, r.release = &conn{Stream: call.wire.stream, wire: call.wire}, call.release
	return nil
}

// Read fails with a [session.Error] if the agent does or is not reached any more.
func (r *reader[A]) Read(p []byte) (int, error) {
	for r.end == nil {
		r.mu.Lock()
		from, closed := r.conn, r.closed
		r.mu.Unlock()
		if closed {
			return 0, net.ErrClosed
		}
		n, err := from.Read(p)
		r.read += int64(n)
		if n > 0 || err == nil {
			return n, nil
		}
		_, answered := errors.AsType[*session.Error](err)
		switch {
		case answered || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed):
			r.end = err
		case r.ctx.Err() != nil || refused(err):
			r.end = r.client.fail(r.ctx, err)
		default:
			r.end = r.resume(err)
		}
	}
	return 0, r.end
}

// resume continues after a cut. If that is impossible it returns the cause.
func (r *reader[A]) resume(cause error) error {
	r.drop()
	if r.idle++; r.read > 0 {
		r.idle = 0
	}
	for try := r.idle; r.client.line != nil && r.base >= 0 && resume.WaitUp(r.ctx, r.client.line, try); try++ {
		at := r.base + r.read
		err := r.begin(r.method.at(r.args, at))
		if err == nil && r.base != at {
			r.drop()
			err = misfit("a download continues at another offset than requested")
		}
		if err == nil {
			return nil
		}
		cause = err
		if _, lost := errors.AsType[*lostError](err); !lost {
			break
		}
	}
	return r.client.fail(r.ctx, cause)
}

func (r *reader[A]) drop() {
	r.mu.Lock()
	from, release := r.conn, r.release
	r.release = nil
	r.mu.Unlock()
	if release != nil && release() {
		from.Close()
	}
}

// Close ends the download.
func (r *reader[A]) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.drop()
	r.cancel()
	return nil
}
