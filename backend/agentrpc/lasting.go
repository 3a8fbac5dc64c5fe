package agentrpc

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Bounds of lasting streams.
const (
	// lastingWindow is how many bytes of an interactive lasting stream may be
	// under way or unread in one direction, bulkWindow how many of a bulk one.
	lastingWindow = 2 << 20
	bulkWindow    = 8 << 20
	// takenEvery is after how many bytes at most the sender is told that they
	// were taken.
	takenEvery = 64 << 10
	// lastingFor is how long a lasting stream waits for its tunnel to come back.
	lastingFor = time.Hour
	// partWithin is how long a side waits, over a stream that stands, for the other
	// to close it behind the last word.
	partWithin = time.Minute
)

// lasting is one end of a stream of bytes that outlives the streams of tunnels
// that it runs over. Each side keeps what it has sent until the other has taken
// it, and sends again over the next stream what did not arrive over the last.
// Both sides count bytes from the stream's beginning; the end of a direction
// counts as one byte behind its last.
//
// A side's last word, a cancellation or a failure, goes behind its bytes, and the
// other closes the stream when it has read it. Whoever said it keeps the bytes
// until then: what is sent into a path that is gone says so to nobody.
//
// Whoever holds the end reads and writes it as a [net.Conn]. While it runs over
// no stream, reads wait, and so do writes once the window is full.
type lasting struct {
	window uint64 // how many bytes the peer may send beyond those that were taken
	every  uint64 // after how many the peer is told
	parts  bool   // it is the side that takes leave, when neither has more to say
	// refuse makes the failure of a peer that breaks the rules; nil: it is told as it is.
	refuse func(error) error

	mu      sync.Mutex // guards everything below
	changed sync.Cond  // of mu; broadcast at every change
	wire    *wire      // nil while it runs over none
	gone    error      // why no more bytes go either way; nil: it lives
	closed  bool       // by its holder

	// What goes to the peer.
	kept    stretch // not yet taken by the peer
	sent    uint64  // offset up to which wire has been given them
	room    uint64  // the peer's window
	ended   bool    // the holder writes no more
	endSent bool    // over wire
	endOut  bool    // over any wire
	endTook bool    // the peer has taken the end
	broken  *failure
	parting time.Time // until when the peer may take the last word in; zero: it was not said over wire

	// What comes from the peer.
	inbox     stretch
	peerEnded bool
	endRead   bool   // the holder was told the end
	told      uint64 // of what was taken, as the peer knows over wire
	oneWay    bool   // the peer's bytes are of no use any more

	readBy, writeBy time.Time
}

func newLasting(window uint64) *lasting {
	e := &lasting{window: window, every: max(min(takenEvery, window/4), 1)}
	e.changed.L = &e.mu
	return e
}

// received is how many bytes have come, for the peer to go on behind them.
func (e *lasting) received() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.inbox.end()
}

// attach has the stream run over w from now on, where the peer has received so
// many bytes and takes so many more, and returns how many came from it. The
// stream that it ran over until now is closed.
func (e *lasting) attach(w *wire, at lastingAt) (received uint64, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at.Received < e.kept.begin || at.Received > e.kept.end() {
		return 0, broken("%d bytes were received where %d to %d are kept", at.Received, e.kept.begin, e.kept.end())
	}
	if e.wire != nil {
		defer e.wire.stream.Close() //nolint:errcheck // nothing of it is read any more
	}
	e.wire, e.room = w, min(at.Window, bulkWindow)
	e.sent, e.endSent, e.told, e.parting = at.Received, false, 0, time.Time{}
	e.changed.Broadcast()
	return e.inbox.end(), nil
}

// detach tells that w is lost, unless another one has taken its place.
func (e *lasting) detach(w *wire) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == w {
		e.wire = nil
		e.changed.Broadcast()
	}
}

// finish ends the stream for both directions. What has come can still be read.
func (e *lasting) finish(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone == nil {
		e.gone = err
	}
	e.kept.drop(e.kept.end())
	e.changed.Broadcast()
}

// over needs mu. It reports whether nothing more is to be sent or received.
func (e *lasting) over() bool { return e.gone != nil || !e.parts && e.done() }

