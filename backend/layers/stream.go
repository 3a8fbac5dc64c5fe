package layers

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"slipway/backend/session"
	"slipway/gpu"
	"slipway/tunnel/frame"
)

// The kinds of frames.
const (
	kindPart  = 'P'
	kindChunk = 'C'
	kindEnd   = 'E'
	kindLast  = 'Z'
)

const (
	// chunkMost is the maximum content of one chunk, in bytes.
	chunkMost = 1 << 20
	// packedMost is the maximum of a compressed chunk with its length: compression may add a few bytes per 128 KiB.
	packedMost = chunkMost + 16<<10
	markMost   = 4 << 10
)

var payloadMost = map[byte]uint32{kindPart: markMost, kindChunk: packedMost}

// Frame is one frame of a stream. Payload is compressed, and valid until the next frame is read.
type Frame struct {
	Kind    byte
	Mark    session.PartMark // of a part
	Content gpu.Bytes        // bytes of content in a chunk
	Payload []byte
}

// Writer writes a stream. It is not safe for concurrent use.
type Writer struct {
	to     io.Writer
	packer *zstd.Encoder
	frame  []byte // head and payload, written at once
}

// NewWriter returns a writer of a stream. Close ends the stream.
func NewWriter(to io.Writer) (*Writer, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return nil, err
	}
	return &Writer{to: to, packer: packer}, nil
}

// Part sends all of content, which begins at the mark.
func (w *Writer) Part(mark session.PartMark, content io.Reader) error {
	data, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	if err := w.send(kindPart, data); err != nil {
		return err
	}
	chunk := make([]byte, chunkMost)
	for {
		n, err := io.ReadFull(content, chunk)
		if n > 0 {
			if err := w.chunk(chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return w.send(kindEnd, nil)
		default:
			return err
		}
	}
}

func (w *Writer) chunk(content []byte) error {
	w.frame = append(w.frame[:0], make([]byte, frame.HeadSize)...)
	w.frame = binary.BigEndian.AppendUint32(w.frame, uint32(len(content)))
	w.frame = w.packer.EncodeAll(content, w.frame)
	frame.PutHead(w.frame, kindChunk)
	_, err := w.to.Write(w.frame)
	return err
}

func (w *Writer) send(kind byte, payload []byte) error {
	w.frame = frame.Append(w.frame[:0], kind, payload)
	_, err := w.to.Write(w.frame)
	return err
}

// Close ends the stream after the last part.
func (w *Writer) Close() error {
	err := w.send(kindLast, nil)
	return errors.Join(err, w.packer.Close())
}

// Reader reads the frames of a stream. It is not safe for concurrent use.
type Reader struct {
	from    io.Reader
	payload []byte
}

// NewReader returns a reader of a stream.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// Next returns the next frame. After the last it fails with io.EOF, unwrapped. It fails with io.ErrUnexpectedEOF if the
// stream was cut, and with image_receive_corrupt if it is invalid.
func (r *Reader) Next() (Frame, error) {
	kind, payload, err := frame.Read(r.from, r.payload, sound)
	r.payload = payload
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return Frame{}, err
	}
	f := Frame{Kind: kind, Payload: payload}
	switch kind {
	case kindPart:
		if err := json.Unmarshal(payload, &f.Mark); err != nil || f.Mark.Offset < 0 || !validPart(f.Mark.Part) {
			return Frame{}, corrupt("a part has no sound name and offset")
		}
	case kindChunk:
		if len(payload) < 4 {
			return Frame{}, corrupt("a chunk of %d bytes has no length", len(payload))
		}
		f.Content = gpu.Bytes(binary.BigEndian.Uint32(payload))
		if f.Content == 0 || f.Content > chunkMost {
			return Frame{}, corrupt("a chunk has %d bytes of content", f.Content)
		}
	case kindEnd:
	case kindLast:
		return Frame{}, io.EOF
	default:
		return Frame{}, corrupt("no frame is of kind %q", kind)
	}
	return f, nil
}

func sound(kind byte, length uint32) error {
	if length > payloadMost[kind] {
		return corrupt("a frame of kind %q has %d bytes", kind, length)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return session.NewError(session.CodeImageCorrupt, "The image arrived damaged: "+fmt.Sprintf(format, args...)+
		".", "Send it again. The damaged part was removed.")
}

func (f Frame) write(to io.Writer) error {
	head := frame.AppendHead(nil, f.Kind, uint32(len(f.Payload)))
	if _, err := to.Write(head); err != nil || len(f.Payload) == 0 {
		return err
	}
	_, err := to.Write(f.Payload)
	return err
}

type unpacker struct {
	zstd    *zstd.Decoder
	content []byte
}

func newUnpacker() (*unpacker, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(chunkMost))
	if err != nil {
		return nil, err
	}
	return &unpacker{zstd: decoder}, nil
}

// open returns the content of a chunk, valid until the next one.
func (u *unpacker) open(f Frame) ([]byte, error) {
	var err error
	u.content, err = u.zstd.DecodeAll(f.Payload[4:], u.content[:0])
	if err != nil || gpu.Bytes(len(u.content)) != f.Content {
		return nil, corrupt("a chunk of %d bytes cannot be unpacked", f.Content)
	}
	return u.content, nil
}

func (u *unpacker) close() { u.zstd.Close() }
