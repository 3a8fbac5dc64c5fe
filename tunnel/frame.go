package tunnel

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// What is known here of the library's frames, see SPEC.md. The library makes them and takes them in; the [conduit]
// beneath it looks at those that arrive.
const (
	frameVersion = 2
	headerSize   = 8
	updateSize   = 8 // of what follows the header of an update
)

// command says what a frame means.
type command uint8

const (
	cmdOpen   command = 0 // SYN: a stream begins
	cmdOver   command = 1 // FIN: the sender has done with the stream
	cmdData   command = 2 // PSH: bytes of the stream
	cmdNone   command = 3 // NOP: nothing
	cmdUpdate command = 4 // UPD: bytes consumed so far and the window, uint32 each
)

// ErrProtocol is the cause when a peer breaks the rules of SPEC.md.
var ErrProtocol = errors.New("tunnel: the peer broke the protocol")

// header is what begins every frame.
type header struct {
	cmd    command
	length int    // of what follows, in bytes
	id     uint32 // of the stream
}

// parseHeader reads a header and refuses what no peer may send. b holds at least headerSize bytes.
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
