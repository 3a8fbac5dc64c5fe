// Package frame writes and reads messages on a stream of bytes.
//
// A frame is one byte for its kind, the length of its payload as a big-endian uint32, and the payload. The kinds and
// the limits are the protocol's. A message is the same without the kind.
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// HeadSize is the number of bytes before the payload of a frame, LengthSize before that of a message.
const (
	HeadSize   = 1 + LengthSize
	LengthSize = 4
)

// grow is the longest payload for which memory is allocated before it comes, in bytes.
const grow = 64 << 10

// Append appends a frame.
func Append(to []byte, kind byte, payload []byte) []byte {
	return append(AppendHead(to, kind, uint32(len(payload))), payload...)
}

// AppendHead appends what precedes a payload.
func AppendHead(to []byte, kind byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32(append(to, kind), length)
}

// PutHead writes the first [HeadSize] bytes of b, which has the payload after them.
func PutHead(b []byte, kind byte) {
	b[0] = kind
	PutLength(b[1:])
}

// PutLength writes the first [LengthSize] bytes of b, which has the message after them.
func PutLength(b []byte) { binary.BigEndian.PutUint32(b, uint32(len(b)-LengthSize)) }

// Head reads the first [HeadSize] bytes of a frame.
func Head(b []byte) (kind byte, length uint32) { return b[0], binary.BigEndian.Uint32(b[1:]) }

// Read reads one frame. The payload is in buffer if that is large enough. check may refuse a frame before its payload
// is read. The error is io.EOF only between two frames.
func Read(r io.Reader, buffer []byte, check func(kind byte, length uint32) error) (kind byte, payload []byte,
	err error) {
	var head [HeadSize]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, buffer, err
	}
	kind, length := Head(head[:])
	if err := check(kind, length); err != nil {
		return kind, buffer, err
	}
	payload, err = ReadPayload(r, buffer, length)
	return kind, payload, err
}

// ReadLength reads the length of a message.
func ReadLength(r io.Reader) (uint32, error) {
	var head [LengthSize]byte
	_, err := io.ReadFull(r, head[:])
	return binary.BigEndian.Uint32(head[:]), err
}

// ReadPayload reads length bytes, into buffer if that is large enough. It allocates at most a few times what comes, so
// that a length by itself costs nothing. An end before the last byte is io.ErrUnexpectedEOF.
func ReadPayload(r io.Reader, buffer []byte, length uint32) ([]byte, error) {
	if length > grow && int64(length) > int64(cap(buffer)) {
		var whole bytes.Buffer
		_, err := io.CopyN(&whole, r, int64(length))
		return whole.Bytes(), unexpected(err)
	}
	if int(length) > cap(buffer) {
		buffer = make([]byte, length)
	}
	buffer = buffer[:length]
	_, err := io.ReadFull(r, buffer)
	return buffer, unexpected(err)
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
