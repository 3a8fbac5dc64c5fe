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

// bufferSize is the size of a pooled buffer, in bytes.
const bufferSize = 64 << 10

// buffers keeps large buffers for use again.
type buffers struct{ pool sync.Pool }

func (b *buffers) get() *[]byte {
	if p, ok := b.pool.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, bufferSize)
	return &p
}

func (b *buffers) put(p *[]byte) { b.pool.Put(p) }

// inbox is the receiving part of a stream: what has arrived waits in the library, and beside it what came in too small
// pieces, together never more than the window that the peer was granted.
type inbox struct {
	arrived atomic.Uint32 // bytes, ever
	grant   atomic.Uint64 // what to tell the peer: consumed bytes, and the window above them
	aside   atomic.Bool   // something waits beside the library

	reading sync.Mutex // makes concurrent readers take turns

	mu     sync.Mutex // guards what follows
	stream *smux.Stream
	waiting
	credit
	until    time.Time // the deadline of reads
	ended    error     // what reads return when nothing waits; nil while open
	closed   bool      // this side has stopped reading
	retired  bool      // the library has forgotten the stream, or is to
	released bool      // the window's growth was given back; it stays as it is
}

// waiting is what has arrived and was not read.
type waiting struct {
	stash  []byte // waits beside the library, behind what is in it
	coming uint32 // bytes that are being read, to wait there too
	early  int    // bytes that came as copies, and are still to come by themselves
	crumbs int    // small frames in the library, counted since it was empty
}

// credit is what the reader took, and how much more the peer may send.
type credit struct {
	consumed uint32 // bytes that the reader took, ever
	update   uint32 // of them told to the peer's library
	updated  bool   // the peer knows the window
	told     uint32 // of them told to the peer
	window   uint32
	grown    time.Time // when the window was last measured against the reader
	mark     uint32    // consumed then
}

// arrive accounts for bytes of the peer's before the library has them. It returns how many of them came before, as
// copies, and whether the others wait beside the library.
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

// count counts bytes that have arrived, of which there must not be more than the peer was granted.
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

// release returns by how much the window has grown, and ends its growth.
func (in *inbox) release() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.released {
		return 0
	}
	in.released = true
	return int64(in.window) - FirstWindow
}

// longAgo returns a deadline that has passed: a read finds what is there and waits for nothing.
func longAgo() time.Time { return time.Unix(1, 0) }

// meet takes over the library's stream. It reports false when it does not need it.
func (in *inbox) meet(s *smux.Stream) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stream = s
	if in.ended != nil {
		_ = s.SetReadDeadline(longAgo())
	}
	return !in.retired
}

// end notes that nothing more will arrive; why is io.EOF for the peer's own end. What has arrived can still be read.
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

// hurry wakes who reads. The caller holds in.mu.
func (in *inbox) hurry() {
	if in.stream != nil {
		_ = in.stream.SetReadDeadline(longAgo())
	}
}

// retire has the library forget the stream and what waits in it.
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

func (in *inbox) setDeadline(at time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.until = at
	if in.ended == nil && !in.closed {
		_ = in.stream.SetReadDeadline(at)
		in.settle()
	}
}

// state says whether a read may continue, and what it returns if it finds nothing.
func (in *inbox) state() (ended, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	switch {
	case in.closed:
		return nil, net.ErrClosed
	case !in.until.IsZero() && !time.Now().Before(in.until):
		return nil, os.ErrDeadlineExceeded
	}
	return in.ended, nil
}

// Read reads what has arrived. The end is io.EOF when the peer ended its bytes, net.ErrClosed when this side closed the
// stream, and io.ErrUnexpectedEOF when the connection was lost, so that half an answer is not mistaken for a whole one.
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

// WriteTo copies what arrives to w until the end, without a buffer of its own.
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

// taker passes on what a reader takes.
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

// fruitless says how a read ends that found nothing and got err from the library, where ended was known before. It
// returns nil when it is to be tried again.
func (f *flow) fruitless(ended, err error) error {
	if ended != nil {
		f.reach(readOver)
		return ended
	}
	if f.in.changed() || errors.Is(err, smux.ErrTimeout) {
		return nil
	}
	<-f.c.over // the carrier is lost, which may be known before what came before it
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

// took notes that the reader has n bytes more and tells the peer when it is worth a signal.
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

// grow doubles the window when the reader takes a whole one in so short a time that the window may be what holds the
// peer back. The caller holds the inbox.
func (f *flow) grow() {
	in := &f.in
	if in.consumed-in.mark < in.window {
		return
	}
	now := time.Now()
	fast := now.Sub(in.grown) <= 2*max(time.Duration(f.t.smoothRTT.Load()), 4*time.Millisecond)
	in.mark, in.grown = in.consumed, now
	if fast && !in.released && in.window < defaultWindow && f.t.reserve(int64(in.window)) {
		in.window *= 2
	}
}
