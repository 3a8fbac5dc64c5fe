//go:build unix

package sshstdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/askpass"
)

// askFunc is a function that is an [askpass.Asker].
type askFunc func(ctx context.Context, question askpass.Question) (string, error)

func (f askFunc) Ask(ctx context.Context, question askpass.Question) (string, error) {
	return f(ctx, question)
}

func codeOf(err error) string {
	var fault *tunnel.Fault
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if codeOf(err) != code {
		t.Errorf("the error is %v, not %s", err, code)
	}
}

// echo checks that a carrier to cat works in both directions.
func echo(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Fatalf("read %q, %v", got, err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

func TestACarrierGoesThroughSSH(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	for _, silent := range []bool{false, true} {
		conn, err := p.remote(t, s.address(), nil).Dial(soon(t), silent)
		if err != nil {
			t.Fatalf("silent %v: %v", silent, err)
		}
		echo(t, conn)
		if err := conn.(tunnel.Carrier).Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Error(err)
		}
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("after the end cat's output ends with %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestATunnelGoesThroughSSH(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	host := tunnel.NewHost(tunnel.Config{})
	defer host.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = host.Serve(tunnel.Carrier{Conn: conn, Peer: tunnel.Peer{Transport: "unix"}}) }()
		}
	}()
	go func() {
		far, err := host.Accept(t.Context())
		if err != nil {
			return
		}
		for {
			stream, err := far.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(stream, stream) }()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := p.remote(t, s.address(), nil, "env", "SSHSTDIO_TEST_BRIDGE="+listener.Addr().String(), self)
	near, err := tunnel.Dial(soon(t), r, tunnel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	if peer := near.Peer(); peer.Transport != "ssh" || peer.Name != s.address() {
		t.Errorf("the peer is %+v", peer)
	}
	waitFor(t, "a second connection", func() bool { return near.Stats().Carriers == 2 })
	for _, class := range []tunnel.Class{tunnel.Control, tunnel.Interactive, tunnel.Bulk} {
		stream, err := near.Open(soon(t), class)
		if err != nil {
			t.Fatal(err)
		}
		echo(t, stream)
		_ = stream.Close()
	}
	s.logins(t, 2)
}

func TestNoiseOfTheLoginShellIsNotTheAgents(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p,
		`ForceCommand echo welcome to the lab; printf 'no line end'; sh -c "$SSH_ORIGINAL_COMMAND"; echo bye`)
	p.trust(t, s)
	r := p.remote(t, s.address(), nil)
	conn, err := r.Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	echo(t, conn)
	result, err := r.Run(soon(t), []string{"printf", "%s\n", "clean"}, nil)
	if err != nil || string(result.Stdout) != "clean\n" {
		t.Errorf("ran to %q, %v", result.Stdout, err)
	}
}

func TestFailuresHaveCodes(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	dial := func(host string, command ...string) error {
		conn, err := p.remote(t, host, nil, command...).Dial(soon(t), false)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	t.Run("no such host", func(t *testing.T) { wantCode(t, dial("nobody.invalid"), "agent_connect_unavailable") })
	t.Run("nobody listens", func(t *testing.T) {
		wantCode(t, dial(fmt.Sprintf("127.0.0.1:%d", freePort(t))), "agent_connect_unavailable")
	})
	t.Run("no such command", func(t *testing.T) {
		wantCode(t, dial(s.address(), "~/no/such/slipway", "agent", "--stdio"), "agent_connect_unavailable")
	})
	t.Run("the key is not accepted", func(t *testing.T) {
		stranger := newPlace(t)
		stranger.trust(t, s)
		conn, err := stranger.remote(t, s.address(), nil).Dial(soon(t), true)
		if err == nil {
			_ = conn.Close()
		}
		wantCode(t, err, "agent_connect_asks")
		if !errors.Is(err, tunnel.ErrWouldAsk) {
			t.Errorf("a silent login that fails is %v, not ErrWouldAsk", err)
		}
	})
	t.Run("no ssh", func(t *testing.T) {
		r, err := Open(Config{Host: Host{Name: "lab"}, Command: []string{"cat"}, SSH: "no-such-ssh"})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		_, err = r.Dial(soon(t), true)
		wantCode(t, err, "agent_connect_invalid")
	})
	t.Run("a mistake in the configuration", func(t *testing.T) {
		broken := newPlace(t)
		broken.configure(t, "NoSuchOption yes\n")
		_, err := broken.remote(t, s.address(), nil).Dial(soon(t), false)
		wantCode(t, err, "agent_connect_invalid")
	})
	t.Run("no ssh server", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		wantCode(t, dial(l.Addr().String()), "agent_connect_unavailable")
	})
	t.Run("a host that never answers", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithTimeout(soon(t), 300*time.Millisecond)
		defer cancel()
		_, err = p.remote(t, l.Addr().String(), nil).Dial(ctx, false)
		wantCode(t, err, "agent_connect_unavailable")
	})
}

func TestTheAgentsDeathIsExplained(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	p.trust(t, s)
	conn, err := p.remote(t, s.address(), nil, "sh", "-c", "echo the daemon is not running >&2; exit 4").
		Dial(soon(t), true)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	wantCode(t, err, "agent_connect_unavailable")
	if err == nil || !strings.Contains(err.Error(), "the daemon is not running") {
		t.Errorf("the error %v does not say why", err)
	}
}

