package tunnel

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xtaci/smux"
)

// inbox is the receiving part of a stream. What has arrived waits in the library or, in small pieces, in stash;
// together it is never more than the window granted to the peer.
type inbox struct {
	arrived atomic.Uint32 // bytes, ever
	grant   atomic.Uint64 // for the peer: consumed bytes, and the window above them
	aside   atomic.Bool   // stash is not empty

	reading sync.Mutex // serializes readers

	mu     sync.Mutex // guards what follows
	stream *smux.Stream
	waiting
	credit
	until    time.Time // deadline of reads
	ended    error     // what reads return when nothing waits; nil while open
	closed   bool      // this side has stopped reading
	retired  bool      // the library has forgotten the stream, or soon will
	released bool      // the window no longer grows
}

// waiting is what has arrived and was not read.
type waiting struct {
	stash  []byte // bytes that follow those in the library
	coming uint32 // bytes that are being read for the stash
	early  int    // bytes that came as copies and are still to come themselves
	crumbs int    // small frames in the library, counted since it was empty
}

// credit is what the reader has read, and how much more the peer may send.
type credit struct {
	consumed uint32 // bytes that were read, ever
	update   uint32 // consumed as last sent to the peer's library
	updated  bool   // the peer's library knows the window
	told     uint32 // consumed as last sent to the peer
	window   uint32
	grown    time.Time // when the window was last measured against the reader
	mark     uint32    // consumed at that time
}

// arrive counts n bytes of the peer before the library has them. It returns how many of them came before, as copies,
// and whether the others go to the stash.
func (f *flow) arrive(n int) (before int, aside bool, err error) {
	if f.reached.Load()&endReceived != 0 {
		return 0, false, errAfterEnd
	}
	in := &f.in
	in.mu.Lock()
	defer in.mu.Unlock()
	before = min(n, in.early)
	in.early -= before
	if n -= before; n == 0 {
		return before, false, nil
	}
	if err := in.count(n); err != nil {
		return before, false, err
	}
	return before, in.crowded(n), nil
}

// count counts bytes that have arrived. It fails if they are more than was granted.
func (in *inbox) count(n int) error {
	grant := in.grant.Load()
	if in.arrived.Add(uint32(n))-uint32(grant) > uint32(grant>>32) {
		return errTooMuch
	}
	return nil
}

// awaits reports whether bytes that came as copies are still to come.
func (in *inbox) awaits() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.early > 0
}

// release ends the growth of the window and returns by how much it has grown.
func (in *inbox) release() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.released {
		return 0
	}
	in.released = true
	return int64(in.window) - FirstWindow
}

// longAgo is a deadline that has passed, so that nothing waits.
func longAgo() time.Time { return time.Unix(1, 0) }

// meet stores the library's stream and reports whether it is still needed.
func (in *inbox) meet(s *smux.Stream) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stream = s
	if in.ended != nil {
		_ = s.SetReadDeadline(longAgo())
	}
	return !in.retired
}

// end ends reading with why, io.EOF for the peer's own end, after what has arrived.
func (in *inbox) end(why error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended == nil {
		in.ended = why
	}
	in.hurry()
}

// close stops reading and reports whether it was this call that did.
func (in *inbox) close() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.closed = true
	in.dropStash()
	in.hurry()
	return true
}

// hurry wakes the reader. The caller holds in.mu.
func (in *inbox) hurry() {
	if in.stream != nil {
		_ = in.stream.SetReadDeadline(longAgo())
	}
}

// retire has the library forget the stream and the bytes in it.
func (in *inbox) retire() {
	in.mu.Lock()
	in.retired = true
	in.dropStash()
	s := in.stream
	in.mu.Unlock()
	if s != nil {
		_ = s.Close()
	}
}

func (f *flow) SetReadDeadline(at time.Time) error {
	in := &f.in
	in.mu.Lock()
	defer in.mu.Unlock()
	in.until = at
	if in.ended == nil && !in.closed {
		_ = in.stream.SetReadDeadline(at)
		in.settle()
	}
	return nil
}

