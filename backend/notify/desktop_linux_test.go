package notify

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"slipway/backend/session"
)

// desk is a desktop that keeps what it is asked to show.
type desk struct {
	mu    sync.Mutex
	shown []string
}

// Notify is the method of the specification.
func (d *desk) Notify(app string, replaces uint32, _, title, text string, _ []string, hints map[string]dbus.Variant,
	_ int32) (uint32, *dbus.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	urgent := ""
	if hints["urgency"].Value() == critical {
		urgent = "!"
	}
	d.shown = append(d.shown, strings.Join([]string{app, title + urgent, text}, "|"))
	if replaces != 0 {
		return replaces, nil
	}
	return uint32(len(d.shown)), nil
}

// startBus starts a session bus of its own.
func startBus(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Fatal("dbus-daemon is missing: build/ci/setup.sh test installs it")
	}
	cmd := exec.Command(program, "--session", "--nofork", "--print-address", "--address=unix:dir="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line := make([]byte, 512)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line[:n]))
}

func TestTheDesktopShowsNotices(t *testing.T) {
	address := startBus(t)
	d := NewDesktop(func(name string) string {
		if name == "DBUS_SESSION_BUS_ADDRESS" {
			return address
		}
		return t.TempDir()
	})
	t.Cleanup(func() { _ = d.Close() })
	if d.Available(t.Context()) {
		t.Fatal("it is available while nobody shows notices")
	}
	if err := d.Show(t.Context(), Notice{Title: "x"}); session.CodeOf(err) != "server_request_unavailable" {
		t.Fatalf("Show: %v", err)
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	shows := &desk{}
	if err := conn.Export(shows, object, service); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(service, 0); err != nil {
		t.Fatal(err)
	}
	if !d.Available(t.Context()) {
		t.Fatal("it is not available")
	}
	for _, n := range []Notice{{Session: "a", Title: "one", Text: "1 < 2 & 3"},
		{Session: "a", Title: "two", Urgent: true}} {
		if err := d.Show(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	shows.mu.Lock()
	defer shows.mu.Unlock()
	if got := strings.Join(shows.shown, " "); got != "Slipway|one|1 &lt; 2 &amp; 3 Slipway|two!|" {
		t.Fatalf("shown: %s", got)
	}
	if d.shown["a"] != 1 {
		t.Fatalf("the second notice has not replaced the first: %v", d.shown)
	}
}

func TestWithoutABusThereIsNoDesktop(t *testing.T) {
	dir := t.TempDir()
	d := NewDesktop(func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return dir
		}
		return ""
	})
	if d.Available(t.Context()) {
		t.Fatal("there is one")
	}
}

func TestABusThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	mute, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	d := NewDesktop(func(string) string { return "unix:path=" + path })
	t.Cleanup(func() { _ = d.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan bool)
	go func() { answered <- d.Available(ctx) }()
	taken, err := mute.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	cancel()
	if <-answered {
		t.Fatal("it is available")
	}
	if err := d.Show(ctx, Notice{Title: "x"}); session.CodeOf(err) != "server_request_unavailable" {
		t.Fatalf("Show: %v", err)
	}
}
