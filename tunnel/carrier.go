package tunnel

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes and times of a [carrier].
const (
	readBuffer   = 4 << 10  // for headers and small frames, in bytes
	batchNear    = 64 << 10 // written at once where the path is fast, in bytes
	batchUrgent  = 16 << 10 // of urgent frames written at once, in bytes
	writeTime    = 15 * time.Second
	maxRefusals  = 1024     // resets of unwelcome streams that wait to be sent
	urgentBurst  = 64 << 10 // that an urgent stream may have on its way unpaced, in bytes
	urgentGrants = 16 << 10 // consumed bytes of an urgent stream that a grant is worth
)

// carrier is one connection of a tunnel: one goroutine writes it and one reads
// it. Whoever writes to a stream leaves the bytes with the stream, and the
// writing goroutine takes them from there in order of urgency, in turn among
// streams of equal urgency, so that nothing waits in a queue behind bulk.
type carrier struct {
	t     *Tunnel
	conn  net.Conn
	index uint32 // 0 carries everything, 1 bulk alone

	mu   sync.Mutex // guards what follows and the sending part of its streams
	work sync.Cond  // something may have become sendable
	gate gate

	control []*flow // have a frame of theirs to send; each is here once
	urgent  []*flow // have bytes to send; each is in one of the two once
	paced   []*flow
	refused []uint32      // streams of the peer to reset
	acks    [2]pendingAck // by carrier
	pong    pendingNumber
	pings   []uint64
	timer   *time.Timer // wakes the writing goroutine after a pause
	bye     bool
	byeSent bool
	err     error     // why it ended
	kind    pathKind  // that the socket is set to
	checked time.Time // when the kernel was last asked for losses
	again   uint32    // packets sent again by then
	losses  uint16    // of the last spans, one bit for each in which packets were sent again

	socket socket
	lost   chan struct{} // closed when it has ended

	lastHeard atomic.Int64 // nanoseconds since 1970
}

// pendingNumber is a number to send as soon as possible; only the last counts.
type pendingNumber struct {
	value uint64
	due   bool
}

// pendingAck is the answer to a carrier's last mark.
type pendingAck struct {
	mark uint64
	at   time.Duration // when it arrived, on the tunnel's clock
	due  bool
}

func newCarrier(t *Tunnel, conn net.Conn, index uint32) *carrier {
	c := &carrier{t: t, conn: conn, index: index, gate: newGate(t.start), socket: socketOf(conn), lost: make(chan struct{})}
	c.work.L = &c.mu
	c.lastHeard.Store(time.Now().UnixNano())
	return c
}

// write is the writing goroutine. It ends when the carrier has failed or has
// said goodbye.
func (c *carrier) write() error {
	buffer := make([]byte, 0, batchNear+MaxFrame+1024)
	var deadline time.Time
	for {
		batch, ended, more := c.next(buffer[:0])
		if len(batch) > 0 {
			if now := time.Now(); deadline.Sub(now) < writeTime-time.Second {
				deadline = now.Add(writeTime)
				if err := c.conn.SetWriteDeadline(deadline); err != nil {
					return fmt.Errorf("tunnel: %w", err)
				}
			}
			if _, err := c.conn.Write(batch); err != nil {
				return fmt.Errorf("tunnel: write: %w", err)
			}
			c.t.sent.Add(uint64(len(batch)))
		}
		for _, f := range ended {
			c.t.forget(f)
		}
		if !more {
			return nil
		}
	}
}

// next waits for something to send and returns it, with the streams that it
// completes. It reports false when nothing more will come.
func (c *carrier) next(buffer []byte) (batch []byte, ended []*flow, more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.err != nil || c.byeSent {
			return nil, nil, false
		}
		batch, ended = c.fill(buffer, nil)
		if len(batch) > 0 {
			return batch, ended, true
		}
		if c.bye && len(c.urgent) == 0 && len(c.paced) == 0 {
			c.byeSent = true
			return appendHeader(buffer, cmdBye, 0, 0), nil, true
		}
		c.work.Wait()
	}
}

