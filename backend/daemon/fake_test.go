//go:build unix

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

// TestMain makes copies of the test program daemons: what one does follows from
// the name that it was started by.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "agent":
		os.Exit(beDaemon())
	case len(os.Args) > 1 && os.Args[1] == "stranger":
		os.Exit(beStranger(os.Args[2]))
	}
	os.Exit(m.Run())
}

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 2 * time.Minute

// fake is a daemon without an agent.
type fake struct {
	home   place.Home
	role   string
	stop   context.CancelFunc
	live   int
	ending bool
}

func asDaemon(f *fake) Daemon { return Daemon{Process: f, Admin: f, Pairing: f} }

func (f *fake) Status(context.Context) (Status, error) {
	sum, err := ProgramSum()
	if f.ending && f.live > 0 {
		f.live--
	}
	return Status{Role: f.role, PID: os.Getpid(), Version: os.Getenv("FAKE_VERSION"), Home: f.home.Dir, SHA256: sum,
		Live: f.live, Keeper: Keeper(os.Getenv), Program: os.Args[0]}, err
}
func (f *fake) Stop(context.Context) error        { f.stop(); return nil }
func (f *fake) EndSessions(context.Context) error { f.ending = true; return nil }
func (f *fake) PairCode(_ context.Context, r session.PairRequest) (session.PairCode, error) {
	return session.PairCode{Code: "12-tin-" + r.Owner}, nil
}
func (f *fake) PairedClients(context.Context) ([]session.PairedClient, error) {
	return []session.PairedClient{{Name: "laptop"}}, nil
}
func (f *fake) RotateKey(context.Context) (session.KeyRotation, error) {
	return session.KeyRotation{Before: "old", Key: "new", Clients: 2}, nil
}
func (f *fake) RevokeClient(_ context.Context, client string) error {
	if client != "a/b" {
		return &session.Error{Code: "agent_find_not-found", Message: "There is no client " + client + ".",
			Hint: "List them."}
	}
	return nil
}

// beDaemon rules the folder as the daemon does. A program named mute holds it
// and never answers, one named dying ends at once.
func beDaemon() int {
	home, err := place.FindHome(nil)
	if err != nil {
		return 1
	}
	self := filepath.Base(evaluated(os.Args[0]))
	if strings.HasPrefix(self, "dying") || os.Getenv("FAKE_BROKEN") != "" {
		fmt.Println("I cannot go on")
		return 3
	}
	lock, err := home.Lock()
	if err != nil {
		return 1
	}
	defer lock.Close() //nolint:errcheck // the process ends
	if books := home.Join("agent.db"); !strings.HasPrefix(self, "old") {
		_ = os.WriteFile(books, []byte("newer form"), 0o600)
	} else if data, err := os.ReadFile(books); err == nil && string(data) != "old form" {
		return 4 // as a program does that meets a newer form
	}
	if strings.HasPrefix(self, "mute") {
		select {}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	role := RoleAgent
	if strings.HasPrefix(self, "plane") {
		role = RolePlane
	}
	sockets, err := Listen(home, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return 1
	}
	go echo(sockets.Tunnel)
	live := 0
	_, _ = fmt.Sscan(os.Getenv("FAKE_LIVE"), &live)
	err = Serve(ctx, sockets.Control, asDaemon(&fake{home: home, role: role, stop: stop, live: live}),
		slog.New(slog.DiscardHandler))
	if errors.Join(err, sockets.Close()) != nil {
		return 1
	}
	if told := os.Getenv("FAKE_DIALLED"); told != "" { // a client that loses its tunnel connects again
		_, err := Start(context.Background(), home, StartOptions{Keeper: KeeperNone, Timeout: time.Second})
		_ = os.WriteFile(told, []byte(fmt.Sprint(err)), 0o600)
	}
	return 0
}

// echo sends back what comes.
func echo(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
	}
}

// dialOld connects as programs of before do.
func dialOld(path string) (net.Conn, error) {
	name, release, err := shortPath(path)
	if err != nil {
		return nil, err
	}
	defer release()
	return net.Dial("unix", name)
}

func evaluated(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// beStranger tries to talk to a daemon as a hostile program does, by the sockets
// themselves: what it is answered it prints, and what Slipway's own client says.
func beStranger(dir string) int {
	home := place.Home{Dir: dir}
	for _, name := range []string{tunnelSocket, controlSocket} {
		conn, err := net.Dial("unix", home.Join(name))
		if err != nil {
			fmt.Println("cannot dial:", err)
			return 2
		}
		_, _ = io.WriteString(conn, "GET /status HTTP/1.1\r\nHost: agent\r\n\r\n") // it may be closed already
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			fmt.Println("let in:", name)
			return 1
		}
	}
	_, err := Connect(context.Background(), home)
	fmt.Println("refused", session.CodeOf(err))
	return 0
}

// program makes a program of its own hash in the folder of a home's programs.
func program(t *testing.T, home place.Home, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := home.Join("bin", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := copyFile(self, path); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(name) // behind what the system loads
	if err = errors.Join(err, file.Close(), os.Chmod(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	return path
}

// newHome is a folder whose daemon, if one runs at the end, is stopped.
func newHome(t *testing.T) place.Home {
	t.Helper()
	home := place.Home{Dir: filepath.Join(t.TempDir(), "home")}
	t.Setenv("PATH", t.TempDir()) // no systemd
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if c, err := Connect(ctx, home); err == nil {
			if err := c.StopAndWait(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	return home
}

func start(t *testing.T, home place.Home, program string) Status {
	t.Helper()
	status, err := Start(t.Context(), home, StartOptions{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	return status
}

func (f *fake) Audit(context.Context, session.AuditQuery) ([]session.AuditEntry, error) {
	return []session.AuditEntry{}, nil
}

func (f *fake) Limits(context.Context) (map[string]session.Allowance, error) {
	return map[string]session.Allowance{}, nil
}

func (f *fake) SetLimit(context.Context, string, *session.Allowance) error { return nil }
