package resume

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/frame"
)

// The kinds of frames.
const (
	kindResume = 'R'
	kindRefuse = 'X'
	kindData   = 'D'
	kindEnd    = 'E'
	kindClose  = 'C'
	kindTaken  = 'T'
)

const (
	refusedUnknown = 1 // reasons of a host
	refusedFull    = 2

	stall   = time.Minute // that a write may take
	maxData = 32 << 10    // bytes of one frame
	idSize  = 16
)

// Why a stream was lost. Both are io.ErrUnexpectedEOF too.
var (
	// ErrForgotten means that the other side no longer has the stream.
	ErrForgotten = errors.New("tunnel: the peer no longer has the stream")
	// ErrLost means that the connection did not come back in time.
	ErrLost = errors.New("tunnel: the stream was cut and could not be resumed in time")
)

func lost(why error) error { return fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, why) }

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{tunnel.ErrProtocol}, args...)...)
}

// check checks the kind and length of a frame.
func check(kind byte, length uint32) error {
	least, most := uint32(0), uint32(0)
	switch kind {
	case kindResume:
		least, most = greetingSize, greetingSize
	case kindRefuse:
		least, most = 1, 1
	case kindData:
		least, most = 1, maxData
	case kindTaken:
		least, most = 8, 8
	case kindEnd, kindClose:
	default:
		return broken("a frame of kind %q", kind)
	}
	if length < least || length > most {
		return broken("a frame of kind %q with %d bytes", kind, length)
	}
	return nil
}

// greeting is the position of one side of a stream. Its fields are in the order of the wire.
type greeting struct {
	ID       [idSize]byte
	Received uint64
	Window   uint64
	Age      time.Duration // 0: it begins
	Patience time.Duration
	Begun    bool // the caller has had an answer
}

const greetingSize = idSize + 4*8 + 1

func (g greeting) encode() []byte {
	b, _ := binary.Append(nil, binary.BigEndian, g) // of fixed size, which cannot fail
	return b
}

// wire is the tunnel's stream that a stream runs over. One goroutine reads and one writes.
type wire struct {
	raw   tunnel.Stream
	in    *bufio.Reader
	frame []byte // last one read

	out      []byte // only for the writer, as deadline
	deadline time.Time
}

func newWire(raw tunnel.Stream) *wire { return &wire{raw: raw, in: bufio.NewReaderSize(raw, 512)} }

// write writes a frame. The peer always reads, so a write that takes long is a lost wire.
func (w *wire) write(kind byte, payload []byte) error {
	if now := time.Now(); w.deadline.Sub(now) < stall/2 {
		w.deadline = now.Add(stall)
		if err := w.raw.SetWriteDeadline(w.deadline); err != nil {
			return err
		}
	}
	w.out = frame.Append(w.out[:0], kind, payload)
	_, err := w.raw.Write(w.out)
	return err
}

// read reads a frame. Its payload is valid until the next read.
func (w *wire) read() (kind byte, payload []byte, err error) {
	kind, w.frame, err = frame.Read(w.in, w.frame, check)
	return kind, w.frame, err
}

// greeted reads the first frame.
func (w *wire) greeted() (greeting, error) {
	kind, payload, err := w.read()
	if err != nil {
		return greeting{}, err
	}
	return greetingOf(kind, payload)
}

func greetingOf(kind byte, payload []byte) (g greeting, err error) {
	switch {
	case kind == kindResume:
		_, _ = binary.Decode(payload, binary.BigEndian, &g) // of the right size, see check
		g.Age, g.Patience = max(0, g.Age), max(0, g.Patience)
		return g, nil
	case kind == kindRefuse && payload[0] == refusedFull:
		return g, lost(tunnel.ErrTooManyStreams)
	case kind == kindRefuse:
		return g, lost(ErrForgotten)
	}
	return g, broken("a stream that begins with %q", kind)
}
