package tunnel

import (
	"errors"
	"fmt"
	"time"
)

// write is the sender. It returns when the carrier has failed or has sent its goodbye. On a quick path a second
// goroutine writes large batches while the next one is prepared.
func (c *carrier) write() error {
	defer c.pipe.stop()
	large, written := make(chan []byte), make(chan struct{})
	defer close(large)
	c.t.all.Go(func() {
		for batch := range large {
			if err := c.put(batch); err != nil {
				c.t.lose(c, err)
			}
			written <- struct{}{}
		}
	})
	for writing := false; ; {
		ended, quick, err := c.prepare()
		if writing {
			<-written
			writing = false
			if quick && err == nil {
				ended, err = c.more(ended)
			}
		}
		c.sendCopies()
		batch := c.pipe.take()
		if err != nil || len(batch) == 0 {
			return err
		}
		if quick && len(batch) >= batchLarge {
			large <- batch
			writing = true
		} else if err := c.put(batch); err != nil {
			return err
		}
		for _, f := range ended {
			c.t.forget(f)
		}
	}
}

// put writes a batch to the connection.
func (c *carrier) put(batch []byte) error {
	if now := time.Now(); c.deadline.Sub(now) < writeTime-time.Second {
		c.deadline = now.Add(writeTime)
		if err := c.conn.SetWriteDeadline(c.deadline); err != nil {
			return fmt.Errorf("tunnel: %w", err)
		}
	}
	if _, err := c.conn.Write(batch); err != nil {
		return fmt.Errorf("tunnel: write: %w", err)
	}
	c.t.sent.Add(uint64(len(batch)))
	return nil
}

// prepare waits for something to send and has the library write it. It returns the streams that are complete with it
// and whether the path is quick. When nothing more will come the batch is empty.
func (c *carrier) prepare() (ended []*flow, quick bool, err error) {
	for {
		c.mu.Lock()
		if c.err != nil || c.byeSent {
			c.mu.Unlock()
			c.pipe.stop()
			return nil, false, nil
		}
		c.pipe.fill()
		ended, err = c.fill(nil)
		quick = c.gate.quick()
		if c.pipe.empty() && err == nil && c.bye && len(c.urgent)+len(c.paced) == 0 {
			c.byeSent = true
			c.signals.waiting = signal{kind: sigBye}.append(c.signals.waiting)
			err = c.sendSignals()
		}
		c.mu.Unlock()
		if err != nil || !c.pipe.empty() {
			return ended, quick, err
		}
		<-c.wake
	}
}

// more adds what has become sendable since prepare.
func (c *carrier) more(ended []*flow) ([]*flow, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.byeSent {
		return ended, nil
	}
	return c.fill(ended)
}

// fill has the library write what may be sent now: signals, urgent streams, then paced ones as far as the gate allows.
func (c *carrier) fill(ended []*flow) ([]*flow, error) {
	if c.signals.allowed.room() < 2*batchNear {
		return ended, nil // the peer has to handle the signals sent so far first
	}
	c.appendControl()
	if err := c.sendSignals(); err != nil {
		return ended, err
	}
	var n int
	var err error
	size, frame := c.pipe.size(), c.gate.frame()
	limit := size + batchUrgent
	for len(c.urgent) > 0 && size+len(c.signals.waiting) < limit && err == nil {
		n, ended, err = c.take(ended, &c.urgent, frame)
		size += n
	}
	if limit = frame; c.gate.near() {
		limit = c.gate.batch()
	}
	for len(c.paced) > 0 && size+len(c.signals.waiting) < limit && c.gate.open() && err == nil {
		if pause := c.gate.pause(time.Now()); pause > 0 {
			c.wakeIn(pause)
			break
		}
		n, ended, err = c.take(ended, &c.paced, frame)
		c.gate.spend(n)
		size += n
	}
	if c.gate.due() || c.gate.loose() && (len(c.paced) == 0 || !c.gate.open()) {
		c.signals.waiting = signal{kind: sigMark, number: c.gate.mark(time.Now())}.append(c.signals.waiting)
	}
	return ended, errors.Join(err, c.sendSignals())
}

// sendSignals has the library write the waiting signals.
func (c *carrier) sendSignals() error {
	if len(c.signals.waiting) == 0 {
		return nil
	}
	c.signals.allowed.sent.Add(uint32(len(c.signals.waiting)))
	_, err := c.signals.Write(c.signals.waiting)
	c.signals.waiting = c.signals.waiting[:0]
	return err
}

func (c *carrier) wakeIn(pause time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(pause, func() { notify(c.wake) })
		return
	}
	c.timer.Reset(pause)
}

// take has the library write one frame of the first stream of a queue, queues the stream again if it has more, and
// returns the size of the frame.
func (c *carrier) take(ended []*flow, queue *[]*flow, frame int) (int, []*flow, error) {
	f := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	f.queued = false
	n, err := f.send(frame)
	if f.complete() {
		c.signals.waiting = signal{kind: sigEnd, id: f.id, value: f.allowed.sent.Load()}.append(c.signals.waiting)
		if f.reach(endSent)&bothEnds == bothEnds {
			ended = append(ended, f)
		}
	}
	c.queue(f)
	return n, ended, err
}

// queue queues a stream that may send something, and reports whether it did. The caller holds c.mu.
func (c *carrier) queue(f *flow) bool {
	if f.queued || !f.sendable() {
		return false
	}
	f.queued = true
	if f.class == Bulk || int(f.allowed.sent.Load()-f.granted) >= urgentBurst {
		c.paced = append(c.paced, f)
	} else {
		c.urgent = append(c.urgent, f)
	}
	return true
}

// ready queues a stream and wakes the sender. The caller holds c.mu.
func (c *carrier) ready(f *flow) {
	if c.queue(f) {
		notify(c.wake)
	}
}

// due queues signals of a stream and wakes the sender. The caller holds c.mu.
func (c *carrier) due(f *flow, what uint8) {
	if f.due == 0 {
		c.control = append(c.control, f)
	}
	f.due |= what
	notify(c.wake)
}

func (c *carrier) appendControl() {
	b := c.signals.waiting
	for _, v := range c.pings {
		b = signal{kind: sigPing, number: v}.append(b)
	}
	c.pings = c.pings[:0]
	if c.pongDue {
		b, c.pongDue = signal{kind: sigPong, number: c.pong}.append(b), false
	}
	for i := range c.acks {
		if a := &c.acks[i]; a.due {
			b, a.due = signal{kind: sigAck, id: uint32(i), number: a.mark, at: a.at}.append(b), false
		}
	}
	if c.index != 0 {
		b, c.copied = append(b, c.copied...), c.copied[:0]
	}
	for _, id := range c.refused {
		b = signal{kind: sigReset, id: id, value: resetRefused}.append(b)
	}
	c.refused = c.refused[:0]
	n := 0
	for ; n < len(c.control) && len(b) < batchUrgent; n++ {
		b = c.control[n].appendControl(b)
	}
	if n > 0 {
		rest := copy(c.control, c.control[n:])
		clear(c.control[rest:])
		c.control = c.control[:rest]
	}
	c.signals.waiting = b
}