// state returns the error that stops a read, or else the one that it ends with if it finds nothing.
func (in *inbox) state() (ended, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return nil, net.ErrClosed
	case late(in.until):
		return nil, os.ErrDeadlineExceeded
	}
	return in.ended, nil
}

// Read fails with io.EOF when the peer ended its bytes, net.ErrClosed when this side closed the stream, and
// io.ErrUnexpectedEOF when the carrier was lost, so that half an answer is not mistaken for a whole one.
func (f *flow) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	f.in.reading.Lock()
	defer f.in.reading.Unlock()
	for {
		ended, err := f.in.state()
		if err != nil {
			return 0, err
		}
		if piece := f.in.cut(len(p)); piece != nil {
			f.took(len(piece))
			return copy(p, piece), nil
		}
		n, err := f.in.stream.Read(p)
		if n > 0 { // the next call returns an error beside it
			f.took(n)
			return n, nil
		}
		if err := f.fruitless(ended, err); err != nil {
			return 0, err
		}
	}
}

// WriteTo copies to w until the end, without a buffer of its own.
func (f *flow) WriteTo(w io.Writer) (int64, error) {
	f.in.reading.Lock()
	defer f.in.reading.Unlock()
	out := taker{f: f, w: w}
	for {
		ended, err := f.in.state()
		if err != nil {
			return out.total, err
		}
		before := out.total
		if piece := f.in.cut(MaxFrame); piece != nil {
			_, err = out.Write(piece)
		} else {
			_, err = f.in.stream.WriteTo(&out)
		}
		switch {
		case out.err != nil:
			return out.total, out.err
		case out.total > before:
			continue
		}
		if err := f.fruitless(ended, err); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return out.total, err
		}
	}
}

// taker counts what WriteTo passes on.
type taker struct {
	f     *flow
	w     io.Writer
	total int64
	err   error
}

func (t *taker) Write(p []byte) (int, error) {
	n, err := t.w.Write(p)
	t.total += int64(n)
	t.f.took(len(p))
	t.err = err
	return n, err
}

// fruitless returns the error of a read that got nothing but err from the library, where state returned ended before.
// nil means that the read is to be tried again.
func (f *flow) fruitless(ended, err error) error {
	if ended != nil {
		f.reach(readOver)
		return ended
	}
	if f.in.changed() || errors.Is(err, smux.ErrTimeout) {
		return nil
	}
	<-f.c.over // the carrier is lost, which may be known before the stream's end
	if f.in.changed() {
		return nil
	}
	return io.ErrUnexpectedEOF
}

// changed reports whether the stream has ended or this side has closed it.
func (in *inbox) changed() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.closed || in.ended != nil
}

// took counts n bytes as read and queues a grant when it is worth a signal.
func (f *flow) took(n int) {
	in := &f.in
	in.mu.Lock()
	in.consumed += uint32(n)
	in.settle()
	if in.ended != nil || in.closed {
		in.mu.Unlock()
		return
	}
	if update := in.updating(f.id); update != nil {
		f.c.pipe.put(update)
	}
	f.grow()
	worth := in.window / 4
	if f.class != Bulk {
		worth = urgentGrants
	}
	tell := in.consumed-in.told >= worth
	if tell {
		in.told = in.consumed
		in.grant.Store(uint64(in.window)<<32 | uint64(in.told))
	}
	in.mu.Unlock()
	if tell {
		f.tell(dueGrant)
	}
}

// grow doubles the window when the reader reads a whole one so fast that the window may be what limits the peer. The
// caller holds in.mu.
func (f *flow) grow() {
	in := &f.in
	if in.consumed-in.mark < in.window {
		return
	}
	now := time.Now()
	fast := now.Sub(in.grown) <= 2*max(time.Duration(f.t.smoothRTT.Load()), 4*time.Millisecond)
	in.mark, in.grown = in.consumed, now
	if fast && !in.released && in.window < largestWindow && f.t.reserve(int64(in.window)) {
		in.window *= 2
	}
}
