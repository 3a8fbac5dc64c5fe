package agentrpc

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/frame"
)

// kind is the first byte of a frame.
type kind byte

const (
	kindRequest kind = 'Q'
	kindAnswer  kind = 'A'
	kindFailure kind = 'F'
	kindEvent   kind = 'V'
	kindAlive   kind = 'K'
	kindData    kind = 'D'
	kindEnd     kind = 'E'
	kindCancel  kind = 'C'
)

// Limits in bytes, and times.
const (
	MaxMessage = 64 << 20 // the longest answer or event, before it is deflated
	MaxRequest = 4 << 20  // the longest request

	maxData     = 32 << 10
	maxFailure  = 1 << 20
	deflated    = 1 << 31     // bit of the length of a deflated frame
	deflateFrom = 1 << 10     // shorter messages are not deflated
	writePiece  = 64 << 10    // which must be written within stall
	stall       = time.Minute // that a message may make no progress
)

// limits are the longest payloads of each kind.
var limits = map[kind]int{
	kindRequest: MaxRequest,
	kindAnswer:  MaxMessage,
	kindFailure: maxFailure,
	kindEvent:   MaxMessage,
	kindAlive:   0,
	kindData:    maxData,
	kindEnd:     0,
	kindCancel:  0,
}

// protocolError is how the peer broke the protocol. The stream is unusable.
type protocolError struct{ reason string }

func (e *protocolError) Error() string { return "agentrpc: " + e.reason }

func broken(format string, args ...any) error {
	return &protocolError{reason: fmt.Sprintf(format, args...)}
}

// codec encodes frames. It keeps deflaters, which are expensive to make.
type codec struct {
	deflaters sync.Pool // of *flate.Writer
}

func (c *codec) encode(k kind, value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("agentrpc: encode: %w", err)
	}
	return c.frame(k, body)
}

// frame returns a frame with body, deflated if that makes it shorter.
func (c *codec) frame(k kind, body []byte) ([]byte, error) {
	if len(body) > limits[k] {
		return nil, &tooLargeError{size: len(body), limit: limits[k]}
	}
	if len(body) >= deflateFrom && k != kindRequest {
		if packed := c.deflate(body); len(packed) < len(body) {
			return append(frame.AppendHead(nil, byte(k), uint32(len(packed))|deflated), packed...), nil
		}
	}
	return frame.Append(nil, byte(k), body), nil
}

func (c *codec) deflate(body []byte) []byte {
	deflater, _ := c.deflaters.Get().(*flate.Writer)
	if deflater == nil {
		deflater, _ = flate.NewWriter(nil, flate.BestSpeed) // fails only for an invalid level
	}
	defer c.deflaters.Put(deflater)
	var packed bytes.Buffer
	deflater.Reset(&packed)
	_, _ = deflater.Write(body) // fails only with its writer, as Close
	_ = deflater.Close()
	return packed.Bytes()
}

// tooLargeError means that a message was not sent.
type tooLargeError struct{ size, limit int }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("agentrpc: a message of %d bytes is longer than %d", e.size, e.limit)
}

// wire carries frames over one stream. One goroutine reads; any may write.
type wire struct {
	stream tunnel.Stream
	codec  *codec
	in     *bufio.Reader

	writing sync.Mutex // held for each write of a whole frame; guards what follows
	out     []byte
	failed  error // of the first failed write, which may have sent half a frame
}

func newWire(stream tunnel.Stream, c *codec) *wire {
	return &wire{stream: stream, codec: c, in: bufio.NewReaderSize(stream, 512)}
}

type header struct {
	kind   kind
	length int
	packed bool
}

// head reads the next frame's header. It may be called again after a deadline. The end of the stream is
// io.ErrUnexpectedEOF, since a frame ends every stream.
func (w *wire) head() (header, error) {
	raw, err := w.in.Peek(frame.HeadSize)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return header{}, err
	}
	first, length := frame.Head(raw)
	h := header{kind: kind(first), length: int(length &^ deflated), packed: length&deflated != 0}
	limit, known := limits[h.kind]
	switch {
	case !known:
		return h, broken("unknown frame %q", raw[0])
	case h.length > limit:
		return h, broken("frame %q claims %d bytes", raw[0], h.length)
	case h.packed && (h.kind == kindData || h.kind == kindRequest || h.length == 0):
		return h, broken("frame %q cannot be deflated", raw[0])
	}
	_, err = w.in.Discard(frame.HeadSize)
	return h, err
}

