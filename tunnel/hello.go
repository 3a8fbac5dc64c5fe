package tunnel

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The handshake of SPEC.md: hello, welcome, confirmation. Each message is a
// magic, a length and that many bytes, of which a receiver ignores what it does
// not know at the end.
const (
	helloMagic   = "SLWTUN\r\n"
	maxHello     = 512 // bytes that a message may have after its length
	idSize       = 16
	secretSize   = 32
	nonceSize    = 16
	proofSize    = sha256.Size
	helloSize    = 2 + 1 + idSize + nonceSize + 4
	welcomeSize  = 1 + 2 + 1 + idSize + secretSize + nonceSize + 4
	leastStreams = 1
)

// What a hello wants.
const (
	wantTunnel uint8 = 1 // a new tunnel
	wantJoin   uint8 = 2 // a further carrier for the tunnel named
)

// What a welcome answers.
const (
	statusFine    uint8 = 0
	statusVersion uint8 = 1 // no common version
	statusFull    uint8 = 2 // no further tunnel, or no further carrier
	statusUnknown uint8 = 3 // no such tunnel of this peer
)

type (
	tunnelID [idSize]byte
	secret   [secretSize]byte
	nonce    [nonceSize]byte
)

// hello is the dialling side's first message.
type hello struct {
	versions versionRange
	want     uint8
	id       tunnelID // zero for a new tunnel
	nonce    nonce
	streams  uint32 // that the host may have open at a time
}

// welcome is the host's answer.
type welcome struct {
	status   uint8
	versions versionRange
	version  uint8 // chosen
	id       tunnelID
	secret   secret // of a new tunnel; zero for a further carrier
	nonce    nonce
	streams  uint32 // that the dialling side may have open at a time
}

func (h hello) encode() []byte {
	b := []byte{h.versions.Min, h.versions.Max, h.want}
	b = append(b, h.id[:]...)
	b = append(b, h.nonce[:]...)
	return binary.LittleEndian.AppendUint32(b, h.streams)
}

func parseHello(b []byte) (hello, error) {
	var h hello
	if len(b) < helloSize {
		return h, fmt.Errorf("%w: a hello of %d bytes", ErrHandshake, len(b))
	}
	h.versions, h.want = versionRange{b[0], b[1]}, b[2]
	b = b[3:]
	b = b[copy(h.id[:], b):]
	b = b[copy(h.nonce[:], b):]
	h.streams = binary.LittleEndian.Uint32(b)
	if h.versions.Min > h.versions.Max || h.streams < leastStreams || h.want != wantTunnel && h.want != wantJoin {
		return h, fmt.Errorf("%w: a hello that makes no sense", ErrHandshake)
	}
	return h, nil
}

func (w welcome) encode() []byte {
	b := []byte{w.status, w.versions.Min, w.versions.Max, w.version}
	b = append(b, w.id[:]...)
	b = append(b, w.secret[:]...)
	b = append(b, w.nonce[:]...)
	return binary.LittleEndian.AppendUint32(b, w.streams)
}

func parseWelcome(b []byte) (welcome, error) {
	var w welcome
	if len(b) < welcomeSize {
		return w, fmt.Errorf("%w: a welcome of %d bytes", ErrHandshake, len(b))
	}
	w.status, w.versions, w.version = b[0], versionRange{b[1], b[2]}, b[3]
	b = b[4:]
	b = b[copy(w.id[:], b):]
	b = b[copy(w.secret[:], b):]
	b = b[copy(w.nonce[:], b):]
	w.streams = binary.LittleEndian.Uint32(b)
	if w.versions.Min > w.versions.Max || w.status == statusFine && w.streams < leastStreams {
		return w, fmt.Errorf("%w: a welcome that makes no sense", ErrHandshake)
	}
	return w, nil
}

// proof binds the whole handshake to the tunnel's secret. The host's fresh
// nonce is part of it, so that no recording can be played again.
func proof(s secret, hello, welcome []byte) []byte {
	mac := hmac.New(sha256.New, s[:])
	_, _ = mac.Write(hello)
	_, _ = mac.Write(welcome)
	return mac.Sum(nil)
}

func sendMessage(w io.Writer, body []byte) error {
	b := append([]byte(helloMagic), 0, 0)
	binary.LittleEndian.PutUint16(b[len(helloMagic):], uint16(len(body)))
	if _, err := w.Write(append(b, body...)); err != nil {
		return fmt.Errorf("tunnel: handshake: %w", err)
	}
	return nil
}

func receiveMessage(r io.Reader) ([]byte, error) {
	head := make([]byte, len(helloMagic)+2)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, fmt.Errorf("tunnel: handshake: %w", err)
	}
	length := int(binary.LittleEndian.Uint16(head[len(helloMagic):]))
	if string(head[:len(helloMagic)]) != helloMagic || length > maxHello {
		return nil, ErrHandshake
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, fmt.Errorf("tunnel: handshake: %w", err)
	}
	return body, nil
}

// greeting is what the dialling side learns from a handshake.
type greeting struct {
	welcome welcome
	rtt     time.Duration
}

// greet does the dialling side's part. For a further carrier id and s are those
// of its tunnel, else zero.
func greet(conn net.Conn, c Config, want uint8, id tunnelID, s secret) (greeting, error) {
	h := hello{versions: c.versions, want: want, id: id, streams: uint32(c.MaxStreams)}
	_, _ = rand.Read(h.nonce[:])
	asked, start := h.encode(), time.Now()
	if err := sendMessage(conn, asked); err != nil {
		return greeting{}, err
	}
	answer, err := receiveMessage(conn)
	if err != nil {
		return greeting{}, err
	}
	g := greeting{rtt: time.Since(start)}
	if g.welcome, err = parseWelcome(answer); err != nil {
		return g, err
	}
	if err := judge(g.welcome, c.versions); err != nil {
		return g, err
	}
	if want == wantTunnel {
		s = g.welcome.secret
	} else if g.welcome.id != id {
		return g, fmt.Errorf("%w: a welcome to another tunnel", ErrHandshake)
	}
	return g, sendMessage(conn, proof(s, asked, answer))
}

// judge says whether the dialling side goes on with what the host answered.
func judge(w welcome, ours versionRange) error {
	switch w.status {
	case statusFine:
	case statusVersion:
		return &VersionError{ours.Min, ours.Max, w.versions.Min, w.versions.Max}
	case statusFull:
		return fmt.Errorf("%w: it holds as many as it may", ErrRefused)
	case statusUnknown:
		return fmt.Errorf("%w: it knows no such tunnel", ErrRefused)
	default:
		return fmt.Errorf("%w: status %d", ErrRefused, w.status)
	}
	switch best := ours.best(w.versions); {
	case best == 0:
		return &VersionError{ours.Min, ours.Max, w.versions.Min, w.versions.Max}
	case w.version != best:
		return ErrDowngrade
	}
	return nil
}

// confirm waits for the dialling side's proof.
func confirm(conn net.Conn, s secret, asked, answer []byte) error {
	got, err := receiveMessage(conn)
	if err != nil {
		return err
	}
	if len(got) < proofSize || !hmac.Equal(got[:proofSize], proof(s, asked, answer)) {
		return errors.Join(ErrHandshake, errors.New("tunnel: the confirmation does not fit"))
	}
	return nil
}
