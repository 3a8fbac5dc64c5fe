package tunnel

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"time"
)

// smallChunk is up to how many bytes of a frame get a buffer of their own size.
const smallChunk = 2 << 10

// deliver reads a data frame's bytes into the inbox of its stream.
func (t *Tunnel) deliver(c *carrier, h header, r *bufio.Reader) error {
	var piece chunk
	if h.length <= smallChunk {
		piece.data = make([]byte, h.length)
	} else {
		piece.pooled = t.buffers.get()
		piece.data = (*piece.pooled)[:h.length]
	}
	if _, err := io.ReadFull(r, piece.data); err != nil {
		return fmt.Errorf("tunnel: read: %w", err)
	}
	f := t.find(h.id)
	if f == nil || f.c != c {
		recycle(piece, &t.buffers)
		return nil // of a stream that is over
	}
	if f.ends.Load()&endReceived != 0 {
		return fmt.Errorf("%w: bytes after the end", ErrProtocol)
	}
	taken, err := f.in.add(piece, &t.buffers)
	if err == nil && !taken {
		f.tell(f.c, dueStop) // the first may have come before the stream
	}
	return err
}

func (t *Tunnel) find(id uint32) *flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flows[id]
}

// handle takes a frame other than data in.
func (t *Tunnel) handle(c *carrier, h header, body [16]byte) error {
	value := binary.LittleEndian.Uint64(body[:])
	switch h.cmd {
	case cmdMark:
		if h.id > 1 {
			return fmt.Errorf("%w: a mark of carrier %d", ErrProtocol, h.id)
		}
		at := time.Since(t.start)
		t.primary.answer(func(p *carrier) { p.acks[h.id] = pendingAck{value, at, true} })
	case cmdAck:
		return t.acknowledged(h.id, value, time.Duration(binary.LittleEndian.Uint64(body[8:])))
	case cmdPing:
		c.answer(func(c *carrier) { c.pong = pendingNumber{value, true} })
	case cmdPong:
		t.ponged(value)
	case cmdOpen:
		return t.opened(c, h.id, Class(body[0]))
	default:
		return t.handleStream(h, body)
	}
	return nil
}

// handleStream takes a frame of one stream in. Those of streams that are over
// are none of our business any more.
func (t *Tunnel) handleStream(h header, body [16]byte) error {
	f := t.find(h.id)
	if f == nil {
		return nil
	}
	switch h.cmd {
	case cmdEnd:
		f.in.end(io.EOF)
		if f.ends.Or(endReceived)|endReceived == bothEnds {
			t.forget(f)
		}
	case cmdStop:
		f.stopped()
	case cmdGrant:
		consumed, window := binary.LittleEndian.Uint32(body[:]), binary.LittleEndian.Uint32(body[4:])
		if !f.allow(consumed, window) {
			return fmt.Errorf("%w: a grant that makes no sense", ErrProtocol)
		}
	case cmdReset:
		why := io.ErrUnexpectedEOF
		if binary.LittleEndian.Uint32(body[:]) == resetRefused {
			why = ErrTooManyStreams
		}
		t.forget(f)
		f.lost(why)
	}
	return nil
}

// opened takes in a stream that the peer opens.
func (t *Tunnel) opened(c *carrier, id uint32, class Class) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case class < Control || class > Bulk:
		return fmt.Errorf("%w: a stream of class %d", ErrProtocol, class)
	case id == 0 || (id%2 == 1) == t.dialled || t.flows[id] != nil:
		return fmt.Errorf("%w: stream %d cannot be opened", ErrProtocol, id)
	case t.err != nil:
		return nil
	}
	f := newFlow(t, c, id, class, false)
	if t.theirs < t.cfg.MaxStreams {
		select {
		case t.accepted <- f:
			t.flows[id] = f
			t.theirs++
			return nil
		default: // as many wait to be accepted
		}
	}
	var flood bool
	c.answer(func(c *carrier) {
		flood = len(c.refused) >= maxRefusals
		c.refused = append(c.refused, id)
	})
	if flood {
		return fmt.Errorf("%w: a flood of streams", ErrProtocol)
	}
	return nil
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
	if c == nil {
		return nil // of a carrier that is gone or never was
	}
	fine, now := true, time.Now()
	c.answer(func(c *carrier) { fine = c.gate.ack(value, at, now) })
	if !fine {
		return fmt.Errorf("%w: an answer to a mark that was never sent", ErrProtocol)
	}
	c.settle(now)
	return nil
}

// forget drops a stream that is over.
func (t *Tunnel) forget(f *flow) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flows[f.id] == f {
		t.remove(f.id)
	}
}

// remove drops a stream. The caller holds t.mu.
func (t *Tunnel) remove(id uint32) {
	f := t.flows[id]
	t.grownBy.Add(-f.in.release())
	if f.mine {
		t.ours--
	} else {
		t.theirs--
	}
	delete(t.flows, id)
}

// reserve takes bytes of what all windows may grow by; they come back with the
// stream.
func (t *Tunnel) reserve(n int64) bool {
	if t.grownBy.Add(n) <= defaultMemory {
		return true
	}
	t.grownBy.Add(-n)
	return false
}
