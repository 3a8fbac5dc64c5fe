package tunnel

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of a [conduit].
const (
	readBuffer   = 4 << 10   // for headers and small frames, in bytes
	batchRoom    = 320 << 10 // the largest batch with its headers and signals, in bytes
	maxUnread    = 256 << 10 // bytes of signals that wait to be understood
	maxUnmet     = 512       // streams that wait for the library to hand them over
	streamWindow = 64 << 20  // the window that the library itself allows, in bytes
)

// conduit is the connection that the library multiplexes over. What the library writes waits here for the carrier's
// sender, so that the library never waits for the network; what arrives is checked here first, since the library would
// accept anything.
type conduit struct {
	c *carrier
	frames

	signals atomic.Uint32 // the number of the peer's first stream, which carries its signals

	unread  atomic.Int64  // bytes of signals that were handed out and not yet understood
	noticed chan struct{} // fewer of them
	unmet   chan struct{} // one token for each stream that the library has not handed over
	over    chan struct{} // closed when the library has stopped reading
	why     error         // is set before over is closed

	mu      sync.Mutex // guards what follows
	out     []byte     // frames to be sent
	spare   []byte     // a buffer for the next ones
	filling bool       // the sender has the library write, and will look
	stopped bool       // sending has ended
}

// frames is what was read and not yet handed out. It belongs to the library's reading goroutine.
type frames struct {
	r       *bufio.Reader
	head    [headerSize + updateSize]byte
	pending []byte // of head, to hand out
	left    int    // bytes of a data frame to hand out after that
	crumb   [crumbSize]byte
	last    uint32 // the greatest number of a stream that the peer has opened
}

func newConduit(c *carrier) *conduit {
	return &conduit{
		c: c, frames: frames{r: bufio.NewReaderSize(heard{c}, readBuffer)},
		noticed: make(chan struct{}, 1), unmet: make(chan struct{}, maxUnmet), over: make(chan struct{}),
		out: make([]byte, 0, batchNear), spare: make([]byte, 0, batchNear),
	}
}

// Read passes checked frames to the library, which stops reading after an error.
func (p *conduit) Read(b []byte) (int, error) {
	n, err := p.read(b)
	if err != nil {
		if !errors.Is(err, ErrProtocol) {
			err = fmt.Errorf("tunnel: read: %w", err)
		}
		p.why = err
		close(p.over)
	}
	return n, err
}

func (p *conduit) read(b []byte) (int, error) {
	for len(p.pending) == 0 && p.left == 0 {
		if err := p.nextFrame(); err != nil {
			return 0, err
		}
	}
	if len(p.pending) > 0 {
		n := copy(b, p.pending)
		p.pending = p.pending[n:]
		return n, nil
	}
	n, err := p.r.Read(b[:min(len(b), p.left)])
	p.left -= n
	if n > 0 {
		err = nil // the next call returns it
	}
	return n, err
}

// nextFrame reads the next header and decides what the library sees.
func (p *conduit) nextFrame() error {
	if _, err := io.ReadFull(p.r, p.head[:headerSize]); err != nil {
		return err
	}
	h, err := parseHeader(p.head[:])
	if err != nil {
		return err
	}
	p.pending = p.head[:headerSize]
	switch h.cmd {
	case cmdOpen:
		return p.begun(h.id)
	case cmdOver: // the end of a stream is a signal, which may come later
		p.head[1] = byte(cmdNone)
	case cmdUpdate:
		return p.updated(h.id)
	case cmdData:
		return p.arrived(h)
	}
	return nil
}

// begun registers a stream that the peer opens.
func (p *conduit) begun(id uint32) error {
	if id <= max(p.last, 1) || (id%2 == 1) == p.c.t.dialled {
		return fmt.Errorf("%w: stream %d cannot be opened", ErrProtocol, id)
	}
	first := p.last == 0
	p.last = id
	if first {
		p.signals.Store(id)
	} else if err := p.c.begin(id); err != nil {
		return err
	}
	select {
	case p.unmet <- struct{}{}:
		return nil
	case <-p.c.lost:
		return net.ErrClosed
	}
}

// updated checks an update of the library's own window, which must never limit this side.
func (p *conduit) updated(id uint32) error {
	body := p.head[headerSize:]
	if _, err := io.ReadFull(p.r, body); err != nil {
		return err
	}
	p.pending = p.head[:]
	allowed := &p.c.signals.allowed
	if id != p.c.signals.id.Load() {
		f := p.c.find(id)
		if f == nil {
			return nil // of a stream that is over
		}
		allowed = &f.allowed
	}
	if !allowed.update(binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint32(body[4:])) {
		return fmt.Errorf("%w: invalid update", ErrProtocol)
	}
	notify(p.c.wake)
	return nil
}

// arrived counts a data frame, whose bytes the library reads next. It does not see those of streams that are over.
func (p *conduit) arrived(h header) error {
	if h.id == p.signals.Load() && h.id != 0 {
		p.left = h.length
		p.unread.Add(int64(h.length))
		for p.unread.Load() > maxUnread {
			select {
			case <-p.noticed:
			case <-p.c.lost:
				return net.ErrClosed
			}
		}
		return nil
	}
	f := p.c.find(h.id)
	if f == nil {
		p.pending = nil
		_, err := p.r.Discard(h.length)
		return err
	}
	before, aside, err := f.arrive(h.length)
	if err != nil {
		return err
	}
	if _, err := p.r.Discard(before); err != nil {
		return err
	}
	switch p.left = h.length - before; {
	case p.left == 0:
		p.pending = nil
	case aside:
		p.left = 0
		return p.aside(f, h.length-before)
	default:
		binary.LittleEndian.PutUint16(p.head[2:], uint16(p.left))
	}
	return nil
}

