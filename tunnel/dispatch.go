package tunnel

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/xtaci/smux"
)

// What a peer must not send on a stream.
var (
	errAfterEnd = fmt.Errorf("%w: bytes after the end", ErrProtocol)
	errTooMuch  = fmt.Errorf("%w: more bytes than granted", ErrProtocol)
)

// read handles what the peer sends, until it ends. It returns ErrClosedByPeer after a goodbye.
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

// accept returns the next stream that the peer has opened. The library would close it once it is garbage, but only the
// tunnel may close streams.
func (c *carrier) accept() (*smux.Stream, error) {
	s, err := c.session.AcceptStream()
	if err != nil {
		return nil, err
	}
	<-c.pipe.unmet
	runtime.SetFinalizer(s, nil)
	return s, nil
}

// meet takes over the streams that the peer opens.
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

// listen acts upon the peer's signals.
func (c *carrier) listen(r *smux.Stream) error {
	buffer, held := make([]byte, readBuffer), 0
	for failed := false; ; {
		n, err := r.Read(buffer[held:])
		if n == 0 && err != nil {
			if failed {
				return err
			}
			failed = true // the loss may be told before what came before it
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

// handle takes a signal in.
func (c *carrier) handle(s signal) error {
	t := c.t
	switch s.kind {
	case sigMark:
		at := time.Since(t.start)
		c.answers().answer(func(a *carrier) { a.acks[c.index] = pendingAck{s.number, at, true} })
	case sigAck:
		return t.acknowledged(s.id, s.number, s.at)
	case sigPing:
		c.answer(func(c *carrier) { c.pong = pendingNumber{s.number, true} })
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

// answers returns the carrier that the answers to this one's marks go on. What the path loses of them holds up whatever
// is behind, so that they keep away from key strokes, unless bulk of this side's own would delay them.
func (c *carrier) answers() *carrier {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gate.idle() || c.gate.kind(time.Now()) == pathLossy {
		return c
	}
	return c.t.primary
}

// handleStream takes a signal of one stream in. Those of streams that are over no longer matter.
func (c *carrier) handleStream(s signal) error {
	f := c.find(s.id)
	if f == nil {
		return nil
	}
	if f.class == 0 { // it is this goroutine that sets it
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

// ended notes that the peer has sent its last byte, and how many it sent.
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

// opened takes the class of a stream of the peer in.
func (c *carrier) opened(id, class uint32) error {
	if class < uint32(Control) || class > uint32(Bulk) {
		return fmt.Errorf("%w: a stream of class %d", ErrProtocol, class)
	}
	c.book.Lock()
	f := c.flows[id]
	gone := c.flows == nil
	fresh := f != nil && f.class == 0
	met := false
	if fresh {
		c.begun--
		f.class, met = Class(class), f.met
	}
	c.book.Unlock()
	switch {
	case gone:
		return nil
	case !fresh:
		return fmt.Errorf("%w: a class for stream %d", ErrProtocol, id)
	case met:
		return c.offer(f)
	}
	return nil
}

// meet takes over the library's stream. It reports false when it does not need it.
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

// offer lets a stream of the peer be accepted, or refuses it.
func (c *carrier) offer(f *flow) error {
	t := c.t
	t.mu.Lock()
	taken := t.err != nil // then it breaks with the others
	if !taken && t.theirs < t.cfg.MaxStreams {
		select {
		case t.accepted <- f:
			f.counted, taken = true, true
			t.theirs++
		default: // as many wait to be accepted
		}
	}
	t.mu.Unlock()
	if taken {
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

// breakAll ends the streams of a carrier that is lost.
func (c *carrier) breakAll() {
	for _, f := range c.all(true) {
		c.t.forget(f)
		f.lost(io.ErrUnexpectedEOF)
	}
	c.know()
}

// acknowledged takes the answer to a mark in.
func (t *Tunnel) acknowledged(index uint32, value uint64, at time.Duration) error {
	t.mu.Lock()
	var c *carrier
	switch index {
	case 0:
		c = t.primary
	case 1:
		c = t.bulk
	}
	t.mu.Unlock()
	if index > 1 {
		return fmt.Errorf("%w: an answer to carrier %d", ErrProtocol, index)
	}
	if c == nil {
		return nil // of a carrier that is gone or never was
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

// reserve takes bytes of what all windows may grow by; they come back with the stream.
func (t *Tunnel) reserve(n int64) bool {
	if t.grownBy.Add(n) <= defaultMemory {
		return true
	}
	t.grownBy.Add(-n)
	return false
}
