package node_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/backend/guest/node"
)

func TestTheNewestLinkCounts(t *testing.T) {
	j := newJob(t).start()
	first := j.connect()
	second := j.connect()
	select {
	case <-first.Done():
	case <-time.After(patience):
		t.Fatal("the first link stays")
	}
	if got := j.run(second, "echo works"); got != "works" {
		t.Errorf("the second says %q", got)
	}
	_ = second.Close()
	if got := j.run(j.connect(), "echo works"); got != "works" {
		t.Errorf("the third says %q", got)
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	j := newJob(t).start()
	client := j.connect()
	m := j.meet()
	address := net.JoinHostPort("127.0.0.1", fmt.Sprint(m.Port))

	wrong := m
	wrong.Secret = strings.Repeat("ab", 32)
	conn, err := net.Dial("tcp", address)
	must(t, err)
	if _, err := node.Through(t.Context(), conn, wrong); !errors.Is(err, node.ErrStranger) {
		t.Errorf("with another secret: %v", err)
	}
	for _, size := range []int{0, 1, 32, 64, 65, 97, 4096} {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		noise := make([]byte, size)
		_, _ = rand.Read(noise)
		_, err = conn.Write(noise)
		must(t, err)
		if size >= 65 { // a nonce and an answer
			must(t, conn.SetReadDeadline(time.Now().Add(patience)))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d random bytes are not turned away", size)
			}
		}
		defer conn.Close()
	}
	for range 200 { // more than may prove themselves at once
		conn, err := net.Dial("tcp", address)
		must(t, err)
		defer conn.Close()
	}
	if got := j.run(client, "echo works"); got != "works" {
		t.Errorf("after strangers the link says %q", got)
	}
}

func TestAProgramOfTheContainerIsNotTheGuest(t *testing.T) {
	j := newJob(t).start()
	client := j.connect()
	for _, way := range []string{"", "unshare -Ur "} {
		script := way + `python3 -c 'import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/.slipway/link/agent.sock")
print(s.recv(1))'`
		if got := j.run(client, script); got != "b''" {
			t.Errorf("%q: %q", way, got)
		}
	}
	_ = client.Close()
	if got := j.run(j.connect(), "echo works"); got != "works" {
		t.Errorf("the link says %q", got)
	}
}

func TestAnOldMeeting(t *testing.T) {
	j := newJob(t)
	if _, err := node.Dial(t.Context(), j.dir, "main1"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a meeting: %v", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte(strings.Repeat("another program ", 8)))
		}
	}()
	old := node.Meeting{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Socket: "/tmp/x",
		Secret: hex.EncodeToString(make([]byte, 32)), Job: "40"}
	j.write("main1.meeting", old)
	if _, err := node.Dial(t.Context(), j.dir, "main1"); !errors.Is(err, node.ErrStranger) {
		t.Errorf("with another program there: %v", err)
	}
	must(t, listener.Close())
	if _, err := node.Dial(t.Context(), j.dir, "main1"); err == nil || errors.Is(err, node.ErrStranger) {
		t.Errorf("with nothing there: %v", err)
	}
	for name, bad := range map[string]node.Meeting{
		"host":   {Host: "-x", Port: 1, Socket: "/x", Secret: old.Secret},
		"port":   {Host: "a", Socket: "/x", Secret: old.Secret},
		"secret": {Host: "a", Port: 1, Socket: "/x", Secret: "ab"},
		"socket": {Host: "a", Port: 1, Secret: old.Secret},
	} {
		j.write("main1.meeting", bad)
		if _, err := node.ReadMeeting(j.dir, "main1"); err == nil {
			t.Errorf("a meeting with a bad %s is read", name)
		}
	}
	j.write("main1.meeting", old)
	j.start()
	j.until("the new meeting", func() bool {
		m, err := node.ReadMeeting(j.dir, "main1")
		return err == nil && m.Job == "41"
	})
	if got := j.run(j.connect(), "echo works"); got != "works" {
		t.Errorf("the link says %q", got)
	}
}

func TestDialingEndsWithItsContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	j := newJob(t)
	j.write("main1.meeting", node.Meeting{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port,
		Socket: "/tmp/x", Secret: hex.EncodeToString(make([]byte, 32))})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := node.Dial(ctx, j.dir, "main1"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("dialing ended with %v", err)
	}
}

// pipe is the stdio of a program as a connection.
type pipe struct {
	net.Conn // nothing of it is used
	io.Reader
	io.WriteCloser
}

func (p pipe) Read(b []byte) (int, error)       { return p.Reader.Read(b) }
func (p pipe) Write(b []byte) (int, error)      { return p.WriteCloser.Write(b) }
func (p pipe) Close() error                     { return p.WriteCloser.Close() }
func (p pipe) SetDeadline(time.Time) error      { return nil }
func (p pipe) SetReadDeadline(time.Time) error  { return nil }
func (p pipe) SetWriteDeadline(time.Time) error { return nil }

// relay starts a relay to the guest and returns its stdio.
func (j *job) relay() (pipe, *exec.Cmd) {
	j.t.Helper()
	cmd := j.command("relay", j.meet().Socket)
	in, err := cmd.StdinPipe()
	must(j.t, err)
	out, err := cmd.StdoutPipe()
	must(j.t, err)
	must(j.t, cmd.Start())
	return pipe{Reader: out, WriteCloser: in}, cmd
}

func TestARelayEndsWithEitherSide(t *testing.T) {
	j := newJob(t).start()
	stdio, first := j.relay()
	conn, err := node.Through(t.Context(), stdio, j.meet())
	must(t, err)
	client := greet(t, conn)
	if got := j.run(client, "echo works"); got != "works" {
		t.Errorf("through a relay: %q", got)
	}
	_ = client.Close() // its standard input ends
	waited := make(chan error, 1)
	go func() { waited <- first.Wait() }()
	select {
	case <-waited:
	case <-time.After(patience):
		t.Fatal("the relay outlives its caller")
	}

	stdio, second := j.relay() // whose caller was killed: its standard input stays open
	conn, err = node.Through(t.Context(), stdio, j.meet())
	must(t, err)
	greet(t, conn)
	if got := j.run(j.connect(), "echo works"); got != "works" {
		t.Errorf("after a relay: %q", got)
	}
	go func() { waited <- second.Wait() }()
	select {
	case <-waited:
	case <-time.After(patience):
		t.Fatal("the relay outlives its link")
	}
	if out, err := j.command("relay", filepath.Join(j.dir, "none")).CombinedOutput(); err == nil {
		t.Errorf("without a socket the relay says %q", out)
	}
}
