package tunnel

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// asyncBytes is how many bytes of one stream wait for their turn without
// holding up whoever wrote them, in bytes.
const asyncBytes = 16 << 10

// keptBytes is how large an empty buffer a stream keeps, in bytes.
const keptBytes = 512

// Control frames of a stream that wait to be sent.
const (
	dueOpen uint8 = 1 << iota
	dueStop
	dueGrant
)

// Ends of a stream; with both, the tunnel forgets it.
const (
	endSent uint32 = 1 << iota
	endReceived
	bothEnds = endSent | endReceived
)

// flow is one stream of a [Tunnel].
type flow struct {
	t     *Tunnel
	c     *carrier // that carries its bytes
	id    uint32
	class Class
	mine  bool // opened by this side

	ends atomic.Uint32
	due  [2]uint8 // by carrier index; each guarded by that carrier's mutex

	// The sending part is guarded by c.mu, except writing, which makes
	// concurrent writers take turns.
	writing   sync.Mutex
	queued    bool
	out       []byte // bytes that were written and wait for their turn
	spare     []byte // an empty buffer for out, when it is small
	p         []byte // what is left of a blocked writer's bytes, after out
	taken     chan struct{}
	sentBytes uint32
	granted   uint32 // of them consumed by the peer
	window    uint32 // that the peer allows
	fin       bool   // this side writes no more
	finSent   bool
	noWrite   error // why no write is taken; nil while they are

	in inbox

	readDeadline, writeDeadline deadline
}

var _ Stream = (*flow)(nil)

func newFlow(t *Tunnel, c *carrier, id uint32, class Class, mine bool) *flow {
	f := &flow{t: t, c: c, id: id, class: class, mine: mine, window: FirstWindow}
	f.in.window = FirstWindow
	f.in.grown = time.Now()
	return f
}

// Class returns what the stream was opened as.
func (f *flow) Class() Class { return f.class }

// LocalAddr returns the address of the carrier.
func (f *flow) LocalAddr() net.Addr { return f.c.conn.LocalAddr() }

// RemoteAddr returns the peer's address as the carrier tells it.
func (f *flow) RemoteAddr() net.Addr { return f.c.conn.RemoteAddr() }

// SetDeadline sets both deadlines.
func (f *flow) SetDeadline(at time.Time) error {
	f.readDeadline.set(at)
	f.writeDeadline.set(at)
	return nil
}

// SetReadDeadline sets when reads fail with os.ErrDeadlineExceeded.
func (f *flow) SetReadDeadline(at time.Time) error { f.readDeadline.set(at); return nil }

// SetWriteDeadline sets when writes fail with os.ErrDeadlineExceeded.
func (f *flow) SetWriteDeadline(at time.Time) error { f.writeDeadline.set(at); return nil }

// sendable reports whether the stream has something that it may send. The
// caller holds c.mu.
func (f *flow) sendable() bool {
	if f.noWrite != nil && !f.fin || f.finSent {
		return false
	}
	if len(f.out)+len(f.p) > 0 {
		return int32(f.window-(f.sentBytes-f.granted)) > 0
	}
	return f.fin
}

// appendFrame appends the next frame, of at most so many bytes, and reports
// whether the stream is over with it. The caller holds c.mu.
func (f *flow) appendFrame(b []byte, most int) ([]byte, bool) {
	credit := int(f.window - (f.sentBytes - f.granted))
	n := min(most, credit, len(f.out)+len(f.p))
	if n > 0 {
		b = appendHeader(b, cmdData, n, f.id)
		part := min(n, len(f.out))
		b = append(b, f.out[:part]...)
		if f.out = f.out[part:]; len(f.out) == 0 {
			f.out = f.spare
		}
		if rest := n - part; rest > 0 {
			b = append(b, f.p[:rest]...)
			if f.p = f.p[rest:]; len(f.p) == 0 {
				notify(f.taken)
			}
		}
		f.sentBytes += uint32(n)
	}
	if !f.fin || f.finSent || len(f.out)+len(f.p) > 0 {
		return b, false
	}
	f.finSent = true
	b = appendHeader(b, cmdEnd, 0, f.id)
	return b, f.ends.Or(endSent)|endSent == bothEnds
}

// appendControl appends what carrier c shall say of the stream. The caller
// holds c.mu.
func (f *flow) appendControl(b []byte, c *carrier) []byte {
	due := f.due[c.index]
	f.due[c.index] = 0
	if due&dueOpen != 0 {
		b = append(appendHeader(b, cmdOpen, 1, f.id), byte(f.class))
	}
	if due&dueStop != 0 {
		b = appendHeader(b, cmdStop, 0, f.id)
	}
	if due&dueGrant != 0 {
		b = appendNumber(b, cmdGrant, f.id, f.in.grant.Load())
	}
	return b
}

