package agentrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
)

// Bounds of what a handler keeps of lasting streams that run over no tunnel.
const (
	lostOfPeer = 64  // of one peer; the one that was lost first goes first
	lostOfAll  = 256 // of all; then of the peer that has most

	// handOnWithin is how long what a caller left behind may take to be handed on.
	handOnWithin = 10 * time.Second
)

// lastings are the lasting streams of a handler's callers.
type lastings struct {
	running sync.WaitGroup // of what joins streams with what they lead to

	mu     sync.Mutex // guards everything below
	known  map[callKey]*joined
	lost   []*joined // in the order of their loss
	closed bool
}

// joined is a lasting stream with what it leads to.
type joined struct {
	*lasting
	key    callKey
	opened chan struct{} // closed when far or err is there
	far    io.ReadWriteCloser
	err    error // that it was not opened
	expiry *time.Timer
}

// errForgotten says that a stream is over where it would go on.
var errForgotten = &session.Error{Code: codeForgotten, Message: "This connection is not kept any more.",
	Hint: "Connect anew."}

// join returns the stream of a key. first: the caller opens it.
func (l *lastings) join(key callKey, at lastingAt, window uint64) (j *joined, first bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch known := l.known[key]; {
	case l.closed:
		return nil, false, net.ErrClosed
	case known != nil:
		return known, false, nil
	case at.Begun:
		return nil, false, errForgotten
	}
	j = &joined{lasting: newLasting(window), key: key, opened: make(chan struct{})}
	if l.known == nil {
		l.known = map[callKey]*joined{}
	}
	l.known[key] = j
	return j, true, nil
}

// forget drops a stream, which can then be closed.
func (l *lastings) forget(j *joined) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found(j)
	if l.known[j.key] == j {
		delete(l.known, j.key)
	}
}

// found needs mu: the stream is not lost any more.
func (l *lastings) found(j *joined) {
	if at := slices.Index(l.lost, j); at >= 0 {
		l.lost = slices.Delete(l.lost, at, at+1)
		j.expiry.Stop()
	}
}

// back tells that a stream runs over a tunnel again.
func (l *lastings) back(j *joined) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found(j)
}

// lose keeps a stream that runs over no tunnel, for a time and in bounds.
func (l *lastings) lose(j *joined) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[j.key] != j || slices.Contains(l.lost, j) || j.runs() {
		return
	}
	j.expiry = time.AfterFunc(lastingFor, func() { j.finish(io.ErrUnexpectedEOF) })
	l.lost = append(l.lost, j)
	ofPeer := map[callKey]int{}
	most := j.key.peer()
	for _, other := range l.lost {
		peer := other.key.peer()
		if ofPeer[peer]++; ofPeer[peer] > ofPeer[most] {
			most = peer
		}
	}
	if ofPeer[most] > lostOfPeer || len(l.lost) > lostOfAll {
		victim := slices.IndexFunc(l.lost, func(other *joined) bool { return other.key.peer() == most })
		go l.lost[victim].finish(io.ErrUnexpectedEOF)
	}
}

// close ends all streams and returns when they have.
func (l *lastings) close() {
	l.mu.Lock()
	l.closed = true
	known := make([]*joined, 0, len(l.known))
	for _, j := range l.known {
		known = append(known, j)
	}
	l.mu.Unlock()
	for _, j := range known {
		j.finish(net.ErrClosed)
	}
	l.running.Wait()
}

// last answers a call that opens a lasting stream or goes on with one.
func (v *visit) last(ctx context.Context, window uint64, open func(context.Context) (io.ReadWriteCloser, error)) {
	defer v.close()
	all := &v.handler.lastings
	at := *v.request.Lasting
	j, first, err := all.join(keyOf(v.peer, v.request.ID), at, window)
	if err != nil {
		v.fail(err)
		return
	}
	opening, giveUp := context.WithTimeout(ctx, v.limit)
	defer giveUp()
	attached := make(chan bool, 1)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		next, err := v.wire.in.Peek(1)
		if err != nil || kind(next[0]) == kindCancel {
			giveUp() // only who reads sees that a caller leaves
		}
		if <-attached {
			j.receive(v.wire)
		}
	}()
	if first {
		all.open(opening, j, open)
	}
	err = v.resume(opening, j, at)
	attached <- err == nil
	if err != nil {
		v.fail(err)
	} else {
		j.send(v.wire)
	}
	v.close()
	<-reading
	all.lose(j)
}

// resume has a stream that is open run over the wire of a visit.
func (v *visit) resume(ctx context.Context, j *joined, at lastingAt) error {
	select {
	case <-j.opened:
	case <-ctx.Done():
		return ctx.Err()
	}
	if j.err != nil {
		return j.err
	}
	if !j.lives() {
		return errForgotten
	}
	received, err := j.attach(v.wire, at)
	if err != nil {
		return err
	}
	v.handler.lastings.back(j)
	return v.wire.send(kindAnswer, lastingAnswer{Lasting: &lastingAt{Received: received, Window: j.window}})
}

// open opens what a stream leads to and joins them.
func (l *lastings) open(ctx context.Context, j *joined, open func(context.Context) (io.ReadWriteCloser, error)) {
	defer close(j.opened)
	if j.far, j.err = open(ctx); j.err != nil {
		l.forget(j)
		return
	}
	l.running.Go(func() {
		j.relay()
		l.forget(j)
	})
}

// relay carries bytes between the stream and what it leads to until either ends.
func (j *joined) relay() {
	var copying sync.WaitGroup
	handedOn := make(chan struct{})
	copying.Go(func() { defer close(handedOn); j.up() })
	copying.Go(j.down)
	j.awaitOver()
	// What the caller had written before it left still goes its way.
	patience := time.NewTimer(handOnWithin)
	defer patience.Stop()
	select {
	case <-handedOn:
	case <-patience.C:
	}
	j.far.Close() //nolint:errcheck // nobody is left to be told
	j.finish(net.ErrClosed)
	copying.Wait()
}

// up hands the caller's bytes on.
func (j *joined) up() {
	_, err := io.Copy(writeOnly{j.far}, j.lasting)
	half, can := j.far.(halfCloser)
	switch {
	case err != nil:
		j.listenNoMore() // what follows is dropped
	case can:
		_ = half.CloseWrite() // a far end that is gone shows in what is read of it
	}
}

// down hands the far end's bytes to the caller.
func (j *joined) down() {
	_, err := io.Copy(writeOnly{j.lasting}, j.far)
	switch {
	case err != nil && !errors.Is(err, net.ErrClosed):
		j.breakOff(failure{Code: codeBroken, Message: err.Error()})
		return
	default:
		_ = j.CloseWrite() // it fails where the stream is gone already
	}
	if _, can := j.far.(halfCloser); !can {
		j.listenNoMore()
	}
}

// writeOnly hides that a writer may read by itself.
type writeOnly struct{ io.Writer }
