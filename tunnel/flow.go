package tunnel

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// asyncBytes is how many bytes of one stream may wait for their turn without blocking their writer.
const asyncBytes = 16 << 10

// keptBytes is how large an empty buffer a stream keeps, in bytes.
const keptBytes = 512

// Signals of a stream that wait to be sent.
const (
	dueOpen uint8 = 1 << iota
	dueStop
	dueGrant
)

// What a stream has come to. With both ends the tunnel forgets it; when this side has neither bytes to send nor a
// reader left, the library does.
const (
	endSent uint32 = 1 << iota
	endReceived
	readOver
	bothEnds = endSent | endReceived
	unneeded = endSent | readOver
)

// flow is one stream of a [Tunnel].
type flow struct {
	t    *Tunnel
	c    *carrier // that carries it
	id   uint32
	mine bool // opened by this side

	class   Class // 0 until the peer has said it; guarded by c.book until then
	met     bool  // the library has handed it over; guarded by c.book
	counted bool  // among those open; guarded by t.mu

	reached atomic.Uint32
	allowed allowance // for the library

	outbox
	in inbox
}

// outbox is the sending part of a stream. It is guarded by the carrier's mu, except writing, which makes concurrent
// writers take turns.
type outbox struct {
	writing sync.Mutex
	queued  bool
	due     uint8
	out     []byte // bytes that were written and wait for their turn
	spare   []byte // an empty buffer for out, when it is small
	p       []byte // what is left of a blocked writer's bytes, after out
	taken   chan struct{}
	granted uint32 // bytes consumed by the peer
	window  uint32 // that the peer allows beyond them
	fin     bool   // this side has stopped writing
	finSent bool
	noWrite error     // why no write is taken; nil while they are
	writeBy time.Time // when writes fail; zero: never
}

var _ Stream = (*flow)(nil)

func newFlow(c *carrier, id uint32, mine bool) *flow {
	f := &flow{t: c.t, c: c, id: id, mine: mine, outbox: outbox{window: FirstWindow}}
	f.allowed.begin()
	f.in.window = FirstWindow
	f.in.grant.Store(FirstWindow << 32)
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
	f.in.setDeadline(at)
	return f.SetWriteDeadline(at)
}

// SetReadDeadline sets when reads fail with os.ErrDeadlineExceeded.
func (f *flow) SetReadDeadline(at time.Time) error { f.in.setDeadline(at); return nil }

// SetWriteDeadline sets when writes fail with os.ErrDeadlineExceeded.
func (f *flow) SetWriteDeadline(at time.Time) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.writeBy = at
	notify(f.taken)
	return nil
}

// late reports whether the write deadline has passed. The caller holds c.mu.
func (f *flow) late() bool { return !f.writeBy.IsZero() && !time.Now().Before(f.writeBy) }

// credit returns how many bytes more the peer takes. The caller holds c.mu.
func (f *flow) credit() int { return int(int32(f.granted + f.window - f.allowed.sent.Load())) }

// sendable reports whether the stream has something that it may send. The caller holds c.mu.
func (f *flow) sendable() bool {
	if f.noWrite != nil && !f.fin || f.finSent {
		return false
	}
	if len(f.out)+len(f.p) > 0 {
		return f.credit() > 0
	}
	return f.fin
}

// send has the library write the next bytes, at most so many, and returns how many they are with their header. The
// library takes them at once, see [conduit]. The caller holds c.mu.
func (f *flow) send(most int) (int, error) {
	piece := f.out
	if len(piece) == 0 {
		piece = f.p
	}
	piece = piece[:min(most, f.credit(), len(piece))]
	if len(piece) == 0 {
		return 0, nil
	}
	at := f.allowed.sent.Add(uint32(len(piece))) - uint32(len(piece))
	if _, err := f.in.stream.Write(piece); err != nil {
		return 0, fmt.Errorf("tunnel: write: %w", f.c.pipe.cause(err))
	}
	f.c.copy(f, at, piece)
	if len(f.out) > 0 {
		if f.out = f.out[len(piece):]; len(f.out) == 0 {
			f.out = f.spare
		}
	} else if f.p = f.p[len(piece):]; len(f.p) == 0 {
		notify(f.taken)
	}
	return headerSize + len(piece), nil
}