// Write sends p. It returns when the last of p waits for its turn in no more
// than 16 KiB or is on its way, and fails with net.ErrClosed when either side
// has closed the stream, io.ErrUnexpectedEOF when its carrier was lost, or
// os.ErrDeadlineExceeded.
func (f *flow) Write(p []byte) (int, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if expired(f.writeDeadline.wait()) {
		return 0, os.ErrDeadlineExceeded
	}
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.noWrite != nil {
		return 0, f.noWrite
	}
	if len(f.out)+len(p) <= asyncBytes {
		f.out = append(f.out, p...)
		if len(f.out) == len(p) && cap(f.out) <= keptBytes {
			f.spare = f.out[:0]
		}
		f.c.ready(f)
		return len(p), nil
	}
	f.p = p
	if f.taken == nil {
		f.taken = make(chan struct{}, 1)
	}
	f.c.ready(f)
	return f.waitTaken(p)
}

// waitTaken waits until all of f.p, which is p, was taken. The caller holds
// c.mu, which is free while it waits.
func (f *flow) waitTaken(p []byte) (int, error) {
	expiry := f.writeDeadline.wait()
	late := false
	for len(f.p) > 0 && f.noWrite == nil && !late {
		f.c.mu.Unlock()
		select {
		case <-f.taken:
		case <-expiry:
			late = true
		}
		f.c.mu.Lock()
	}
	n := len(p) - len(f.p)
	f.p = nil
	select { // the notice of the last byte may have come beside the deadline
	case <-f.taken:
	default:
	}
	switch {
	case n == len(p):
		return n, nil
	case f.noWrite != nil:
		return n, f.noWrite
	}
	return n, os.ErrDeadlineExceeded
}

// ReadFrom copies from r until its end. The buffer is small while little comes,
// so that an idle stream costs little.
func (f *flow) ReadFrom(r io.Reader) (int64, error) {
	var total int64
	small := make([]byte, 1<<10)
	buffer := small
	var big *[]byte
	for {
		n, err := r.Read(buffer)
		if n > 0 {
			written, failed := f.Write(buffer[:n])
			total += int64(written)
			if failed != nil {
				err = failed
			}
		}
		if err != nil {
			if big != nil {
				f.t.buffers.put(big)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		switch {
		case n == len(buffer) && big == nil:
			big = f.t.buffers.get()
			buffer = *big
		case n <= len(small) && big != nil:
			f.t.buffers.put(big)
			big, buffer = nil, small
		}
	}
}

// CloseWrite ends this side's bytes; what was written before still arrives.
func (f *flow) CloseWrite() error {
	f.closeWrite(net.ErrClosed)
	return nil
}

func (f *flow) closeWrite(why error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.fin {
		return
	}
	f.fin = true
	if f.noWrite == nil {
		f.noWrite = why
	}
	notify(f.taken)
	f.c.ready(f)
}

// Close gives both directions up. The peer reads what was written before, then
// io.EOF; what it sends from here on is discarded.
func (f *flow) Close() error {
	f.closeWrite(net.ErrClosed)
	if f.in.close() && f.ends.Load()&endReceived == 0 {
		f.tell(f.c, dueStop)
	}
	return nil
}

// tell queues a control frame on a carrier.
func (f *flow) tell(c *carrier, what uint8) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.due[c.index] == 0 {
		c.control = append(c.control, f)
		c.work.Signal()
	}
	f.due[c.index] |= what
}

// stopped is told when the peer reads no more: waiting bytes are dropped and
// the end is sent.
func (f *flow) stopped() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.noWrite, f.fin = net.ErrClosed, true
	f.out, f.p = nil, nil
	notify(f.taken)
	f.c.ready(f)
}

// lost is told when nothing more can be sent or received.
func (f *flow) lost(err error) {
	f.c.mu.Lock()
	if f.noWrite == nil {
		f.noWrite = err
	}
	f.fin, f.finSent = true, true
	f.out, f.p = nil, nil
	notify(f.taken)
	f.c.mu.Unlock()
	f.in.end(err)
}

// allow takes the peer's grant in.
func (f *flow) allow(consumed, window uint32) bool {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if int32(f.sentBytes-consumed) < 0 || window > 1<<30 {
		return false
	}
	if int32(consumed-f.granted) >= 0 { // grants of two carriers may overtake
		f.granted, f.window = consumed, window
	}
	f.c.ready(f)
	return true
}

// notify wakes one waiter, now or when it comes to wait.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
