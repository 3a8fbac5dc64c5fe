package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The framing of SPEC.md: smux version 2's header and flow control, and
// commands of our own from 16 on.
const (
	frameVersion = 2
	headerSize   = 8
)

// command says what a frame means.
type command uint8

const (
	cmdOpen  command = 0 // SYN: a stream begins; one byte of class
	cmdEnd   command = 1 // FIN: the sender's bytes of the stream are complete
	cmdData  command = 2 // PSH: bytes of the stream
	cmdNone  command = 3 // NOP: nothing
	cmdGrant command = 4 // UPD: bytes consumed so far and the window, uint32 each

	cmdReset  command = 16 // both directions of the stream are over; uint32 reason
	cmdStop   command = 17 // the sender reads no more of the stream
	cmdMark   command = 18 // paced bytes sent so far on this carrier, uint64
	cmdAck    command = 19 // the latest mark that arrived, and when: two uint64
	cmdPing   command = 20 // a number to send back, uint64
	cmdPong   command = 21 // the latest number that arrived, uint64
	cmdBye    command = 22 // the sender ends the tunnel and sends no more
	cmdUnkept command = 64 // from here on unknown commands are skipped
)

// resetRefused is the reason of a reset when there are more streams than its
// sender allows. For any other the stream counts as lost.
const resetRefused uint32 = 1

// ErrProtocol is the cause when a peer breaks the rules of SPEC.md.
var ErrProtocol = errors.New("tunnel: the peer broke the protocol")

// header is what begins every frame.
type header struct {
	cmd    command
	length int    // of what follows, in bytes
	id     uint32 // of the stream; of the carrier for marks and acks; else 0
}

// parseHeader reads a header and refuses what no peer may send. b holds at
// least headerSize bytes.
func parseHeader(b []byte) (header, error) {
	h := header{
		cmd:    command(b[1]),
		length: int(binary.LittleEndian.Uint16(b[2:])),
		id:     binary.LittleEndian.Uint32(b[4:]),
	}
	if b[0] != frameVersion {
		return h, fmt.Errorf("%w: frame version %d", ErrProtocol, b[0])
	}
	if h.cmd >= cmdUnkept {
		return h, nil
	}
	want, known := h.cmd.size()
	if !known {
		return h, fmt.Errorf("%w: command %d", ErrProtocol, h.cmd)
	}
	if want >= 0 && h.length != want {
		return h, fmt.Errorf("%w: command %d with %d bytes", ErrProtocol, h.cmd, h.length)
	}
	if h.cmd == cmdData && (h.length == 0 || h.length > MaxFrame) {
		return h, fmt.Errorf("%w: a data frame of %d bytes", ErrProtocol, h.length)
	}
	return h, nil
}

// size returns how many bytes follow the header, -1 for any number.
func (c command) size() (int, bool) {
	switch c {
	case cmdOpen:
		return 1, true
	case cmdEnd, cmdStop, cmdBye:
		return 0, true
	case cmdReset:
		return 4, true
	case cmdGrant, cmdMark, cmdPing, cmdPong:
		return 8, true
	case cmdAck:
		return 16, true
	case cmdData, cmdNone:
		return -1, true
	}
	return 0, false
}

func appendHeader(b []byte, cmd command, length int, id uint32) []byte {
	b = append(b, frameVersion, byte(cmd))
	b = binary.LittleEndian.AppendUint16(b, uint16(length))
	return binary.LittleEndian.AppendUint32(b, id)
}

// appendNumber appends a frame that carries one uint64.
func appendNumber(b []byte, cmd command, id uint32, v uint64) []byte {
	return binary.LittleEndian.AppendUint64(appendHeader(b, cmd, 8, id), v)
}

// appendAck appends the answer to a mark of a carrier.
func appendAck(b []byte, index uint32, mark uint64, at time.Duration) []byte {
	b = binary.LittleEndian.AppendUint64(appendHeader(b, cmdAck, 16, index), mark)
	return binary.LittleEndian.AppendUint64(b, uint64(at))
}
