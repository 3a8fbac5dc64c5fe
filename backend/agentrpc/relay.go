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
	probeEvery   = 30 * time.Second // probes whether a caller is there, while its bytes are not accepted
	handOnWithin = 10 * time.Second // for the bytes of a caller that has left to reach the far end
)

// relay connects a caller with what it opened, the far end.
type relay struct {
	visit       *visit
	opened      chan io.ReadWriteCloser // closed if the opening failed
	callerEnded chan struct{}           // closed when the caller ends its bytes or leaves
	upEnded     chan struct{}           // closed when up has returned
}

// up passes the caller's bytes on. It starts before the far end is open, since only a reader sees that a caller leaves.
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
	var deaf error // of the first failed write to far: what follows is dropped
	for {
		n, err := caller.Read(buffer)
		if n > 0 && deaf == nil {
			probe.Reset(probeEvery) // finds out whether the caller is still there if this takes long
			_, deaf = far.Write(buffer[:n])
			probe.Stop()
		}
		if err == nil {
			continue
		}
		close(r.callerEnded)
		if errors.Is(err, io.EOF) {
			if half, can := far.(halfCloser); can {
				_ = half.CloseWrite() // a lost far end fails the reads
			}
			_, _ = r.visit.wire.in.Peek(1) // returns when the caller leaves or breaks the rules
		}
		return
	}
}

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
	switch read, wrote := w.copy(far); {
	case wrote != nil: // the caller has left
		select {
		case <-r.upEnded:
		case <-time.After(handOnWithin):
		}
	case ctx.Err() != nil:
	case errors.Is(read, io.EOF):
		if _, can := far.(halfCloser); w.end() == nil && can { // far still accepts the caller's bytes
			select {
			case <-r.callerEnded:
			case <-ctx.Done():
			}
		}
	default:
		frame, _ := w.codec.encode(kindFailure, failure{Code: session.CodeAgentBroken, Message: read.Error()})
		_ = w.put(frame) // the caller may have left
	}
}
