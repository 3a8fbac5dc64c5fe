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

// spec is what both ends know of a method.
type spec struct {
	name   string        // on the wire
	class  tunnel.Class  // of its streams
	effect effect        // what becomes of a call that is cut
	limit  time.Duration // until the answer, where the caller sets no earlier deadline
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
	// at returns the arguments that ask for what follows the first bytes of a download that began at the offset which
	// its handler said.
	at func(A, int64) A
}

// downloaded is what a download gives. Offset is where its first byte lies in what it is a part of; negative: it cannot
// be resumed.
type downloaded struct {
	io.ReadCloser
	offset int64
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

// decode reads a call's arguments, or tells the caller why it cannot. Fields that it does not know are of a newer
// caller and ignored.
func decode[A any](v *visit) (args A, ok bool) {
	if len(v.request.Args) == 0 {
		return args, true
	}
	raw := v.request.Args
	v.request.Args = nil // a call may last, and needs them no more
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

// during makes a call that ends when its caller leaves, which is the cause of its context then, and closes its stream.
func during[A any](ctx context.Context, v *visit, do func(ctx context.Context, args A)) {
	args, ok := decode[A](v)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listening := v.heed(cancel)
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

// copy sends what there is to download. It returns what the caller is to be told.
func (m download[A]) copy(ctx context.Context, v *visit, args A) error {
	from, err := m.do(ctx, v.agent, args)
	if err != nil {
		return err
	}
	defer from.Close()
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	if err := v.wire.send(kindAnswer, downloadHead{Offset: from.offset}); err != nil {
		return nil //nolint:nilerr // the caller has left: there is nobody to tell
	}
	buffer := make([]byte, maxData)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, err := v.wire.data(buffer[:n]); err != nil {
				return nil //nolint:nilerr // see above
			}
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, io.EOF):
			_ = v.wire.signal(kindEnd) // see above
			return nil
		default:
			return err
		}
	}
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