func TestUnknownHostsAreAskedAbout(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	t.Run("a silent dial asks nobody", func(t *testing.T) {
		_, err := p.remote(t, s.address(), nil).Dial(soon(t), true)
		wantCode(t, err, "agent_connect_host-key")
		if !errors.Is(err, tunnel.ErrWouldAsk) {
			t.Errorf("it fails with %v, not ErrWouldAsk", err)
		}
	})
	t.Run("a refusal keeps it unknown", func(t *testing.T) {
		refuse := errors.New("not mine")
		_, err := p.remote(t, s.address(),
			askFunc(func(context.Context, askpass.Question) (string, error) { return "", refuse })).Dial(soon(t), false)
		if wantCode(t, err, "agent_connect_auth"); !errors.Is(err, refuse) {
			t.Errorf("the person's reason is lost in %v", err)
		}
		if _, err := os.Stat(p.known); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("known_hosts was written: %v", err)
		}
	})
	t.Run("so is one that the configuration would accept", func(t *testing.T) {
		p.configure(t, "StrictHostKeyChecking accept-new\n")
		asked := false
		_, err := p.remote(t, s.address(), askFunc(func(_ context.Context, q askpass.Question) (string, error) {
			asked = true
			return "no", nil
		})).Dial(soon(t), false)
		wantCode(t, err, "agent_connect_host-key")
		if !asked {
			t.Error("nobody was asked")
		}
	})
	t.Run("a yes makes it known", func(t *testing.T) {
		p.configure(t, "")
		var asked []askpass.Question
		r := p.remote(t, s.address(), askFunc(func(_ context.Context, q askpass.Question) (string, error) {
			asked = append(asked, q)
			return "yes", nil
		}))
		conn, err := r.Dial(soon(t), false)
		if err != nil {
			t.Fatal(err)
		}
		echo(t, conn)
		_ = conn.Close()
		if len(asked) != 1 || asked[0].Kind != askpass.KindHostKey || asked[0].Secret ||
			!strings.HasPrefix(asked[0].Fingerprint, "SHA256:") || !strings.Contains(asked[0].Host, "127.0.0.1") {
			t.Errorf("asked %+v", asked)
		}
		again, err := r.Dial(soon(t), true)
		if err != nil {
			t.Fatal(err)
		}
		_ = again.Close()
	})
}

func TestAChangedHostKeyIsNeverSilent(t *testing.T) {
	p := newPlace(t)
	s := startServer(t, p)
	other, err := os.ReadFile(p.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	p.know(t, s.port, string(other))
	p.configure(t, "StrictHostKeyChecking no\n")
	yes := askFunc(func(context.Context, askpass.Question) (string, error) { return "yes", nil })
	for _, silent := range []bool{false, true} {
		_, err := p.remote(t, s.address(), yes).Dial(soon(t), silent)
		wantCode(t, err, "agent_connect_host-key")
		var changed *HostKeyError
		if !errors.As(err, &changed) || !strings.HasPrefix(changed.Fingerprint, "SHA256:") ||
			!strings.Contains(changed.Where, p.known) {
			t.Errorf("silent %v: the error holds %+v", silent, changed)
		}
		if errors.Is(err, tunnel.ErrWouldAsk) {
			t.Error("a changed key counts as a question")
		}
	}
	t.Run("a person says that it is the same host", func(t *testing.T) {
		person := &asker{answers: map[askpass.Kind][]string{askpass.KindHostKey: {"yes"}}}
		r := p.remote(t, s.address(), person)
		_, err := r.Dial(soon(t), false)
		var changed *HostKeyError
		if !errors.As(err, &changed) || changed.Host != fmt.Sprintf("[127.0.0.1]:%d", s.port) {
			t.Fatalf("the error holds %+v", changed)
		}
		if err := r.Forget(soon(t), changed); err != nil {
			t.Fatal(err)
		}
		conn, err := r.Dial(soon(t), false)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		if len(person.asked) != 1 || person.asked[0].Fingerprint != changed.Fingerprint {
			t.Errorf("asked %+v about %s", person.asked, changed.Fingerprint)
		}
		wantCode(t, r.Forget(soon(t), &HostKeyError{}), "agent_connect_host-key")
	})
	t.Run("a machine that names others in its messages", func(t *testing.T) {
		const key = " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA4dFxhTNkEG3nLkFj5bCFKbFFu7MFnbFbIPb4GZ2Cw0\n"
		const line = "victim.example" + key
		own := fmt.Sprintf("[127.0.0.1]:%d", s.port)
		other := filepath.Join(t.TempDir(), "known_hosts")
		for _, file := range []string{p.known, other} {
			if err := os.WriteFile(file, []byte(line+own+key), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r := p.remote(t, s.address(), &asker{})
		for _, forged := range []HostKeyError{
			{Host: "victim.example", Where: p.known + ":1"}, {Host: own, Where: other + ":2"},
			{Host: "victim.example", Where: other + ":1"},
		} {
			wantCode(t, r.Forget(soon(t), &forged), "agent_connect_host-key")
		}
		for _, file := range []string{p.known, other} {
			data, err := os.ReadFile(file)
			if err != nil || string(data) != line+own+key {
				t.Errorf("%s holds %q, %v", file, data, err)
			}
		}
	})
}
