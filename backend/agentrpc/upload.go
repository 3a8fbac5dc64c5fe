package agentrpc

import (
	"context"
	"errors"
	"io"

	"slipway/backend/session"
)

// upload is a method that receives a stream of bytes and has one answer. It is never repeated: after a loss the caller
// asks how much has arrived.
type upload[A, R any] struct {
	spec
	// do reads from until its end. All bytes have arrived if that is io.EOF; with any other error the caller has left.
	do func(ctx context.Context, a session.Agent, args A, from io.Reader) (R, error)
}

func (m upload[A, R]) serve(ctx context.Context, v *visit) {
	args, ok := decode[A](v)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	from := &arriving{conn: conn{Stream: v.wire.stream, wire: v.wire}, gone: func() { cancel(errLeft) }}
	result, err := m.do(ctx, v.agent, args, from)
	if !errors.Is(context.Cause(ctx), errLeft) {
		_ = v.wire.write(v.outcome(result, err)) // a caller that has left asks later
	}
}

// arriving is what a caller uploads.
type arriving struct {
	conn conn
	gone func()
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.conn.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		a.gone()
	}
	return n, err
}

// send makes the call with the bytes of from. It returns as soon as there is an answer, even before the end of from,
// when one Read of from may still be running. ctx bounds all of it.
func (m upload[A, R]) send(ctx context.Context, c *Client, args A, from io.Reader) (R, error) {
	var result R
	frame, err := c.wish(m.spec, args, streamPatience).frame(ctx)
	if err != nil {
		return result, err
	}
	stream, err := c.open(ctx, m.class, streamPatience)
	if err != nil {
		return result, c.fail(ctx, err)
	}
	w := newWire(stream, &c.codec)
	stop := context.AfterFunc(ctx, w.abandon)
	failed := make(chan error, 1) // of from
	go func() {
		if w.write(frame) != nil {
			return // the answer, or its absence, says why
		}
		_, err := io.Copy(&conn{Stream: stream, wire: w}, struct{ io.Reader }{from})
		switch {
		case w.broke():
		case err != nil:
			failed <- err
			w.abandon()
		default:
			_ = w.signal(kindEnd) // see above
		}
	}()
	answer, err := readAnswer(w)
	if stop() {
		stream.Close()
	}
	if err != nil {
		select {
		case own := <-failed:
			return result, own
		default:
		}
		return result, c.fail(ctx, err)
	}
	return judge[R](c, m.spec, answer, nil)
}
