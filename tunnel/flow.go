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

// Sizes of a stream's send buffer, in bytes.
const (
	asyncBytes = 16 << 10 // that wait for their turn without blocking their writer
	keptBytes  = 512      // of an empty buffer that the stream keeps
)

// Signals of a stream that wait to be sent.
const (
	dueOpen uint8 = 1 << iota
	dueStop
	dueGrant
)

// Progress of a stream towards its end. With bothEnds the tunnel forgets the stream, with unneeded the library does.
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

// outbox is the sending part of a stream. The carrier's mu guards it, except writing.
type outbox struct {
	writing sync.Mutex // serializes writers
	queued  bool
	due     uint8
	out     []byte        // bytes that were written and wait for their turn
	spare   []byte        // an empty buffer for out, when it is small
	p       []byte        // what is left of a blocked writer's bytes, after out
	taken   chan struct{} // notified when p is sent or cannot be
	granted uint32        // bytes consumed by the peer
	window  uint32        // bytes that the peer allows beyond them
	fin     bool          // this side has stopped writing
	finSent bool
	noWrite error     // why writes fail; nil while they do not
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

func (f *flow) Class() Class         { return f.class }
func (f *flow) LocalAddr() net.Addr  { return f.c.conn.LocalAddr() }
func (f *flow) RemoteAddr() net.Addr { return f.c.conn.RemoteAddr() }

func (f *flow) SetDeadline(at time.Time) error {
	return errors.Join(f.SetReadDeadline(at), f.SetWriteDeadline(at))
}

func (f *flow) SetWriteDeadline(at time.Time) error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.writeBy = at
	notify(f.taken)
	return nil
}

// late reports whether a deadline has passed; zero is none.
func late(deadline time.Time) bool { return !deadline.IsZero() && !time.Now().Before(deadline) }

// credit returns how many more bytes the peer accepts. The caller holds c.mu.
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

// send has the library write up to most of the next bytes and returns how many they are with their header. The library
// accepts them at once, see [conduit]. The caller holds c.mu.
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

// complete reports once that the end of the stream is to be sent now. The caller holds c.mu.
func (f *flow) complete() bool {
	if !f.fin || f.finSent || len(f.out)+len(f.p) > 0 {
		return false
	}
	f.finSent = true
	return true
}

// reach adds to the stream's progress and returns all of it.
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

// Write sends p. It returns when all of p is sent or at most 16 KiB wait to be. It fails with net.ErrClosed when either
// side has closed the stream, io.ErrUnexpectedEOF when its carrier was lost, or os.ErrDeadlineExceeded.
func (f *flow) Write(p []byte) (int, error) {
	f.writing.Lock()
	defer f.writing.Unlock()
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	switch {
	case late(f.writeBy):
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

// waitTaken waits until all of f.p, which is p, is sent. The caller holds c.mu, which is released meanwhile.
func (f *flow) waitTaken(p []byte) (int, error) {
	for len(f.p) > 0 && f.noWrite == nil && !late(f.writeBy) {
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
	select { // the last byte may have been sent just after the deadline
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

// ReadFrom copies from r until its end. Its buffer is small while r has little, so that an idle stream costs little.
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
				f.t.buffers.Put(big)
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		switch {
		case n == len(buffer) && big == nil:
			big = f.t.buffers.Get().(*[]byte)
			buffer = *big
		case n <= len(small) && big != nil:
			f.t.buffers.Put(big)
			big, buffer = nil, small
		}
	}
}

// CloseWrite ends this side's bytes; what was written before still arrives.
func (f *flow) CloseWrite() error {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if f.fin {
		return nil
	}
	f.fin = true
	if f.noWrite == nil {
		f.noWrite = net.ErrClosed
	}
	notify(f.taken)
	f.c.ready(f)
	return nil
}

// Close ends both directions. The peer reads what was written before, then io.EOF; what it sends afterwards is
// discarded.
func (f *flow) Close() error {
	err := f.CloseWrite()
	if f.in.close() && f.reach(readOver)&endReceived == 0 {
		f.tell(dueStop)
	}
	return err
}

func (f *flow) tell(what uint8) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.due(f, what)
}

// stopped drops the waiting bytes and sends the end, since the peer has stopped reading.
func (f *flow) stopped() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.noWrite, f.fin = net.ErrClosed, true
	f.out, f.p = nil, nil
	notify(f.taken)
	f.c.ready(f)
}

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

// allow applies the peer's grant and reports whether it is valid.
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

func expired(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// notify wakes one waiter, or the next one to wait.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
