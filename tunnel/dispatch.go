package tunnel

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/xtaci/smux"
)

var (
	errAfterEnd = fmt.Errorf("%w: bytes after the end", ErrProtocol)
	errTooMuch  = fmt.Errorf("%w: more bytes than granted", ErrProtocol)
)

// acceptTries is how often a stream is looked for after a loss: all miss one that is there once in 2^64 times.
const acceptTries = 64

// read handles what the peer sends until the carrier ends. It returns ErrClosedByPeer after a goodbye.
func (c *carrier) read() error {
	signals, err := c.accept()
	if err != nil {
		return c.pipe.cause(err)
	}
	c.t.all.Go(c.meet)
	err = c.listen(signals)
	if errors.Is(err, ErrProtocol) || errors.Is(err, ErrClosedByPeer) {
		return err
	}
	return c.pipe.cause(err)
}

// accept returns the next stream of the peer. It removes the finalizer with which the library would close the stream.
func (c *carrier) accept() (*smux.Stream, error) {
	s, err := c.session.AcceptStream()
	// The library chooses by chance between a loss and a stream that came before it.
	for tries := 0; err != nil && tries < acceptTries; tries++ {
		s, err = c.session.AcceptStream()
	}
	if err != nil {
		return nil, err
	}
	<-c.pipe.unmet
	runtime.SetFinalizer(s, nil)
	return s, nil
}

func (c *carrier) meet() {
	for {
		s, err := c.accept()
		if err != nil {
			return
		}
		if f := c.find(s.ID()); f == nil || !f.meet(s) {
			_ = s.Close() // it is over already
		}
	}
}

func (c *carrier) listen(r *smux.Stream) error {
	buffer, held := make([]byte, readBuffer), 0
	for failed := false; ; {
		n, err := r.Read(buffer[held:])
		if n == 0 && err != nil {
			if failed {
				return err
			}
			failed = true // the library may report the loss before what came before it
			continue
		}
		held += n
		rest := buffer[:held]
		for {
			s, size, err := parseSignal(rest)
			if err == nil && size > 0 {
				err = c.handle(s)
			}
			if err != nil {
				return err
			}
			if size == 0 {
				break
			}
			rest = rest[size:]
		}
		held = copy(buffer, rest)
		c.pipe.understood(n)
	}
}

func (c *carrier) handle(s signal) error {
	t := c.t
	switch s.kind {
	case sigMark:
		at := time.Since(t.start)
		c.answers().answer(func(a *carrier) { a.acks[c.index] = pendingAck{s.number, at, true} })
	case sigAck:
		return t.acknowledged(s.id, s.number, s.at)
	case sigPing:
		c.answer(func(c *carrier) { c.pong, c.pongDue = s.number, true })
	case sigPong:
		t.ponged(s.number)
	case sigCopy:
		return c.copyArrived(s)
	case sigBye:
		return ErrClosedByPeer
	case sigOpen:
		return c.opened(s.id, s.value)
	case sigEnd, sigStop, sigGrant, sigReset:
		return c.handleStream(s)
	}
	return nil
}

// answers returns the carrier for the answers to this one's marks. A lost answer holds up what is behind it, so they
// keep away from key strokes unless bulk of this side would delay them.
func (c *carrier) answers() *carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate.idle() || c.gate.kind(time.Now()) == pathLossy {
		return c
	}
	return c.t.primary
}

// handleStream handles a signal of one stream. Those of streams that are over no longer matter.
func (c *carrier) handleStream(s signal) error {
	f := c.find(s.id)
	if f == nil {
		return nil
	}
	if f.class == 0 { // this goroutine sets it
		return fmt.Errorf("%w: signal %d for stream %d, which has no class", ErrProtocol, s.kind, s.id)
	}
	switch s.kind {
	case sigEnd:
		return f.ended(s.value)
	case sigStop:
		f.stopped()
	case sigGrant:
		if !f.allow(s.value, s.window) {
			return fmt.Errorf("%w: invalid grant", ErrProtocol)
		}
	case sigReset:
		why := io.ErrUnexpectedEOF
		if s.value == resetRefused {
			why = ErrTooManyStreams
		}
		c.t.forget(f)
		f.lost(why)
	}
	return nil
}

