package tunnel

import (
	"encoding/binary"
	"io"
	"time"
)

// Each frame in the library costs some hundred bytes beside its own. A peer that sends single bytes to a reader that
// has stopped could make that a multiple of the window, so further small frames go to the stash.
const (
	crumbSize = 256 // smaller data frames are crumbs
	maxCrumbs = 256 // of one stream that wait in the library
)

// crowded reports whether n bytes of a stream go to the stash. Once it is not empty all that follow do, to keep their
// order. The caller holds in.mu.
func (in *inbox) crowded(n int) bool {
	if n < crumbSize {
		in.crumbs++
	}
	if len(in.stash) == 0 && (n >= crumbSize || in.crumbs <= maxCrumbs) {
		return false
	}
	in.coming = uint32(n)
	return true
}

// aside reads the body of a data frame into the stash.
func (p *conduit) aside(f *flow, length int) error {
	p.pending = nil
	piece := p.crumb[:]
	if length > len(piece) {
		buffer := p.c.t.buffers.Get().(*[]byte)
		defer p.c.t.buffers.Put(buffer)
		piece = *buffer
	}
	n, err := io.ReadFull(p.r, piece[:length])
	f.in.keep(piece[:n])
	return err
}

// keep adds bytes to the stash. They are fewer than were coming when the carrier is lost.
func (in *inbox) keep(piece []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.arrived.Add(uint32(len(piece)) - in.coming)
	in.coming = 0
	if in.closed || in.retired || len(piece) == 0 {
		return
	}
	in.add(piece)
}

// add appends to the stash. The caller holds in.mu.
func (in *inbox) add(piece []byte) {
	in.stash = append(in.stash, piece...)
	in.aside.Store(true)
	in.settle()
}

// empty reports whether nothing waits in the library. The caller holds in.mu.
func (in *inbox) empty() bool {
	return in.arrived.Load()-in.consumed == uint32(len(in.stash))+in.coming
}

// settle wakes the reader when the stash is next. The caller holds in.mu.
func (in *inbox) settle() {
	switch {
	case !in.empty():
	case len(in.stash) > 0:
		in.hurry()
	default:
		in.crumbs = 0
	}
}

// cut returns up to most bytes of the stash, if they are next.
func (in *inbox) cut(most int) []byte {
	if !in.aside.Load() {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.stash) == 0 || !in.empty() {
		return nil
	}
	piece := in.stash[:min(most, len(in.stash))]
	if in.stash = in.stash[len(piece):]; len(in.stash) == 0 {
		in.dropStash()
		if in.ended == nil && in.stream != nil {
			_ = in.stream.SetReadDeadline(in.until)
		}
	}
	return piece
}

// dropStash empties the stash. The caller holds in.mu.
func (in *inbox) dropStash() {
	in.stash, in.crumbs = nil, 0
	in.aside.Store(false)
}

// updating returns the frame that updates the window of the peer's library, nil if none is due. The caller holds in.mu.
func (in *inbox) updating(id uint32) []byte {
	if in.updated && in.consumed-in.update < streamWindow/2 {
		return nil
	}
	in.updated, in.update = true, in.consumed
	b := make([]byte, headerSize, headerSize+updateSize)
	b[0], b[1], b[2] = frameVersion, byte(cmdUpdate), updateSize
	binary.LittleEndian.PutUint32(b[4:], id)
	b = binary.LittleEndian.AppendUint32(b, in.consumed)
	return binary.LittleEndian.AppendUint32(b, streamWindow)
}

// A packet lost without congestion on the carrier of the key strokes delays all that follows by more than a round trip.
// On such a path small pieces of urgent streams are sent on both carriers and the first to arrive counts, since both
// rarely wait for a lost packet at the same time.
const (
	maxCopy   = 200     // bytes of a stream that are worth sending twice
	maxCopies = 4 << 10 // bytes of them that wait for the other carrier
)

// copies reports whether this side has found losses, or the peer has and asked for copies.
func (t *Tunnel) copies(now time.Time) (found, asked bool) {
	n := now.UnixNano()
	return n < t.lossy.Load(), n < t.asked.Load()
}

// copy copies a piece of a stream that begins at an offset, if copies are wanted. The caller holds c.mu.
func (c *carrier) copy(f *flow, at uint32, piece []byte) {
	if c.index != 0 || f.class == Bulk || len(piece) > maxCopy || len(c.copied) >= maxCopies {
		return
	}
	found, asked := c.t.copies(time.Now())
	if found || asked {
		c.copied = signal{kind: sigCopy, id: f.id, value: at, asked: found, data: piece}.append(c.copied)
	}
}

// sendCopies passes copies on to the other carrier. Only the first carrier's sender calls it.
func (c *carrier) sendCopies() {
	if c.index != 0 || len(c.copied) == 0 {
		return
	}
	c.t.mu.Lock()
	bulk := c.t.bulk
	c.t.mu.Unlock()
	if bulk != nil {
		bulk.answer(func(b *carrier) {
			if len(b.copied)+len(c.copied) <= maxCopies {
				b.copied = append(b.copied, c.copied...)
			}
		})
	}
	c.copied = c.copied[:0]
}

// copyArrived handles a copy. It ignores one of a stream that is over, or has not begun.
func (c *carrier) copyArrived(s signal) error {
	if s.asked {
		c.t.asked.Store(time.Now().Add(gateLossy).UnixNano())
	}
	if f := c.t.primary.find(s.id); f != nil {
		return f.copyArrived(s.value, s.data)
	}
	return nil
}

// copyArrived adds the bytes at an offset to the stash if they are the next ones.
func (f *flow) copyArrived(at uint32, piece []byte) error {
	in := &f.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if f.reached.Load()&endReceived != 0 || in.coming > 0 || in.arrived.Load() != at {
		return nil
	}
	if err := in.count(len(piece)); err != nil {
		return err
	}
	in.early += len(piece)
	if !in.closed && !in.retired {
		in.add(piece)
	}
	return nil
}