// body reads the payload of a frame after its header. It needs at most twice the memory of what has arrived.
func (w *wire) body(h header) ([]byte, error) {
	body, err := frame.ReadPayload(w.in, nil, uint32(h.length))
	if err != nil || !h.packed {
		return body, err
	}
	inflater := flate.NewReader(bytes.NewReader(body))
	limit := int64(limits[h.kind])
	var whole bytes.Buffer
	n, err := io.Copy(&whole, io.LimitReader(inflater, limit+1))
	if err != nil {
		return nil, broken("frame %q does not inflate: %v", byte(h.kind), err)
	}
	if n > limit {
		return nil, broken("frame %q inflates to more than %d bytes", byte(h.kind), limit)
	}
	return whole.Bytes(), nil
}

// next reads one frame.
func (w *wire) next() (kind, []byte, error) {
	h, err := w.head()
	if err != nil {
		return 0, nil, err
	}
	body, err := w.body(h)
	return h.kind, body, err
}

// send writes value as one frame. It fails when it makes no progress for [stall].
func (w *wire) send(k kind, value any) error {
	encoded, err := w.codec.encode(k, value)
	if err != nil {
		return err
	}
	return w.write(encoded)
}

// signal writes a frame without a payload.
func (w *wire) signal(k kind) error {
	return w.write(frame.Append(nil, byte(k), nil))
}

// write writes one frame, each piece of it within [stall].
func (w *wire) write(encoded []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.failed != nil {
		return w.failed
	}
	for len(encoded) > 0 {
		if w.failed = w.stream.SetWriteDeadline(time.Now().Add(stall)); w.failed != nil {
			return w.failed
		}
		n := min(len(encoded), writePiece)
		if _, w.failed = w.stream.Write(encoded[:n]); w.failed != nil {
			return w.failed
		}
		encoded = encoded[n:]
	}
	w.failed = w.stream.SetWriteDeadline(time.Time{})
	return w.failed
}

// copy sends from as data until either fails. At the end of from read is io.EOF.
func (w *wire) copy(from io.Reader) (read, wrote error) {
	buffer := make([]byte, maxData)
	for read == nil && wrote == nil {
		var n int
		if n, read = from.Read(buffer); n > 0 {
			_, wrote = w.data(buffer[:n])
		}
	}
	return read, wrote
}

// data writes p as data frames. It waits while the peer does not read, until the stream's write deadline.
func (w *wire) data(p []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	written := 0
	for len(p) > 0 && w.failed == nil {
		n := min(len(p), maxData)
		w.out = frame.Append(w.out[:0], byte(kindData), p[:n])
		if _, w.failed = w.stream.Write(w.out); w.failed == nil {
			written, p = written+n, p[n:]
		}
	}
	return written, w.failed
}

// end writes the end frame as data does.
func (w *wire) end() error { return w.put(frame.Append(nil, byte(kindEnd), nil)) }

// put writes one frame and waits as data does.
func (w *wire) put(encoded []byte) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	if w.failed == nil {
		_, w.failed = w.stream.Write(encoded)
	}
	return w.failed
}

func (w *wire) broke() bool {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.failed != nil
}

// abandon sends the cancel frame, within a second, and closes the stream. It interrupts the reader at once and does not
// wait for a running write.
func (w *wire) abandon() {
	_ = w.stream.SetReadDeadline(time.Now())
	_ = w.stream.SetWriteDeadline(time.Now().Add(time.Second))
	cancel := func() {
		if w.failed == nil {
			_, w.failed = w.stream.Write(frame.Append(nil, byte(kindCancel), nil))
		}
		w.writing.Unlock()
		_ = w.stream.Close()
	}
	if w.writing.TryLock() {
		cancel()
		return
	}
	go func() {
		w.writing.Lock()
		cancel()
	}()
}
