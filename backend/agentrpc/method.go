package agentrpc

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// Version is the version of the protocol. The next one is accepted too, and none before oldest, whose streams ended
// with their tunnels.
const (
	Version = 2
	oldest  = 2
)

// request is the first frame of every stream.
type request struct {
	Version int             `json:"v"`
	Method  string          `json:"method"`
	Limit   time.Duration   `json:"limit,omitempty"` // how long the caller waits; 0: as long as it takes
	Args    json.RawMessage `json:"args,omitempty"`
}

// Hello describes a handler.
type Hello struct {
	Version int      `json:"version"`           // of the protocol
	Oldest  int      `json:"oldest"`            // version that it supports
	Methods []string `json:"methods"`           // sorted
	Program string   `json:"program,omitempty"` // version of the program
}

// none is no arguments or no answer.
type none struct{}

// effect is whether a call may be repeated when it is cut.
type effect int

const (
	read  effect = iota // changes nothing: any number of times
	again               // asks for a state: once more if its stream was lost
	once                // never
)

// spec is the part of a method that both ends use.
type spec struct {
	name   string        // on the wire
	class  tunnel.Class  // of its streams
	effect effect        // of a call
	limit  time.Duration // until the answer, unless the caller has an earlier deadline
}

func (s spec) about() spec { return s }

// served is a method as the handler sees it.
type served interface {
	about() spec
	// serve answers one call and closes its stream.
	serve(ctx context.Context, v *visit)
}

// plain is a method with one answer.
type plain[A, R any] struct {
	spec
	do func(context.Context, session.Agent, A) (R, error)
}

// feed is a method that watches something until it fails or the caller leaves.
type feed[A, V any] struct {
	spec
	do func(ctx context.Context, a session.Agent, args A, tell func(V) error) error
}

// download is a method whose answer is a stream of bytes.
type download[A any] struct {
	spec
	do func(context.Context, session.Agent, A) (downloaded, error)
	at func(A, int64) A // returns the arguments for what follows an offset
}

// downloaded is the result of a download.
type downloaded struct {
	io.ReadCloser
	offset int64 // of its first byte in what it is a part of; negative: it cannot be resumed
}

// downloadHead is the answer before a download's bytes.
type downloadHead struct {
	Offset int64 `json:"offset"`
}

// duplex is a method that opens a stream of bytes both ways.
type duplex[A any] struct {
	spec
	do func(context.Context, session.Agent, A) (io.ReadWriteCloser, error)
}

// decode decodes a call's arguments, or sends the failure. It ignores unknown fields, which are of a newer caller.
func decode[A any](v *visit) (args A, ok bool) {
	if len(v.request.Args) == 0 {
		return args, true
	}
	raw := v.request.Args
	v.request.Args = nil // frees them, since a call may last
	err := json.Unmarshal(raw, &args)
	if err != nil {
		v.fail(session.WrapError(err, session.CodeAgentInvalid,
			"The agent does not understand the arguments of "+v.request.Method+".", "Upgrade the older side."))
	}
	return args, err == nil
}

func (m plain[A, R]) serve(ctx context.Context, v *visit) {
	args, ok := decode[A](v)
	if !ok {
		return
	}
	v.answer(ctx, func(ctx context.Context) (any, error) { return m.do(ctx, v.agent, args) })
}

// during makes a call that ends when its caller leaves, with the cause errLeft, and closes its stream.
func during[A any](ctx context.Context, v *visit, do func(ctx context.Context, args A)) {
	args, ok := decode[A](v)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listening := v.heed(cancel, false)
	do(ctx, args)
	v.close()
	<-listening
}

func (m feed[A, V]) serve(ctx context.Context, v *visit) {
	during(ctx, v, func(ctx context.Context, args A) {
		err := v.wire.send(kindAnswer, none{})
		if err == nil {
			stop := v.stayAlive(ctx)
			err = m.do(ctx, v.agent, args, func(value V) error {
				v.told.Store(true)
				return v.wire.send(kindEvent, value)
			})
			stop()
		}
		if !errors.Is(context.Cause(ctx), errLeft) {
			v.fail(err)
		}
	})
}

func (m download[A]) serve(ctx context.Context, v *visit) {
	during(ctx, v, func(ctx context.Context, args A) {
		if err := m.copy(ctx, v, args); err != nil {
			v.fail(err)
		}
	})
}

// copy sends the download. It returns the failure for the caller.
func (m download[A]) copy(ctx context.Context, v *visit, args A) error {
	from, err := m.do(ctx, v.agent, args)
	if err != nil {
		return err
	}
	defer from.Close()
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	if err := v.wire.send(kindAnswer, downloadHead{Offset: from.offset}); err != nil {
		return nil //nolint:nilerr // the caller has left
	}
	switch read, wrote := v.wire.copy(from); {
	case wrote != nil: // the caller has left
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(read, io.EOF):
		return read
	}
	_ = v.wire.signal(kindEnd) // the caller may have left
	return nil
}

func (m duplex[A]) serve(ctx context.Context, v *visit) {
	args, ok := decode[A](v)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &relay{visit: v, opened: make(chan io.ReadWriteCloser, 1), callerEnded: make(chan struct{}),
		upEnded: make(chan struct{})}
	go r.up(cancel)
	far, err := m.do(ctx, v.agent, args)
	if err != nil {
		close(r.opened)
		v.fail(err)
	} else {
		r.opened <- far
		r.down(ctx, far)
	}
	v.close()
	<-r.upEnded
}

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