// done needs mu. It reports whether nothing is left to be said but the last word.
func (e *lasting) done() bool {
	if e.closed {
		return e.sent >= e.kept.end()
	}
	return e.ended && e.endTook && (e.endRead || e.oneWay)
}

// lives reports whether bytes still go either way.
func (e *lasting) lives() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gone == nil
}

// parted tells that the peer has closed w, which it does behind the last word.
func (e *lasting) parted(w *wire) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire == w && e.gone == nil && (!e.parting.IsZero() || e.parts && e.done()) {
		e.gone = net.ErrClosed
		e.changed.Broadcast()
	}
}

// isOver is over for whoever does not have mu.
func (e *lasting) isOver() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.over()
}

// runs reports whether the stream runs over a wire now.
func (e *lasting) runs() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wire != nil
}

// awaitOver waits until the stream is over.
func (e *lasting) awaitOver() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.over() {
		e.changed.Wait()
	}
}

// taken needs mu. It is how much the holder has taken.
func (e *lasting) taken() uint64 {
	if e.endRead {
		return e.inbox.end() + 1
	}
	return e.inbox.begin
}

// send sends over w what is there to be sent, until w is lost or the stream is
// over.
func (e *lasting) send(w *wire) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.wire == w {
		say := e.next(w)
		if say == nil {
			if e.over() {
				return
			}
			if !e.wait(e.parting) {
				e.gone = net.ErrClosed // it takes in nothing any more
				e.changed.Broadcast()
			}
			continue
		}
		e.mu.Unlock()
		err := say()
		e.mu.Lock()
		if err != nil {
			return
		}
	}
}

// next needs mu. It returns what sends the next frame over w; nil: there is
// nothing to be sent.
func (e *lasting) next(w *wire) func() error {
	taken := e.taken()
	switch {
	case taken >= e.told+e.every, e.endRead && taken > e.told:
		e.told = taken
		return func() error { return w.write(takenFrame(taken)) }
	case e.gone != nil:
		return nil
	case e.sent < e.kept.end():
		piece := e.kept.from(e.sent, maxData)
		e.sent += uint64(len(piece))
		return func() error { _, err := w.data(piece); return err }
	case !e.parting.IsZero():
		return nil
	case e.parts && e.done():
		e.parting = time.Now().Add(partWithin)
		return func() error { return w.signal(kindCancel) }
	case e.closed:
		return nil
	case e.broken != nil:
		why := *e.broken
		e.parting = time.Now().Add(partWithin)
		return func() error { return w.send(kindFailure, why) }
	case e.ended && !e.endSent && !e.endTook:
		e.endSent, e.endOut = true, true
		return func() error { return w.signal(kindEnd) }
	}
	return nil
}

// takenFrame says how many bytes were taken.
func takenFrame(n uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{byte(kindTaken), 0, 0, 0, 8}, n)
}

// receive takes what comes over w until w is lost, which it then tells by
// detach, or the stream is over.
func (e *lasting) receive(w *wire) {
	defer e.detach(w)
	for {
		if _, err := w.in.Peek(1); errors.Is(err, io.EOF) {
			e.parted(w)
			return
		}
		h, err := w.head()
		if err == nil {
			err = e.frame(w, h)
		}
		if refused(err) {
			if e.refuse != nil {
				err = e.refuse(err)
			}
			e.finish(err)
		}
		if err != nil {
			return
		}
	}
}

