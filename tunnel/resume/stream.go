package resume

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"slipway/tunnel"
)

// Sizes and times of a stream.
const (
	firstWindow = 256 << 10   // bytes that may be sent before the other side's window is known
	window      = 2 << 20     // bytes in flight or unread, in each direction
	bulkWindow  = 8 << 20     // of a bulk stream
	takenEvery  = 64 << 10    // read bytes after which a taken frame is sent, at most
	leaveWithin = time.Minute // for the other side to confirm a close over a wire
)

// Stream is one end of a stream that survives cuts. Without a wire reads wait, and writes once the window is full. It
// ends with io.EOF if the other side has closed it, and io.ErrUnexpectedEOF, with [ErrForgotten] or [ErrLost], if it
// could not be resumed.
type Stream struct {
	class         tunnel.Class
	local, remote net.Addr
	caller        bool // this side opened it
	done          chan struct{}

	mu      sync.Mutex // guards everything below
	changed sync.Cond  // of mu; broadcast at every change
	wire    *wire      // nil after a cut
	gone    error      // why both directions have ended; nil before
	closed  bool       // by this side's user
	leaveBy time.Time  // when the other side must have confirmed the close; zero: not yet sent over wire
	out     outgoing
	in      incoming

	readBy, writeBy time.Time
}

var _ tunnel.Stream = (*Stream)(nil)

// outgoing is the direction to the peer.
type outgoing struct {
	kept  stretch // not yet taken by the peer
	sent  uint64  // offset of what wire has sent
	ever  uint64  // offset of what any wire has sent
	taken uint64  // by the peer
	room  uint64  // the peer's window
	ended bool    // CloseWrite was called
}

// incoming is the direction from the peer.
type incoming struct {
	kept   stretch // not yet read
	window uint64
	told   uint64 // last taken frame over wire
	begun  bool   // something has come
	ended  bool   // the peer writes no more
	left   bool   // the peer neither writes nor reads any more
}

// every is how many bytes are taken between two taken frames.
func (in *incoming) every() uint64 { return max(1, min(takenEvery, in.window/4)) }

func newStream(raw tunnel.Stream, class tunnel.Class, caller bool) *Stream {
	s := &Stream{class: class, local: raw.LocalAddr(), remote: raw.RemoteAddr(), caller: caller,
		done: make(chan struct{})}
	s.changed.L = &s.mu
	s.out.room, s.in.window = firstWindow, window
	if class == tunnel.Bulk {
		s.in.window = bulkWindow
	}
	return s
}

func count(marks ...bool) (n uint64) {
	for _, mark := range marks {
		if mark {
			n++
		}
	}
	return n
}

// total is how much there is to send, including E and C. It needs mu, as the following methods.
func (s *Stream) total() uint64 { return s.out.kept.end() + count(s.out.ended, s.closed) }

// received is how much has come.
func (s *Stream) received() uint64 { return s.in.kept.end() + count(s.in.ended, s.in.left) }

// taken is how much of that no longer needs room.
func (s *Stream) taken() uint64 {
	if s.closed || s.in.ended || s.in.left {
		return s.received()
	}
	return s.in.kept.begin
}

// heard reports whether the peer needs nothing more from this side.
func (s *Stream) heard() bool { return s.in.left || s.closed && s.out.taken == s.total() }

// over reports whether this side no longer needs a wire.
func (s *Stream) over() bool { return s.gone != nil || s.caller && s.closed && s.heard() }

// isOver calls over with mu.
func (s *Stream) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over()
}

// end ends both directions.
func (s *Stream) end(why error) {
	if s.gone == nil {
		s.gone = why
		close(s.done)
	}
	s.out.kept.drop(s.out.kept.end())
	s.changed.Broadcast()
}

// finish ends both directions. It locks mu. What has come can still be read.
func (s *Stream) finish(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(why)
}

// Left is closed when the other side has closed the stream, or it is lost for good.
func (s *Stream) Left() <-chan struct{} { return s.done }

