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

// chunk is a piece of what has arrived: data up to its end, in a buffer of the
// pool or, when small, in one of its own.
type chunk struct {
	data   []byte
	pooled *[]byte
}

// inbox is the receiving part of a stream. It never holds more than the window
// that the peer was granted.
type inbox struct {
	mu       sync.Mutex // guards what follows
	chunks   []chunk
	held     int    // bytes in chunks
	consumed uint32 // bytes that the reader took, ever
	told     uint32 // of them told to the peer
	window   uint32
	grant    atomic.Uint64 // what to tell: told, and the window above it
	grown    time.Time     // when the window was last measured against the reader
	mark     uint32        // consumed then
	ended    error         // what reads return when chunks is empty; nil while open
	closed   bool          // this side reads no more
	released bool          // the window's growth was given back; it stays as it is
	readable chan struct{}
}

// add puts an arrived chunk in. It reports an error when the peer sent more than
// it may, and false when nobody will read it.
func (in *inbox) add(c chunk, pool *buffers) (bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed || in.ended != nil {
		recycle(c, pool)
		return false, nil
	}
	if in.held+len(c.data) > int(in.window) {
		recycle(c, pool)
		return false, fmt.Errorf("%w: more bytes than granted", ErrProtocol)
	}
	in.held += len(c.data)
	in.push(c, pool)
	notify(in.readable)
	return true, nil
}

// release returns by how much the window has grown, once; it grows no more.
func (in *inbox) release() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.released {
		return 0
	}
	in.released = true
	return int64(in.window) - FirstWindow
}

// push appends a chunk, into the last one when it is small and fits.
func (in *inbox) push(c chunk, pool *buffers) {
	if n := len(in.chunks); n > 0 && c.pooled == nil {
		last := &in.chunks[n-1]
		if last.pooled == nil && cap(last.data)-len(last.data) < len(c.data) && in.held > 2*smallChunk {
			p := pool.get()
			in.chunks = append(in.chunks, chunk{append((*p)[:0], c.data...), p})
			return
		}
		if cap(last.data)-len(last.data) >= len(c.data) {
			last.data = append(last.data, c.data...)
			return
		}
	}
	in.chunks = append(in.chunks, c)
}

func recycle(c chunk, pool *buffers) {
	if c.pooled != nil {
		pool.put(c.pooled)
	}
}

// end notes that no more will come; why is io.EOF for the peer's own end. What
// has arrived can still be read.
func (in *inbox) end(why error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ended == nil {
		in.ended = why
	}
	notify(in.readable)
}

// close stops reading and reports whether it was this call that did.
func (in *inbox) close() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return false
	}
	in.closed, in.chunks, in.held = true, nil, 0
	notify(in.readable)
	return true
}

// Read reads what has arrived. The end is io.EOF when the peer ended its bytes,
// net.ErrClosed when this side closed the stream, and io.ErrUnexpectedEOF when
// the connection was lost, so that nobody takes half an answer for a whole one.
func (f *flow) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.await(); err != nil {
		return 0, err
	}
	defer f.in.mu.Unlock()
	n := 0
	for n < len(p) && len(f.in.chunks) > 0 {
		c := &f.in.chunks[0]
		k := copy(p[n:], c.data)
		n += k
		if c.data = c.data[k:]; len(c.data) == 0 {
			recycle(*c, &f.t.buffers)
			f.in.pop()
		}
	}
	f.took(n)
	return n, nil
}

// WriteTo copies what arrives to w until the end, without a buffer of its own.
func (f *flow) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		if err := f.await(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
		c := f.in.chunks[0]
		f.in.pop()
		f.in.mu.Unlock()
		n, err := w.Write(c.data)
		total += int64(n)
		recycle(c, &f.t.buffers)
		f.in.mu.Lock()
		f.took(len(c.data))
		f.in.mu.Unlock()
		if err != nil {
			return total, err
		}
	}
}

func (in *inbox) pop() {
	in.chunks[0] = chunk{}
	if in.chunks = in.chunks[1:]; len(in.chunks) == 0 {
		in.chunks = nil
	}
}

// await waits for bytes and returns with the inbox locked and not empty, or
// with an error and the inbox unlocked.
func (f *flow) await() error {
	in := &f.in
	expiry := f.readDeadline.wait()
	if expired(expiry) {
		return os.ErrDeadlineExceeded
	}
	in.mu.Lock()
	for {
		switch {
		case in.closed:
			in.mu.Unlock()
			notify(in.readable) // for the next who waits
			return net.ErrClosed
		case len(in.chunks) > 0:
			return nil
		case in.ended != nil:
			err := in.ended
			in.mu.Unlock()
			notify(in.readable)
			return err
		}
		if in.readable == nil {
			in.readable = make(chan struct{}, 1)
		}
		readable := in.readable
		in.mu.Unlock()
		select {
		case <-readable:
		case <-expiry:
			return os.ErrDeadlineExceeded
		}
		in.mu.Lock()
	}
}

// took notes that the reader has n bytes more and tells the peer when it is
// worth a frame. The caller holds the inbox.
func (f *flow) took(n int) {
	in := &f.in
	in.held -= n
	if in.closed {
		in.held = 0
	}
	in.consumed += uint32(n)
	if len(in.chunks) > 0 {
		notify(in.readable)
	}
	if in.ended != nil {
		return
	}
	f.grow()
	worth := in.window / 4
	if f.class != Bulk {
		worth = urgentGrants
	}
	if in.consumed-in.told >= worth {
		in.told = in.consumed
		in.grant.Store(uint64(in.window)<<32 | uint64(in.told))
		f.tell(f.t.primary, dueGrant)
	}
}

// grow doubles the window when the reader takes a whole one in so short a time
// that the window may be what holds the peer back.
func (f *flow) grow() {
	in := &f.in
	if in.consumed-in.mark < in.window {
		return
	}
	now := time.Now()
	fast := now.Sub(in.grown) <= 2*max(f.t.rtt(), 4*time.Millisecond)
	in.mark, in.grown = in.consumed, now
	if fast && !in.released && in.window < defaultWindow && f.t.reserve(int64(in.window)) {
		in.window *= 2
	}
}