// frame reads the rest of one frame and acts on it.
func (e *lasting) frame(w *wire, h header) error {
	var body []byte
	switch h.kind {
	case kindData, kindTaken:
		room, _ := w.codec.pieces.Get().(*[maxData]byte)
		if room == nil {
			room = new([maxData]byte)
		}
		defer w.codec.pieces.Put(room)
		body = room[:h.length]
		if _, err := io.ReadFull(w.in, body); err != nil {
			return err
		}
	case kindFailure:
		err := readFailure(w, h)
		if refused(err) || errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		e.finish(farFailure(err))
		return nil
	case kindEnd, kindAlive:
	case kindCancel:
		e.finish(net.ErrClosed)
		return nil
	default:
		return broken("frame %q in a lasting stream", byte(h.kind))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wire != w {
		return net.ErrClosed
	}
	defer e.changed.Broadcast()
	switch h.kind {
	case kindData:
		return e.came(body)
	case kindEnd:
		e.peerEnded = true
	case kindTaken:
		return e.took(body)
	}
	return nil
}

// came needs mu.
func (e *lasting) came(p []byte) error {
	switch {
	case e.peerEnded:
		return broken("data behind the end of a lasting stream")
	case uint64(len(e.inbox.data)+len(p)) > e.window:
		return broken("more of a lasting stream than there is room for")
	}
	e.inbox.add(p)
	if e.oneWay || e.gone != nil || e.closed {
		e.inbox.drop(e.inbox.end())
	}
	return nil
}

// took needs mu. The peer says what it has taken.
func (e *lasting) took(body []byte) error {
	if len(body) != 8 {
		return broken("%d bytes say what was taken of a lasting stream", len(body))
	}
	n := binary.BigEndian.Uint64(body)
	if e.endOut && n == e.kept.end()+1 {
		e.endTook = true
		n--
	}
	switch {
	case n > e.sent:
		return broken("%d bytes were taken of %d", n, e.sent)
	case n > e.kept.begin:
		e.kept.drop(n)
	}
	return nil
}

// Read implements [net.Conn]. The stream's failure, or that it cannot go on,
// comes behind the last byte that came.
func (e *lasting) Read(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case e.closed:
			return 0, net.ErrClosed
		case len(p) == 0:
			return 0, nil
		case len(e.inbox.data) > 0:
			n := copy(p, e.inbox.data)
			e.inbox.drop(e.inbox.begin + uint64(n))
			if e.taken() >= e.told+e.every {
				e.changed.Broadcast()
			}
			return n, nil
		case e.peerEnded:
			if !e.endRead {
				e.endRead = true
				e.changed.Broadcast()
			}
			return 0, io.EOF
		case e.gone != nil:
			return 0, e.gone
		case !e.wait(e.readBy):
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// Write implements [net.Conn]. It returns when all of p is kept to be sent.
func (e *lasting) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	written := 0
	for {
		free := max(int64(e.room)-int64(len(e.kept.data)), 0)
		switch {
		case e.gone != nil:
			return written, e.gone
		case e.closed || e.ended:
			return written, net.ErrClosed
		case len(p) == 0:
			return written, nil
		case free > 0:
			n := min(len(p), int(free))
			e.kept.add(p[:n])
			written, p = written+n, p[n:]
			e.changed.Broadcast()
		case !e.wait(e.writeBy):
			return written, os.ErrDeadlineExceeded
		}
	}
}

// wait needs mu. It waits for a change and reports false when the time is over.
func (e *lasting) wait(until time.Time) bool {
	if until.IsZero() {
		e.changed.Wait()
		return true
	}
	left := time.Until(until)
	if left <= 0 {
		return false
	}
	timer := time.AfterFunc(left, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changed.Broadcast()
	})
	e.changed.Wait()
	timer.Stop()
	return true
}

// CloseWrite ends the holder's bytes; the peer's still come.
func (e *lasting) CloseWrite() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return e.gone
	}
	e.ended = true
	e.changed.Broadcast()
	return nil
}

// breakOff ends the holder's bytes with a failure that the peer is told behind
// them.
func (e *lasting) breakOff(why failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken = &why
	e.changed.Broadcast()
}

// listenNoMore drops what the peer sends from now on.
func (e *lasting) listenNoMore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.oneWay = true
	e.inbox.drop(e.inbox.end())
	e.changed.Broadcast()
}

// Close gives the stream up in both directions. What was written is still sent;
// a peer that cannot be told now is told when the stream can go on.
func (e *lasting) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	e.inbox.drop(e.inbox.end())
	e.changed.Broadcast()
	return nil
}

func (e *lasting) SetDeadline(t time.Time) error { return e.deadlines(&t, &t) }

func (e *lasting) SetReadDeadline(t time.Time) error { return e.deadlines(&t, nil) }

func (e *lasting) SetWriteDeadline(t time.Time) error { return e.deadlines(nil, &t) }

func (e *lasting) deadlines(read, write *time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if read != nil {
		e.readBy = *read
	}
	if write != nil {
		e.writeBy = *write
	}
	e.changed.Broadcast()
	return nil
}
