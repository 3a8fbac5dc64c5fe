package tunnel

import (
	"encoding/binary"
	"fmt"
	"time"
)

// signalKind is the meaning of a signal. Signals are small records in the first stream that each side opens on a
// carrier, see SPEC.md.
type signalKind uint8

const (
	sigOpen   signalKind = 1  // a stream, its class
	sigEnd    signalKind = 2  // a stream, how many bytes it had
	sigStop   signalKind = 3  // a stream that the sender has stopped reading
	sigGrant  signalKind = 4  // a stream, bytes consumed so far, the window
	sigReset  signalKind = 5  // a stream that is over both ways, the reason
	sigMark   signalKind = 6  // paced bytes sent so far on this carrier
	sigAck    signalKind = 7  // a carrier, its latest mark that arrived, and when
	sigPing   signalKind = 8  // a number to send back
	sigPong   signalKind = 9  // the latest number that arrived
	sigBye    signalKind = 10 // the sender ends the tunnel and stops sending
	sigUnkept signalKind = 64 // from here on unknown kinds are skipped
	sigCopy   signalKind = 64 // bytes of a stream of the first carrier
)

const (
	signalHead = 2 // bytes before every signal: its kind and the length of what follows
	// resetRefused is the reason of a reset when more streams are open than its sender allows. With any other reason
	// the stream counts as lost.
	resetRefused uint32 = 1
)

// size returns how many bytes follow a signal's head, without those of a copy.
func (k signalKind) size() (int, bool) {
	switch k {
	case sigBye:
		return 0, true
	case sigStop:
		return 4, true
	case sigOpen, sigEnd, sigReset, sigMark, sigPing, sigPong:
		return 8, true
	case sigCopy:
		return 9, true
	case sigGrant:
		return 12, true
	case sigAck:
		return 20, true
	}
	return 0, false
}

// signal is one record. Which of its fields count depends on its kind.
type signal struct {
	kind   signalKind
	id     uint32        // of the stream; of the carrier for an ack
	value  uint32        // the class, the bytes of an end, those consumed, those before a copy, the reason
	window uint32        // of a grant
	asked  bool          // of a copy: the peer is to send copies too
	data   []byte        // of a copy
	number uint64        // of a mark, an ack, a ping or a pong
	at     time.Duration // of an ack: when its mark arrived, on the sender's clock
}

// append encodes a signal.
func (s signal) append(b []byte) []byte {
	size, _ := s.kind.size()
	b = append(b, byte(s.kind), byte(size+len(s.data)))
	switch s.kind {
	case sigMark, sigPing, sigPong:
		return binary.LittleEndian.AppendUint64(b, s.number)
	case sigBye:
		return b
	}
	b = binary.LittleEndian.AppendUint32(b, s.id)
	switch s.kind {
	case sigStop:
		return b
	case sigAck:
		b = binary.LittleEndian.AppendUint64(b, s.number)
		return binary.LittleEndian.AppendUint64(b, uint64(s.at))
	}
	b = binary.LittleEndian.AppendUint32(b, s.value)
	switch s.kind {
	case sigGrant:
		b = binary.LittleEndian.AppendUint32(b, s.window)
	case sigCopy:
		b = append(b, 0)
		if s.asked {
			b[len(b)-1] = 1
		}
		b = append(b, s.data...)
	}
	return b
}

// parseSignal reads the first signal of b and returns how many bytes it had, 0 when b does not hold the whole of it.
func parseSignal(b []byte) (signal, int, error) {
	if len(b) < signalHead {
		return signal{}, 0, nil
	}
	s, length := signal{kind: signalKind(b[0])}, int(b[1])
	want, known := s.kind.size()
	most := want
	if s.kind == sigCopy {
		want, most = want+1, want+maxCopy
	}
	if !known && s.kind < sigUnkept || known && (length < want || length > most) {
		return s, 0, fmt.Errorf("%w: signal %d with %d bytes", ErrProtocol, s.kind, length)
	}
	if len(b) < signalHead+length {
		return signal{}, 0, nil
	}
	body := b[signalHead : signalHead+length]
	switch s.kind {
	case sigMark, sigPing, sigPong:
		s.number = binary.LittleEndian.Uint64(body)
	case sigAck:
		s.number = binary.LittleEndian.Uint64(body[4:])
		s.at = time.Duration(binary.LittleEndian.Uint64(body[12:]))
	case sigGrant:
		s.window = binary.LittleEndian.Uint32(body[8:])
	case sigCopy:
		s.asked, s.data = body[8] != 0, body[9:]
	}
	switch s.kind {
	case sigOpen, sigEnd, sigReset, sigGrant, sigCopy:
		s.value = binary.LittleEndian.Uint32(body[4:])
		fallthrough
	case sigAck, sigStop:
		s.id = binary.LittleEndian.Uint32(body)
	}
	return s, signalHead + length, nil
}