// attach makes w the stream's wire, from the peer's position. It returns how much has come from the peer.
func (s *Stream) attach(w *wire, at greeting) (received uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return 0, s.gone
	}
	if at.Received < s.out.taken || at.Received > s.out.ever {
		return 0, broken("%d bytes were received where %d to %d are kept", at.Received, s.out.taken, s.out.ever)
	}
	if s.wire != nil {
		_ = s.wire.raw.Close()
	}
	s.wire, s.out.sent, s.out.room = w, at.Received, min(at.Window, bulkWindow)
	s.in.told, s.leaveBy = 0, time.Time{}
	s.changed.Broadcast()
	return s.received(), nil
}

// carry sends and receives over w until it is lost or the stream is over.
func (s *Stream) carry(w *wire) {
	var receiving sync.WaitGroup
	receiving.Go(func() { s.receive(w) })
	s.send(w)
	_ = w.raw.SetReadDeadline(time.Unix(1, 0)) // interrupts receive
	receiving.Wait()
	_ = w.raw.Close()
}

// send sends over w.
func (s *Stream) send(w *wire) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.wire == w {
		kind, payload := s.next()
		if kind == 0 {
			if s.over() {
				return
			}
			if !s.wait(s.leaveBy) {
				s.end(net.ErrClosed) // the peer has not confirmed the close
			}
			continue
		}
		s.mu.Unlock()
		err := w.write(kind, payload)
		s.mu.Lock()
		if err != nil {
			s.detach(w)
		}
	}
}

// next returns the next frame to send, of kind 0 if there is none.
func (s *Stream) next() (kind byte, payload []byte) {
	taken, last := s.taken(), s.closed || s.in.ended || s.in.left
	if taken >= s.in.told+s.in.every() || last && taken > s.in.told {
		s.in.told = taken
		return kindTaken, binary.BigEndian.AppendUint64(nil, taken)
	}
	end := s.out.kept.end()
	switch {
	case s.gone != nil || s.in.left || s.out.sent == s.total():
		return 0, nil
	case s.out.sent < end:
		kind, payload = kindData, s.out.kept.from(s.out.sent, maxData)
		s.out.sent += uint64(len(payload))
	case s.out.sent == end && s.out.ended:
		kind = kindEnd
		s.out.sent++
	default:
		kind = kindClose
		s.out.sent++
		s.leaveBy = time.Now().Add(leaveWithin)
	}
	s.out.ever = max(s.out.ever, s.out.sent)
	return kind, payload
}

// detach removes w, unless another wire has replaced it.
func (s *Stream) detach(w *wire) {
	if s.wire == w {
		s.wire = nil
		s.changed.Broadcast()
	}
}

// receive handles what comes over w.
func (s *Stream) receive(w *wire) {
	for {
		kind, payload, err := w.read()
		s.mu.Lock()
		switch {
		case s.wire != w:
			err = net.ErrClosed
		case err == nil:
			err = s.frame(kind, payload)
		case err == io.EOF && s.heard(): //nolint:errorlint // only between two frames
			s.end(net.ErrClosed)
		}
		if errors.Is(err, tunnel.ErrProtocol) || errors.Is(err, ErrForgotten) ||
			errors.Is(err, tunnel.ErrTooManyStreams) {
			s.end(err)
		}
		if err != nil {
			s.detach(w)
			s.mu.Unlock()
			return
		}
		s.changed.Broadcast()
		s.mu.Unlock()
	}
}

// frame handles one frame.
func (s *Stream) frame(kind byte, payload []byte) error {
	s.in.begun = true
	switch kind {
	case kindResume, kindRefuse: // the answer to the first greeting
		g, err := greetingOf(kind, payload)
		if err != nil {
			return err
		}
		if !s.caller || s.out.taken > 0 || g.Received > s.out.ever {
			return broken("a greeting in a stream that has begun")
		}
		s.out.room = min(g.Window, bulkWindow)
	case kindData:
		switch {
		case s.in.ended || s.in.left:
			return broken("data behind the end of a stream")
		case uint64(len(s.in.kept.data)+len(payload)) > s.in.window:
			return broken("more of a stream than there is room for")
		}
		s.in.kept.data = append(s.in.kept.data, payload...)
		if s.closed || s.gone != nil {
			s.in.kept.drop(s.in.kept.end())
		}
	case kindEnd, kindClose:
		if s.in.left || s.in.ended && kind == kindEnd {
			return broken("a second end of a stream")
		}
		s.in.ended = s.in.ended || kind == kindEnd
		if kind == kindClose {
			s.in.left = true
			s.end(net.ErrClosed)
		}
	case kindTaken:
		n := binary.BigEndian.Uint64(payload)
		if n > s.out.sent {
			return broken("%d bytes were taken of %d", n, s.out.sent)
		}
		s.out.taken = max(s.out.taken, n)
		s.out.kept.drop(max(s.out.kept.begin, min(n, s.out.kept.end())))
	}
	return nil
}