// complete reports whether the end of the stream is to be sent now, once. The caller holds c.mu.
func (f *flow) complete() bool {
	if !f.fin || f.finSent || len(f.out)+len(f.p) > 0 {
		return false
	}
	f.finSent = true
	return true
}

// reach notes what the stream has come to and returns all of it.
func (f *flow) reach(what uint32) uint32 {
	before := f.reached.Or(what)
	now := before | what
	if now&unneeded == unneeded && before&unneeded != unneeded {
		f.in.retire()
	}
	return now
}

// appendControl appends the stream's signals that are due. The caller holds c.mu.
func (f *flow) appendControl(b []byte) []byte {
	due := f.due
	f.due = 0
	if due&dueOpen != 0 {
		b = signal{kind: sigOpen, id: f.id, value: uint32(f.class)}.append(b)
	}
	if due&dueStop != 0 {
		b = signal{kind: sigStop, id: f.id}.append(b)
	}
	if due&dueGrant != 0 {
		grant := f.in.grant.Load()
		b = signal{kind: sigGrant, id: f.id, value: uint32(grant), window: uint32(grant >> 32)}.append(b)
	}
	return b
}

// Write sends p. It returns when the last of p waits for its turn in no more than 16 KiB or is on its way, and fails
// with net.ErrClosed when either side has closed the stream, io.ErrUnexpectedEOF when its carrier was lost, or
// os.ErrDeadlineExceeded.
func (f *flow) Write(p []byte) (int, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	switch {
	case f.late():
		return 0, os.ErrDeadlineExceeded
	case f.noWrite != nil:
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

// waitTaken waits until all of f.p, which is p, was taken. The caller holds c.mu, which is free while it waits.
func (f *flow) waitTaken(p []byte) (int, error) {
	for len(f.p) > 0 && f.noWrite == nil && !f.late() {
		var timer *time.Timer
		if !f.writeBy.IsZero() {
			timer = time.AfterFunc(time.Until(f.writeBy), func() { notify(f.taken) })
		}
		f.c.mu.Unlock()
		<-f.taken
		f.c.mu.Lock()
		if timer != nil {
			timer.Stop()
		}
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

// ReadFrom copies from r until its end. The buffer is small while little comes, so that an idle stream costs little.
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

// Close gives both directions up. The peer reads what was written before, then io.EOF; what it sends from here on is
// discarded.
func (f *flow) Close() error {
	f.closeWrite(net.ErrClosed)
	if !f.in.close() {
		return nil
	}
	if f.reach(readOver)&endReceived == 0 {
		f.tell(dueStop)
	}
	return nil
}

// tell queues a signal.
func (f *flow) tell(what uint8) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.due(f, what)
}

// stopped notes that the peer has stopped reading: waiting bytes are dropped and the end is sent.
func (f *flow) stopped() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.noWrite, f.fin = net.ErrClosed, true
	f.out, f.p = nil, nil
	notify(f.taken)
	f.c.ready(f)
}

// lost notes that nothing more can be sent or received.
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
	f.reach(endSent)
}

// allow takes the peer's grant in and reports whether it makes sense.
func (f *flow) allow(consumed, window uint32) bool {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if int32(f.allowed.sent.Load()-consumed) < 0 || int32(consumed-f.granted) < 0 || window > streamWindow ||
		int32(f.allowed.limit()-(consumed+window)) < 0 {
		return false
	}
	f.granted, f.window = consumed, window
	f.c.ready(f)
	return true
}

// expired reports whether a channel is closed.
func expired(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// notify wakes one waiter, now or when it comes to wait.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
