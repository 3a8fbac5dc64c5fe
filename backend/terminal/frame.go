package terminal

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"slipway/tunnel/frame"
)

// FrameType is the first byte of a frame.
type FrameType byte

// The frame types of the attach and exec protocols.
const (
	FrameHello  FrameType = 'H'
	FrameData   FrameType = 'D'
	FrameGap    FrameType = 'G'
	FrameModes  FrameType = 'M'
	FrameTaken  FrameType = 'K'
	FrameSize   FrameType = 'Z'
	FrameExit   FrameType = 'X'
	FrameInput  FrameType = 'I'
	FrameAck    FrameType = 'A'
	FrameResize FrameType = 'R'
	FrameStderr FrameType = 'E'
	FrameClose  FrameType = 'C'
	FrameSignal FrameType = 'S'
)

// Limits of the protocols, in bytes.
const (
	// MaxData is the maximum output or input in one frame.
	MaxData = 32 << 10
	// Window is how much output may be unacknowledged, and how much input may not be accepted yet.
	Window = 512 << 10
	// StdinWindow is how much stdin may be unread. It passes through several processes that wait for a CPU.
	StdinWindow = 4 << 20

	// takenStep is how much stdin one 'K' frame covers at most.
	takenStep = 64 << 10

	offsetSize = 8
	maxPayload = offsetSize + MaxData
	maxModes   = 512
)

// Frame is one message of the attach or the exec protocol.
type Frame struct {
	Type    FrameType
	Payload []byte
}

// sizes are the minimum and maximum payload of each type.
var sizes = map[FrameType][2]uint32{
	FrameHello:  {36, 36},
	FrameData:   {0, maxPayload},
	FrameGap:    {16, 16},
	FrameModes:  {0, maxModes},
	FrameTaken:  {8, 8},
	FrameSize:   {4, 4},
	FrameExit:   {4, 4},
	FrameInput:  {0, maxPayload},
	FrameAck:    {8, 8},
	FrameResize: {4, 4},
	FrameStderr: {0, MaxData},
	FrameClose:  {0, 0},
	FrameSignal: {1, 1},
}

// ProtocolError means that the peer violated the protocol. The connection can no longer be used.
type ProtocolError struct{ Reason string }

func (e *ProtocolError) Error() string { return "terminal protocol: " + e.Reason }

func broken(format string, args ...any) error {
	return &ProtocolError{Reason: fmt.Sprintf(format, args...)}
}

func check(kind FrameType, length uint32) error {
	limit, known := sizes[kind]
	if !known {
		return broken("unknown frame type %q", byte(kind))
	}
	if length < limit[0] || length > limit[1] {
		return broken("frame %q has %d bytes of payload", byte(kind), length)
	}
	return nil
}

// Message returns the frame as one WebSocket message: type, then payload.
func (f Frame) Message() []byte {
	return append([]byte{byte(f.Type)}, f.Payload...)
}

// ParseMessage parses one WebSocket message. The frame's payload shares its memory.
func ParseMessage(message []byte) (Frame, error) {
	if len(message) == 0 {
		return Frame{}, broken("empty message")
	}
	f := Frame{Type: FrameType(message[0]), Payload: message[1:]}
	return f, check(f.Type, uint32(len(f.Payload)))
}

// Conn carries frames.
type Conn interface {
	// ReadFrame returns the next frame, whose payload is valid until the next call, or io.EOF if the peer closed
	// between two frames. It is not safe for concurrent use.
	ReadFrame() (Frame, error)
	// WriteFrame writes one frame without keeping its payload. It is safe for concurrent use.
	WriteFrame(f Frame) error
	// Close ends both directions and pending calls.
	Close() error
}

// NewConn carries frames over a stream, which it owns.
func NewConn(stream io.ReadWriteCloser) Conn {
	return &streamConn{stream: stream}
}

type streamConn struct {
	stream io.ReadWriteCloser
	in     []byte // used by the reader only

	mu  sync.Mutex // held while a frame is written; guards out
	out []byte
}

func (c *streamConn) ReadFrame() (Frame, error) {
	kind, payload, err := frame.Read(c.stream, c.in, func(kind byte, length uint32) error {
		return check(FrameType(kind), length)
	})
	c.in = payload
	if err != nil {
		return Frame{}, err
	}
	return Frame{Type: FrameType(kind), Payload: payload}, nil
}

