//go:build unix

package sshstdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/tunnel/askpass"
)

// TestMain makes the test program what ssh starts to ask a question.
func TestMain(m *testing.M) {
	if exit, handled := askpass.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr); handled {
		os.Exit(exit)
	}
	if socket := os.Getenv("SSHSTDIO_TEST_BRIDGE"); socket != "" {
		os.Exit(bridge(socket))
	}
	if host := os.Getenv("SSHSTDIO_TEST_HOLD"); host != "" {
		os.Exit(hold(host, os.Getenv("SSHSTDIO_TEST_CONFIG")))
	}
	os.Exit(m.Run())
}

// place is a folder with keys and a client configuration of its own.
type place struct {
	dir    string
	config string // for ssh -F
	known  string // its known_hosts
	key    string // private key without a passphrase
}

func newPlace(t *testing.T) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{dir: dir, config: filepath.Join(dir, "config"), known: filepath.Join(dir, "known_hosts"),
		key: filepath.Join(dir, "id")}
	p.keygen(t, p.key, "")
	p.configure(t, "")
	return p
}

func (p *place) keygen(t *testing.T, path, passphrase string) {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "test", "-f", path).
		CombinedOutput()
	if err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
}

// configure writes the client's configuration: what is given, then defaults.
func (p *place) configure(t *testing.T, text string) {
	t.Helper()
	text += fmt.Sprintf("\nHost *\n  UserKnownHostsFile %s\n  GlobalKnownHostsFile none\n  IdentityFile %s\n  "+
		"IdentitiesOnly yes\n  UpdateHostKeys no\n", p.known, p.key)
	write(t, p.config, text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// trust makes a server's key known.
func (p *place) trust(t *testing.T, s *sshServer) {
	t.Helper()
	public, err := os.ReadFile(s.hostKey + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	p.know(t, s.port, string(public))
}

func (p *place) know(t *testing.T, port int, public string) {
	t.Helper()
	write(t, p.known, fmt.Sprintf("[127.0.0.1]:%d %s", port, public))
}

// sshServer is a real sshd on the loopback interface.
type sshServer struct {
	port       int
	hostKey    string
	authorized string // the file of keys that it lets in
	process    *os.Process
	log        *tail
}

// startServer runs an sshd that lets in whoever has the place's key.
func startServer(t *testing.T, p *place, settings ...string) *sshServer {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs an sshd")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd insists on it
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	s := &sshServer{port: freePort(t), hostKey: filepath.Join(dir, "host"), log: &tail{limit: 64 << 10}}
	p.keygen(t, s.hostKey, "")
	s.authorized = filepath.Join(dir, "authorized_keys")
	public, err := os.ReadFile(p.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	write(t, s.authorized, string(public))
	lines := []string{
		"ListenAddress 127.0.0.1", fmt.Sprintf("Port %d", s.port), "HostKey " + s.hostKey,
		"PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"AuthorizedKeysFile " + s.authorized, "PermitRootLogin yes", "LogLevel VERBOSE", "PrintMotd no",
		"MaxStartups 100",
		// A shell below another one reads no ~/.bashrc, which is the developer's own and may leave a lock when it is
		// killed.
		"SetEnv SHLVL=2",
	}
	config := filepath.Join(dir, "sshd_config")
	write(t, config, strings.Join(append(settings, lines...), "\n")+"\n")
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	cmd.Stderr = s.log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start sshd: %v", err)
	}
	s.process = cmd.Process
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("sshd said:\n%s", s.log)
		}
	})
	s.awaitUp(t)
	return s
}

func (s *sshServer) awaitUp(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		conn, err := net.DialTimeout("tcp", s.address(), time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("sshd does not listen: %v\n%s", err, s.log)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *sshServer) address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// freePort is a port of the loopback interface that nobody listens on and that
// the system gives to nobody else for as long as the test runs: a socket holds
// it that does not listen, and whoever asks for the very port may listen beside.
func freePort(t *testing.T) int {
	t.Helper()
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := errors.Join(syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1),
		syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return bound.(*syscall.SockaddrInet4).Port
}

// logins waits until the server has logged so many logins, which it may do
// after the client has gone on, and fails if there were more.
func (s *sshServer) logins(t *testing.T, want int) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d logins", want), func() bool { return s.accepted() >= want })
	if n := s.accepted(); n != want {
		t.Errorf("there were %d logins, not %d", n, want)
	}
}

func (s *sshServer) accepted() int { return strings.Count(s.log.String(), "Accepted publickey") }

// waitFor asks again and again until something holds, for as long as the
// slowest machine may need.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// remote opens a Remote in a place.
func (p *place) remote(t *testing.T, host string, asker askpass.Asker, command ...string) *Remote {
	t.Helper()
	h, err := ParseHost(host)
	if err != nil {
		t.Fatal(err)
	}
	if len(command) == 0 {
		command = []string{"cat"}
	}
	r, err := Open(Config{Host: h, Command: command, Asker: asker, ConfigFile: p.config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// hold logs in twice, as Slipway does, says by which processes and waits.
func hold(host, config string) int {
	h, err := ParseHost(host)
	if err != nil {
		return 1
	}
	r, err := Open(Config{Host: h, Command: []string{"cat"}, ConfigFile: config})
	if err != nil {
		return 1
	}
	ctx := context.Background()
	conn, err := r.Dial(ctx, true)
	if err != nil {
		return 1
	}
	if _, err := r.Run(ctx, []string{"true"}, nil); err != nil {
		return 1
	}
	fmt.Println(sshOf(conn).Pid, r.master.carrier.child.cmd.Process.Pid)
	select {}
}

// bridge joins standard input and output to a socket, as an agent's far side
// does.
func bridge(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 1
	}
	go func() {
		_, _ = io.Copy(os.Stdout, conn)
		os.Exit(0)
	}()
	_, _ = io.Copy(conn, os.Stdin)
	return 0
}