// fill appends what may be sent now: control frames, then urgent streams, then
// paced ones as far as the gate lets them.
func (c *carrier) fill(b []byte, ended []*flow) ([]byte, []*flow) {
	b = c.appendControl(b)
	frame := c.gate.frame()
	for len(c.urgent) > 0 && len(b) < batchUrgent {
		b, ended = c.take(b, ended, &c.urgent, frame, false)
	}
	limit := frame
	if frame == MaxFrame {
		limit = batchNear
	}
	for len(c.paced) > 0 && len(b) < limit && c.gate.open() {
		if pause := c.gate.pause(time.Now()); pause > 0 {
			if len(b) == 0 {
				c.wakeIn(pause)
			}
			break
		}
		b, ended = c.take(b, ended, &c.paced, frame, true)
		if c.gate.due() {
			b = appendNumber(b, cmdMark, c.index, c.gate.mark(time.Now()))
		}
	}
	if c.gate.loose() && (len(c.paced) == 0 || !c.gate.open()) {
		b = appendNumber(b, cmdMark, c.index, c.gate.mark(time.Now()))
	}
	return b, ended
}

// wakeIn wakes the writing goroutine after a pause.
func (c *carrier) wakeIn(pause time.Duration) {
	if c.timer == nil {
		c.timer = time.AfterFunc(pause, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.work.Signal()
		})
		return
	}
	c.timer.Reset(pause)
}

// take appends one frame of the first stream of a queue and puts the stream
// where it belongs next.
func (c *carrier) take(b []byte, ended []*flow, queue *[]*flow, frame int, paced bool) ([]byte, []*flow) {
	f := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	f.queued = false
	before := len(b)
	b, over := f.appendFrame(b, frame)
	if paced {
		c.gate.spend(len(b) - before)
	}
	if over {
		ended = append(ended, f)
	}
	c.ready(f)
	return b, ended
}

// ready queues a stream that has something to send and may. The caller holds
// c.mu.
func (c *carrier) ready(f *flow) {
	if f.queued || !f.sendable() {
		return
	}
	f.queued = true
	if f.class == Bulk || int(f.sentBytes-f.granted) >= urgentBurst {
		c.paced = append(c.paced, f)
	} else {
		c.urgent = append(c.urgent, f)
	}
	c.work.Signal()
}

func (c *carrier) appendControl(b []byte) []byte {
	for _, v := range c.pings {
		b = appendNumber(b, cmdPing, 0, v)
	}
	c.pings = c.pings[:0]
	if c.pong.due {
		b, c.pong.due = appendNumber(b, cmdPong, 0, c.pong.value), false
	}
	for i := range c.acks {
		if c.acks[i].due {
			b, c.acks[i].due = appendAck(b, uint32(i), c.acks[i].mark, c.acks[i].at), false
		}
	}
	for _, id := range c.refused {
		b = appendHeader(b, cmdReset, 4, id)
		b = binary.LittleEndian.AppendUint32(b, resetRefused)
	}
	c.refused = c.refused[:0]
	n := 0
	for ; n < len(c.control) && len(b) < batchUrgent; n++ {
		b = c.control[n].appendControl(b, c)
	}
	if n > 0 {
		c.control = c.control[:copy(c.control, c.control[n:])]
	}
	return b
}

// answer queues numbers; change is called with the carrier's mutex held.
func (c *carrier) answer(change func(*carrier)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	c.work.Signal()
}

// fail ends the carrier: its writer wakes and its streams break.
func (c *carrier) fail(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		close(c.lost)
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	c.work.Signal()
	c.mu.Unlock()
	_ = c.conn.Close()
}

// heard counts what arrives and when.
type heard struct{ c *carrier }

func (h heard) Read(p []byte) (int, error) {
	n, err := h.c.conn.Read(p)
	if n > 0 {
		now := time.Now().UnixNano()
		h.c.lastHeard.Store(now)
		h.c.t.lastHeard.Store(now)
		h.c.t.received.Add(uint64(n))
	}
	return n, err
}

// read is the reading goroutine. It returns ErrClosedByPeer after a goodbye.
func (c *carrier) read() error {
	r := bufio.NewReaderSize(heard{c}, readBuffer)
	var head [headerSize]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return fmt.Errorf("tunnel: read: %w", err)
		}
		h, err := parseHeader(head[:])
		if err != nil {
			return err
		}
		if err := c.receive(h, r); err != nil {
			return err
		}
	}
}

// receive takes one frame in.
func (c *carrier) receive(h header, r *bufio.Reader) error {
	switch {
	case h.cmd == cmdData:
		return c.t.deliver(c, h, r)
	case h.cmd >= cmdUnkept || h.cmd == cmdNone:
		_, err := r.Discard(h.length)
		return err
	}
	var body [16]byte
	if _, err := io.ReadFull(r, body[:h.length]); err != nil {
		return fmt.Errorf("tunnel: read: %w", err)
	}
	if h.cmd == cmdBye {
		return ErrClosedByPeer
	}
	return c.t.handle(c, h, body)
}
