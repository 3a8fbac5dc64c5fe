package tunnel

import "time"

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