// Read returns the failure of the stream after the last byte.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case len(p) == 0:
			return 0, nil
		case len(s.in.kept.data) > 0:
			n := copy(p, s.in.kept.data)
			s.in.kept.drop(s.in.kept.begin + uint64(n))
			if s.taken() >= s.in.told+s.in.every() {
				s.changed.Broadcast()
			}
			return n, nil
		case s.in.ended || s.in.left:
			return 0, io.EOF
		case s.gone != nil:
			return 0, s.gone
		case !s.wait(s.readBy):
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// Write returns when all of p is in the window.
func (s *Stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for written := 0; ; {
		free := max(int64(s.out.room)-int64(len(s.out.kept.data)), 0)
		switch {
		case s.gone != nil:
			return written, s.gone
		case s.closed || s.out.ended:
			return written, net.ErrClosed
		case written == len(p):
			return written, nil
		case free > 0:
			n := min(len(p)-written, int(free))
			s.out.kept.data = append(s.out.kept.data, p[written:written+n]...)
			written += n
			s.changed.Broadcast()
		case !s.wait(s.writeBy):
			return written, os.ErrDeadlineExceeded
		}
	}
}

// wait waits for a change. It reports false if the time has passed; zero is none.
func (s *Stream) wait(until time.Time) bool {
	if until.IsZero() {
		s.changed.Wait()
		return true
	}
	left := time.Until(until)
	if left <= 0 {
		return false
	}
	timer := time.AfterFunc(left, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	s.changed.Wait()
	timer.Stop()
	return true
}

func (s *Stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return s.gone
	}
	s.out.ended = s.out.ended || !s.closed
	s.changed.Broadcast()
	return nil
}

// Close does not wait. What was written is still sent, also after a cut.
func (s *Stream) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.in.kept.drop(s.in.kept.end())
		s.changed.Broadcast()
	}
	return nil
}

func (s *Stream) Class() tunnel.Class { return s.class }

// LocalAddr and RemoteAddr are those of the carrier that the stream began on.
func (s *Stream) LocalAddr() net.Addr  { return s.local }
func (s *Stream) RemoteAddr() net.Addr { return s.remote }

func (s *Stream) SetDeadline(t time.Time) error      { return s.deadlines(t, &s.readBy, &s.writeBy) }
func (s *Stream) SetReadDeadline(t time.Time) error  { return s.deadlines(t, &s.readBy) }
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.deadlines(t, &s.writeBy) }

func (s *Stream) deadlines(t time.Time, which ...*time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, deadline := range which {
		*deadline = t
	}
	s.changed.Broadcast()
	return nil
}

// stretch is the part of a stream of bytes that is still needed. Its zero value is the beginning of the stream.
type stretch struct {
	begin uint64 // offset of the first byte of data in the stream
	data  []byte // its bytes never change
}

// end is the offset after the last byte.
func (s *stretch) end() uint64 { return s.begin + uint64(len(s.data)) }

// from returns up to most bytes from an offset within the stretch. They stay valid when bytes are added or dropped.
func (s *stretch) from(offset uint64, most int) []byte {
	rest := s.data[offset-s.begin:]
	return rest[:min(len(rest), most)]
}

// drop removes the bytes before an offset within the stretch.
func (s *stretch) drop(offset uint64) {
	s.data = s.data[offset-s.begin:]
	s.begin = offset
	if len(s.data) == 0 {
		s.data = nil // frees a large buffer
	}
}