func (c *streamConn) WriteFrame(f Frame) error {
	if err := check(f.Type, uint32(len(f.Payload))); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = frame.Append(c.out[:0], byte(f.Type), f.Payload)
	_, err := c.stream.Write(c.out)
	return err
}

func (c *streamConn) Close() error { return c.stream.Close() }

// Hello is the first frame to a viewer.
type Hello struct {
	Start, End uint64 // offsets of the oldest byte and after the newest
	Next       uint64 // offset of the next data byte
	Accepted   uint64 // input bytes accepted from this client so far
	Cols, Rows int
}

func (h Hello) frame() Frame {
	offsets := offsetFrame(FrameHello, h.Start, h.End, h.Next, h.Accepted)
	return Frame{FrameHello, appendSize(offsets.Payload, h.Cols, h.Rows)}
}

// Hello parses a hello frame.
func (f Frame) Hello() (Hello, error) {
	if f.Type != FrameHello || len(f.Payload) != 36 {
		return Hello{}, broken("expected hello, got %q", byte(f.Type))
	}
	at := func(i int) uint64 { return binary.BigEndian.Uint64(f.Payload[8*i:]) }
	h := Hello{Start: at(0), End: at(1), Next: at(2), Accepted: at(3)}
	h.Cols, h.Rows = decodeSize(f.Payload[32:])
	return h, reached(h.Start, h.End, h.Next, h.Accepted)
}

// Data parses a data or input frame: the offset of its first byte and the bytes. It fails if there are none.
func (f Frame) Data() (offset uint64, data []byte, err error) {
	if len(f.Payload) <= offsetSize {
		return 0, nil, broken("frame %q without data", byte(f.Type))
	}
	offset = binary.BigEndian.Uint64(f.Payload)
	return offset, f.Payload[offsetSize:], reached(offset)
}

// farthest is an offset that no stream reaches, small enough that sums with it fit into 64 bits.
const farthest = 1 << 62

func reached(offsets ...uint64) error {
	for _, offset := range offsets {
		if offset > farthest {
			return broken("offset %d", offset)
		}
	}
	return nil
}

// Offset parses an ack of either direction.
func (f Frame) Offset() uint64 { return min(binary.BigEndian.Uint64(f.Payload), farthest) }

// Gap parses a gap frame.
func (f Frame) Gap() (from, to uint64, err error) {
	from, to = binary.BigEndian.Uint64(f.Payload), binary.BigEndian.Uint64(f.Payload[8:])
	if to <= from {
		return 0, 0, broken("gap from %d to %d", from, to)
	}
	return from, to, reached(to)
}

// Size parses a size or resize frame.
func (f Frame) Size() (cols, rows int) { return decodeSize(f.Payload) }

// ExitCode parses an exit frame.
func (f Frame) ExitCode() int { return int(int32(binary.BigEndian.Uint32(f.Payload))) }

// Ack returns a frame with which a viewer acknowledges output.
func Ack(offset uint64) Frame { return offsetFrame(FrameAck, offset) }

func dataFrame(kind FrameType, offset uint64, data []byte) Frame {
	return Frame{kind, append(binary.BigEndian.AppendUint64(nil, offset), data...)}
}

func offsetFrame(kind FrameType, offsets ...uint64) Frame {
	var p []byte
	for _, offset := range offsets {
		p = binary.BigEndian.AppendUint64(p, offset)
	}
	return Frame{kind, p}
}

func sizeFrame(kind FrameType, cols, rows int) Frame {
	return Frame{kind, appendSize(nil, cols, rows)}
}

func exitFrame(code int) Frame {
	return Frame{FrameExit, binary.BigEndian.AppendUint32(nil, uint32(int32(code)))}
}

func appendSize(p []byte, cols, rows int) []byte {
	p = binary.BigEndian.AppendUint16(p, uint16(cols))
	return binary.BigEndian.AppendUint16(p, uint16(rows))
}

func decodeSize(p []byte) (cols, rows int) {
	return int(binary.BigEndian.Uint16(p)), int(binary.BigEndian.Uint16(p[2:]))
}