// ended handles the end of the peer's bytes, which are count.
func (f *flow) ended(count uint32) error {
	all := f.reach(endReceived)
	if f.in.arrived.Load() != count || f.in.awaits() {
		return fmt.Errorf("%w: an end after %d bytes of %d", ErrProtocol, f.in.arrived.Load(), count)
	}
	f.in.end(io.EOF)
	if all&bothEnds == bothEnds {
		f.t.forget(f)
	}
	return nil
}

// opened sets the class of a stream of the peer.
func (c *carrier) opened(id, class uint32) error {
	if class < uint32(Control) || class > uint32(Bulk) {
		return fmt.Errorf("%w: a stream of class %d", ErrProtocol, class)
	}
	c.book.Lock()
	f, lost, met := c.flows[id], c.flows == nil, false
	fresh := f != nil && f.class == 0
	if fresh {
		c.begun--
		f.class, met = Class(class), f.met
	}
	c.book.Unlock()
	switch {
	case met:
		return c.offer(f)
	case !fresh && !lost:
		return fmt.Errorf("%w: a class for stream %d", ErrProtocol, id)
	}
	return nil
}

// meet stores the library's stream and reports whether it is still needed.
func (f *flow) meet(s *smux.Stream) bool {
	if !f.in.meet(s) {
		return false
	}
	f.c.book.Lock()
	f.met = true
	named := f.class != 0
	f.c.book.Unlock()
	if named {
		if err := f.c.offer(f); err != nil {
			f.t.lose(f.c, err)
		}
	}
	return true
}

// offer lets Accept return a stream of the peer, or refuses the stream.
func (c *carrier) offer(f *flow) error {
	t := c.t
	t.mu.Lock()
	done := t.err != nil // then it breaks with the others
	if !done && t.theirs < t.cfg.MaxStreams {
		select {
		case t.accepted <- f:
			f.counted, done = true, true
			t.theirs++
		default: // as many wait to be accepted
		}
	}
	t.mu.Unlock()
	if done {
		return nil
	}
	c.drop(f)
	f.in.close()
	f.lost(ErrTooManyStreams)
	f.reach(readOver)
	var flood bool
	c.answer(func(c *carrier) {
		flood = len(c.refused) >= maxRefusals
		c.refused = append(c.refused, f.id)
	})
	if flood {
		return fmt.Errorf("%w: a flood of streams", ErrProtocol)
	}
	return nil
}

func (c *carrier) breakAll() {
	for _, f := range c.all(true) {
		c.t.forget(f)
		f.lost(io.ErrUnexpectedEOF)
	}
	c.know()
}

// acknowledged handles the answer to a mark of a carrier.
func (t *Tunnel) acknowledged(index uint32, value uint64, at time.Duration) error {
	if index > 1 {
		return fmt.Errorf("%w: an answer to carrier %d", ErrProtocol, index)
	}
	t.mu.Lock()
	c := [...]*carrier{t.primary, t.bulk}[index]
	t.mu.Unlock()
	if c == nil {
		return nil // it was lost, or never existed
	}
	fine, now := true, time.Now()
	c.answer(func(c *carrier) {
		if c.kind != pathShort {
			c.gate.see(c.socket.look(), now)
		}
		fine = c.gate.ack(value, at, now)
	})
	if !fine {
		return fmt.Errorf("%w: an answer to a mark that was never sent", ErrProtocol)
	}
	c.settle(now)
	return nil
}

// forget drops a stream that is over.
func (t *Tunnel) forget(f *flow) {
	f.c.drop(f)
	t.mu.Lock()
	defer t.mu.Unlock()
	if !f.counted {
		return
	}
	f.counted = false
	t.grownBy.Add(-f.in.release())
	if f.mine {
		t.ours--
	} else {
		t.theirs--
	}
}

// reserve reports whether a window may grow by n bytes, which its stream frees when it is forgotten.
func (t *Tunnel) reserve(n int64) bool {
	if t.grownBy.Add(n) <= windowMemory {
		return true
	}
	t.grownBy.Add(-n)
	return false
}
