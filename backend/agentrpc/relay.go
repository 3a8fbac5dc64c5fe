package agentrpc

import (
	"context"
	"errors"
	"io"
	"time"

	"slipway/backend/session"
	"slipway/tunnel/resume"
)

const (
	// probeEvery is how often a caller whose bytes are not taken is tried: that it has left does not show otherwise.
	probeEvery = 30 * time.Second
	// handOnWithin is how long what a caller left behind may take to be handed on.
	handOnWithin = 10 * time.Second
)

// relay joins a caller with what it opened.
type relay struct {
	visit       *visit
	opened      chan io.ReadWriteCloser // closed where the opening failed
	callerEnded chan struct{}           // closed at the caller's end of its bytes, or its leaving
	upEnded     chan struct{}           // closed when up has returned
}

// up hands the caller's bytes on. It begins before the far end is open, since only who reads sees that a caller leaves.
func (r *relay) up(cancel context.CancelCauseFunc) {
	defer close(r.upEnded)
	first, err := r.visit.wire.in.Peek(1)
	if err != nil || kind(first[0]) == kindCancel {
		cancel(errLeft)
	}
	far, ok := <-r.opened
	if !ok {
		close(r.callerEnded)
		return
	}
	r.pump(far)
	far.Close()
	cancel(errLeft)
}

// pump copies the caller's bytes to far until the caller leaves.
func (r *relay) pump(far io.ReadWriteCloser) {
	caller := &conn{Stream: r.visit.wire.stream, wire: r.visit.wire}
	buffer := make([]byte, maxData)
	var probe *time.Timer
	probe = time.AfterFunc(probeEvery, func() {
		if r.callerLeft() {
			far.Close()
			return
		}
		probe.Reset(probeEvery)
	})
	probe.Stop()
	var deaf error // of the first write that far refused: what follows is dropped
	for {
		n, err := caller.Read(buffer)
		if n > 0 && deaf == nil {
			probe.Reset(probeEvery) // while that takes long, see whether the caller is still there
			_, deaf = far.Write(buffer[:n])
			probe.Stop()
		}
		if err == nil {
			continue
		}
		close(r.callerEnded)
		if errors.Is(err, io.EOF) {
			if half, can := far.(halfCloser); can {
				_ = half.CloseWrite() // a far end that is gone shows in what is read of it
			}
			_, _ = r.visit.wire.in.Peek(1) // returns when the caller leaves or breaks the rules
		}
		return
	}
}

// callerLeft reports whether the caller is gone.
func (r *relay) callerLeft() bool {
	s, resumes := r.visit.wire.stream.(*resume.Stream)
	if !resumes {
		return r.visit.wire.signal(kindAlive) != nil
	}
	select {
	case <-s.Left():
		return true
	default:
		return false
	}
}

// down sends the far end's bytes to the caller until either ends.
func (r *relay) down(ctx context.Context, far io.ReadWriteCloser) {
	defer far.Close()
	w := r.visit.wire
	if w.send(kindAnswer, none{}) != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { far.Close() })
	defer stop()
	buffer := make([]byte, maxData)
	for {
		n, err := far.Read(buffer)
		if n > 0 {
			if _, err := w.data(buffer[:n]); err != nil {
				r.handOn()
				return
			}
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return
		case errors.Is(err, io.EOF):
			if w.end() == nil {
				r.linger(ctx, far)
			}
			return
		default:
			frame, _ := w.codec.encode(kindFailure, failure{Code: session.CodeAgentBroken, Message: err.Error()})
			_ = w.put(frame) // the caller may have left
			return
		}
	}
}

// handOn gives what the caller had written before it left some time.
func (r *relay) handOn() {
	select {
	case <-r.upEnded:
	case <-time.After(handOnWithin):
	}
}

// linger waits for the caller's end where far can still take its bytes.
func (r *relay) linger(ctx context.Context, far io.ReadWriteCloser) {
	if _, can := far.(halfCloser); !can {
		return
	}
	select {
	case <-r.callerEnded:
	case <-ctx.Done():
	}
}