// understood counts bytes of signals as handled.
func (p *conduit) understood(n int) {
	p.unread.Add(int64(-n))
	notify(p.noticed)
}

// cause returns why reading has ended, err if it has not.
func (p *conduit) cause(err error) error {
	if expired(p.over) {
		return p.why
	}
	return err
}

// WriteBuffers accepts one frame of the library. It drops updates of a stream's window, since the library does not know
// of all bytes of the stream.
func (p *conduit) WriteBuffers(v [][]byte) (int, error) {
	if head := v[0]; command(head[1]) == cmdUpdate && binary.LittleEndian.Uint32(head[4:]) != p.signals.Load() {
		return headerSize + updateSize, nil
	}
	return p.put(v...), nil
}

// put queues one frame and returns its size.
func (p *conduit) put(v ...[]byte) int {
	n := 0
	p.mu.Lock()
	for _, b := range v {
		n += len(b)
		if !p.stopped {
			p.out = append(p.out, b...)
		}
	}
	filling := p.filling
	p.mu.Unlock()
	if !filling {
		notify(p.c.wake)
	}
	return n
}

func (p *conduit) Write(b []byte) (int, error) { return p.WriteBuffers([][]byte{b}) }
func (p *conduit) Close() error                { return p.c.conn.Close() }

// fill begins a batch: until [conduit.empty] or [conduit.take] the sender is not woken.
func (p *conduit) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling = true
}

func (p *conduit) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.out)
}

// empty reports whether no bytes wait to be sent. If so, the next ones wake the sender.
func (p *conduit) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling = p.filling && len(p.out) > 0
	return len(p.out) == 0
}

// take returns what the library wrote. It is valid until the next call.
func (p *conduit) take() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filling = false
	batch := p.out
	if len(batch) == 0 {
		return nil
	}
	p.out, p.spare = p.spare[:0], batch
	if cap(batch) > 2*batchRoom {
		p.spare = nil
	}
	return batch
}

// stop drops what the library writes from now on.
func (p *conduit) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out, p.spare, p.stopped = nil, nil, true
}

// heard reads from the connection and counts what arrives.
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

// allowance is how far the library may write one stream. The tunnel's own window is always within it, so that the
// library never waits for the peer.
type allowance struct {
	sent atomic.Uint32 // bytes written
	said atomic.Uint64 // by the peer's library: bytes consumed, and the window above them
}

func (a *allowance) begin() { a.said.Store(FirstWindow) }

// limit returns the number of the byte before which the library stops.
func (a *allowance) limit() uint32 {
	said := a.said.Load()
	return uint32(said>>32) + uint32(said)
}

// room returns how many bytes the library accepts now.
func (a *allowance) room() int { return int(int32(a.limit() - a.sent.Load())) }

// update applies an update and reports whether it is valid.
func (a *allowance) update(consumed, window uint32) bool {
	before := uint32(a.said.Load() >> 32)
	if window != streamWindow || int32(consumed-before) < 0 || int32(a.sent.Load()-consumed) < 0 {
		return false
	}
	a.said.Store(uint64(consumed)<<32 | uint64(window))
	return true
}

// The library's frames, see SPEC.md.
const (
	frameVersion = 2
	headerSize   = 8
	updateSize   = 8 // of what follows the header of an update
)

// command is the meaning of a frame.
type command uint8

const (
	cmdOpen   command = 0 // SYN: a stream begins
	cmdOver   command = 1 // FIN: the sender has finished with the stream
	cmdData   command = 2 // PSH: bytes of the stream
	cmdNone   command = 3 // NOP: nothing
	cmdUpdate command = 4 // UPD: bytes consumed so far and the window, uint32 each
)

// ErrProtocol is the cause when a peer breaks the rules of SPEC.md.
var ErrProtocol = errors.New("tunnel: the peer broke the protocol")

type header struct {
	cmd    command
	length int    // of what follows, in bytes
	id     uint32 // of the stream
}

// parseHeader reads and checks a header. b has at least headerSize bytes.
func parseHeader(b []byte) (header, error) {
	h := header{
		cmd:    command(b[1]),
		length: int(binary.LittleEndian.Uint16(b[2:])),
		id:     binary.LittleEndian.Uint32(b[4:]),
	}
	if b[0] != frameVersion {
		return h, fmt.Errorf("%w: frame version %d", ErrProtocol, b[0])
	}
	least, most := 0, 0
	switch h.cmd {
	case cmdOpen, cmdOver, cmdNone:
	case cmdData:
		least, most = 1, MaxFrame
	case cmdUpdate:
		least, most = updateSize, updateSize
	default:
		return h, fmt.Errorf("%w: command %d", ErrProtocol, h.cmd)
	}
	if h.length < least || h.length > most {
		return h, fmt.Errorf("%w: command %d with %d bytes", ErrProtocol, h.cmd, h.length)
	}
	return h, nil
}
