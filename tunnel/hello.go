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

// The handshake of SPEC.md: hello, welcome, confirmation. Each message is a magic, a length and that many bytes. A
// receiver ignores what it does not know at the end.
const (
	helloMagic = "SLWTUN\r\n"
	maxHello   = 512 // bytes of a message after its length
)

// Values of hello.Want.
const (
	wantTunnel uint8 = 1 // a new tunnel
	wantJoin   uint8 = 2 // a further carrier for the tunnel with the ID
)

// Values of welcome.Status.
const (
	statusFine    uint8 = 0
	statusVersion uint8 = 1 // no common version
	statusFull    uint8 = 2 // no further tunnel, or no further carrier
	statusUnknown uint8 = 3 // no such tunnel of this peer
)

type (
	tunnelID [16]byte
	secret   [32]byte
	nonce    [16]byte
)

// hello is the dialling side's first message. Its fields are in the order of the wire, as those of welcome are.
type hello struct {
	Versions versionRange
	Want     uint8
	ID       tunnelID // zero for a new tunnel
	Nonce    nonce
	Streams  uint32 // that the host may have open at a time, at least 1
}

// welcome is the host's answer.
type welcome struct {
	Status   uint8
	Versions versionRange
	Version  uint8 // chosen
	ID       tunnelID
	Secret   secret // of a new tunnel; zero for a further carrier
	Nonce    nonce
	Streams  uint32 // that the dialling side may have open at a time, at least 1
}

func encode[M hello | welcome](m M) []byte {
	b, _ := binary.Append(nil, binary.LittleEndian, m) // of fixed size, which cannot fail
	return b
}

func parseHello(b []byte) (hello, error) {
	var h hello
	if _, err := binary.Decode(b, binary.LittleEndian, &h); err != nil {
		return h, fmt.Errorf("%w: a hello of %d bytes", ErrHandshake, len(b))
	}
	if h.Versions.Min > h.Versions.Max || h.Streams == 0 || h.Want != wantTunnel && h.Want != wantJoin {
		return h, fmt.Errorf("%w: an invalid hello", ErrHandshake)
	}
	return h, nil
}

func parseWelcome(b []byte) (welcome, error) {
	var w welcome
	if _, err := binary.Decode(b, binary.LittleEndian, &w); err != nil {
		return w, fmt.Errorf("%w: a welcome of %d bytes", ErrHandshake, len(b))
	}
	if w.Versions.Min > w.Versions.Max || w.Status == statusFine && w.Streams == 0 {
		return w, fmt.Errorf("%w: an invalid welcome", ErrHandshake)
	}
	return w, nil
}

// proof binds the whole handshake to the tunnel's secret. It covers the host's fresh nonce, so that it cannot be
// replayed.
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

// greet does the dialling side's part. For a further carrier id and s are those of its tunnel, for a new tunnel zero.
func greet(conn net.Conn, c Config, want uint8, id tunnelID, s secret) (greeting, error) {
	h := hello{Versions: c.versions, Want: want, ID: id, Streams: uint32(c.MaxStreams)}
	_, _ = rand.Read(h.Nonce[:])
	asked, start := encode(h), time.Now()
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
		s = g.welcome.Secret
	} else if g.welcome.ID != id {
		return g, fmt.Errorf("%w: a welcome to another tunnel", ErrHandshake)
	}
	return g, sendMessage(conn, proof(s, asked, answer))
}

// judge checks the host's answer.
func judge(w welcome, ours versionRange) error {
	switch best := ours.best(w.Versions); {
	case w.Status == statusFull:
		return fmt.Errorf("%w: too many tunnels", ErrRefused)
	case w.Status == statusUnknown:
		return fmt.Errorf("%w: unknown tunnel", ErrRefused)
	case w.Status != statusFine && w.Status != statusVersion:
		return fmt.Errorf("%w: status %d", ErrRefused, w.Status)
	case w.Status == statusVersion || best == 0:
		return &VersionError{ours.Min, ours.Max, w.Versions.Min, w.Versions.Max}
	case w.Version != best:
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
	if len(got) < sha256.Size || !hmac.Equal(got[:sha256.Size], proof(s, asked, answer)) {
		return errors.Join(ErrHandshake, errors.New("tunnel: wrong confirmation"))
	}
	return nil
}
