package keeper

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"time"
)

const (
	dialLimit   = 2 * time.Second
	maxFrame    = 32 << 20 // bytes of one frame
	maxParts    = 64       // frames of one message
	greetingLen = 64
)

// Bits of the flags of a frame.
const (
	frameMore    = 1
	frameLong    = 2
	frameCommand = 4
)

var errZMTP = errors.New("the other side does not speak ZMTP 3 without encryption")

// subscription is a SUB socket of ZMTP 3.0 that receives everything, without authentication. See ZeroMQ's RFC 23.
type subscription struct {
	conn net.Conn
	from *bufio.Reader
}

// subscribe connects to a PUB socket, which then sends all that it publishes.
func subscribe(ctx context.Context, network, address string) (*subscription, error) {
	dialer := net.Dialer{Timeout: dialLimit}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	s := &subscription{conn: conn, from: newReader(conn)}
	_ = conn.SetDeadline(time.Now().Add(dialLimit))
	if err := s.greet(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return s, nil
}

func (s *subscription) greet() error {
	var ours, theirs [greetingLen]byte
	ours[0], ours[9], ours[10] = 0xff, 0x7f, 3
	copy(ours[12:], "NULL")
	if _, err := s.conn.Write(ours[:]); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.from, theirs[:]); err != nil {
		return err
	}
	if theirs[0] != 0xff || theirs[10] < 3 || string(theirs[12:16]) != "NULL" {
		return errZMTP
	}
	ready := "\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"
	frames := append([]byte{frameCommand, byte(len(ready))}, ready...)
	_, err := s.conn.Write(append(frames, 0, 1, 1)) // then a message of one byte, which subscribes to everything
	return err
}

// next returns the parts of the next message. One that is too long ends early, so its digest is wrong.
func (s *subscription) next() (parts [][]byte, err error) {
	for {
		flags, err := s.from.ReadByte()
		if err != nil {
			return nil, err
		}
		length, err := s.length(flags)
		if err != nil {
			return nil, err
		}
		if length > math.MaxInt64 || len(parts) == maxParts {
			return nil, errZMTP
		}
		frame := make([]byte, min(length, maxFrame))
		_, err = io.ReadFull(s.from, frame)
		if err == nil {
			_, err = io.CopyN(io.Discard, s.from, int64(length)-int64(len(frame)))
		}
		if err != nil {
			return nil, err
		}
		if flags&frameCommand != 0 {
			continue
		}
		parts = append(parts, frame)
		if flags&frameMore == 0 {
			return parts, nil
		}
	}
}

func (s *subscription) length(flags byte) (uint64, error) {
	if flags&frameLong == 0 {
		short, err := s.from.ReadByte()
		return uint64(short), err
	}
	var long [8]byte
	_, err := io.ReadFull(s.from, long[:])
	return binary.BigEndian.Uint64(long[:]), err
}

func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReaderSize(conn, 64<<10) }
