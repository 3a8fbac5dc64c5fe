package node

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"slipway/backend/engine"
)

const (
	secretSize = 32
	nonceSize  = 32
	proofSize  = sha256.Size
	// proofTimeout is how long a caller and the runner wait for each other's proof.
	proofTimeout = 10 * time.Second
	maxStats     = 4 << 10 // bytes of one sample
)

// Answered is what slipway-guest answer writes once the guest has dialled.
const Answered = 'G'

// ErrStranger says that whoever answers does not know the meeting's secret: the meeting is an old one.
var ErrStranger = errors.New("another program answers where the guest was")

// wish is what a caller wants.
type wish byte

const (
	wishLink  wish = 'L'
	wishStats wish = 'S'
)

// Dial returns a link to the guest of a kernel, which closes the link before. The error is fs.ErrNotExist while its
// guest does not run, and [ErrStranger] if the meeting is an old one.
func Dial(ctx context.Context, dir, kernel string) (net.Conn, error) {
	return meet(ctx, dir, kernel, wishLink)
}

// Through is [Dial] over a connection that a relay has made. It closes the connection if it fails.
func Through(ctx context.Context, conn net.Conn, m Meeting) (net.Conn, error) {
	return prove(ctx, conn, m, wishLink)
}

// ReadStats returns one sample of the resource use of a kernel that runs, without touching its link. It fails as [Dial]
// does.
func ReadStats(ctx context.Context, dir, kernel string) (engine.Stats, error) {
	conn, err := meet(ctx, dir, kernel, wishStats)
	if err != nil {
		return engine.Stats{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var sample engine.Stats
	if err := json.NewDecoder(io.LimitReader(conn, maxStats)).Decode(&sample); err != nil {
		return engine.Stats{}, fmt.Errorf("read the use of %s: %w", kernel, err)
	}
	return checkStats(sample), nil
}

// checkStats makes what cannot be negative at least 0.
func checkStats(s engine.Stats) engine.Stats {
	s.CPU = max(0, s.CPU)
	s.Memory, s.MemLimit = max(0, s.Memory), max(0, s.MemLimit)
	s.NetRx, s.NetTx = max(0, s.NetRx), max(0, s.NetTx)
	s.DiskRead, s.DiskWrite = max(0, s.DiskRead), max(0, s.DiskWrite)
	s.Pids, s.OOMKills = max(0, s.Pids), max(0, s.OOMKills)
	return s
}

func meet(ctx context.Context, dir, kernel string, want wish) (net.Conn, error) {
	m, err := ReadMeeting(dir, kernel)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(m.Host, strconv.Itoa(m.Port)))
	if err != nil {
		return nil, err
	}
	return prove(ctx, conn, m, want)
}

// prove is the caller's part of the handshake.
func prove(ctx context.Context, conn net.Conn, m Meeting, want wish) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_ = conn.SetDeadline(time.Now().Add(proofTimeout))
	err := askProof(conn, m, want)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

func askProof(conn net.Conn, m Meeting, want wish) error {
	secret, err := hex.DecodeString(m.Secret)
	if err != nil {
		return err
	}
	ours := nonce()
	if _, err := conn.Write(ours); err != nil {
		return err
	}
	answer := make([]byte, nonceSize+proofSize)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrStranger, err)
	}
	theirs := answer[:nonceSize]
	if !hmac.Equal(answer[nonceSize:], proof(secret, "runner", 0, ours, theirs)) {
		return ErrStranger
	}
	_, err = conn.Write(append([]byte{byte(want)}, proof(secret, "caller", want, ours, theirs)...))
	return err
}

// answerProof is the runner's part of the handshake. It returns what the caller wants.
func answerProof(conn net.Conn, secret []byte) (wish, error) {
	_ = conn.SetDeadline(time.Now().Add(proofTimeout))
	theirs, ours := make([]byte, nonceSize), nonce()
	if _, err := io.ReadFull(conn, theirs); err != nil {
		return 0, err
	}
	if _, err := conn.Write(append(ours, proof(secret, "runner", 0, theirs, ours)...)); err != nil {
		return 0, err
	}
	answer := make([]byte, 1+proofSize)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return 0, err
	}
	want := wish(answer[0])
	if !hmac.Equal(answer[1:], proof(secret, "caller", want, theirs, ours)) {
		return 0, errors.New("a caller does not know the secret")
	}
	return want, conn.SetDeadline(time.Time{})
}

// proof proves the knowledge of secret to whoever sent one of two fresh random values.
func proof(secret []byte, who string, want wish, caller, runner []byte) []byte {
	sum := hmac.New(sha256.New, secret)
	_, _ = sum.Write(append([]byte(who), byte(want))) // never fails
	_, _ = sum.Write(caller)
	_, _ = sum.Write(runner)
	return sum.Sum(nil)
}

func nonce() []byte {
	random := make([]byte, nonceSize, nonceSize+proofSize)
	_, _ = rand.Read(random) // never fails
	return random
}
