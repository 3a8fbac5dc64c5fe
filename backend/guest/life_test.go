//go:build linux

package guest_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func TestContainerWithOneStaticProgram(t *testing.T) {
	b := newBox(t, false).start()
	client := b.connect()
	t.Logf("init to hello: %v", time.Since(b.started))

	t.Run("says that it has no shell", func(t *testing.T) {
		if client.Hello().Shells {
			t.Error("hello claims a shell")
		}
		_, err := client.OpenTerminal(t.Context(), session.TerminalRequest{Cols: 80, Rows: 24})
		if code := session.CodeOf(err); code != "guest_call_internal-error" {
			t.Errorf("opening a terminal gave %v", err)
		}
	})
	t.Run("executes its program as the person", func(t *testing.T) {
		if got := run(t, client, "/hello"); got.out != "hello from a static program 1234\n" || got.code != 0 {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("shows it on a terminal when asked to", func(t *testing.T) {
		s := open(t, client, session.TerminalRequest{Command: []string{"/hello"}, Cols: 80, Rows: 24})
		if code := s.ended(); code != 0 || !strings.Contains(s.text(), "hello from a static program") {
			t.Errorf("code %d, shown %q", code, s.text())
		}
	})
	t.Run("has user files made from nothing", func(t *testing.T) {
		passwd := readRoot(t, b, "etc/passwd")
		if !strings.HasPrefix(passwd, "work:x:1234:1234:Slipway:/home/work:/bin/sh\n") ||
			!strings.Contains(passwd, "root:x:0:0:") {
			t.Errorf("passwd is %q", passwd)
		}
		if group := readRoot(t, b, "etc/group"); !strings.Contains(group, "work:x:1234:") {
			t.Errorf("group is %q", group)
		}
	})
}

func TestBatch(t *testing.T) {
	isExit := func(e link.Event) bool { return e.Exit != nil }
	t.Run("ends the container with the command's code", func(t *testing.T) {
		b := newBox(t, true)
		b.settings.Command = "echo to stdout; echo to stderr >&2\necho again >/dev/stdout\nexit 7"
		b.start()
		events := watch(t, b.connect())
		if got := await(t, events, "exit", isExit); *got.Exit != 7 {
			t.Errorf("the event says %d", *got.Exit)
		}
		if code := b.exit(); code != 7 {
			t.Errorf("the container ended with %d", code)
		}
		if out := b.output.String(); out != "to stdout\nto stderr\nagain\n" {
			t.Errorf("the log is %q", out)
		}
	})
	t.Run("waits until the agent has seen it run", func(t *testing.T) {
		b := newBox(t, true)
		b.settings.Command = "echo started"
		b.start()
		must(t, b.listener.SetDeadline(time.Now().Add(patience)))
		conn, err := b.listener.Accept() // connected, but nobody says hello
		must(t, err)
		select {
		case <-b.exited:
			t.Fatal("the command ran unseen")
		case <-time.After(300 * time.Millisecond):
		}
		must(t, conn.Close())
		watch(t, b.connect())
		if code := b.exit(); code != 0 || b.output.String() != "started\n" {
			t.Errorf("code %d, log %q", code, b.output.String())
		}
	})
	t.Run("says so when the image has no shell", func(t *testing.T) {
		b := newBox(t, false)
		b.settings.Command = "/hello"
		b.start()
		events := watch(t, b.connect())
		got := await(t, events, "the error", func(e link.Event) bool { return e.Error != nil })
		if got.Error.Code != "session_start_no-shell" || got.Error.Hint == "" {
			t.Errorf("got %+v", got.Error)
		}
		if code := b.exit(); code != 127 {
			t.Errorf("the container ended with %d", code)
		}
	})
	t.Run("passes a stop on and ends with the command's answer to it", func(t *testing.T) {
		b := newBox(t, true)
		b.settings.Command = "trap 'echo saving; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
		b.start()
		watch(t, b.connect())
		waitFor(t, "the command's start", func() bool { return strings.Contains(b.output.String(), "ready") })
		must(t, b.cmd.Process.Signal(syscall.SIGTERM))
		if code := b.exit(); code != 9 || !strings.Contains(b.output.String(), "saving") {
			t.Errorf("code %d, log %q", code, b.output.String())
		}
	})
	t.Run("reports a signal as 128 and its number", func(t *testing.T) {
		b := newBox(t, true)
		b.settings.Command = "kill -9 $$"
		b.start()
		watch(t, b.connect())
		if code := b.exit(); code != 137 {
			t.Errorf("the container ended with %d", code)
		}
	})
}

func TestInit(t *testing.T) {
	t.Run("ends at once and cleanly when stopped", func(t *testing.T) {
		b := newBox(t, true).start()
		client := b.connect()
		s := open(t, client, session.TerminalRequest{Cols: 80, Rows: 24})
		s.typeLine("trap '' TERM; echo in $((1+1))")
		s.expect("in 2")
		must(t, b.cmd.Process.Signal(syscall.SIGTERM))
		if code := b.exit(); code != 0 {
			t.Errorf("ended with %d: %s", code, b.output.String())
		}
	})
	t.Run("reaps what loses its parent", func(t *testing.T) {
		b := newBox(t, true).start()
		client := b.connect()
		run(t, client, "sh", "-c", "for i in 1 2 3 4 5; do (sleep 0.05 &) ; done")
		waitFor(t, "the orphans' burial", func() bool {
			return !strings.Contains(run(t, client, "ps", "-eo", "stat,comm").out, "sleep")
		})
	})
}

func TestPrivileges(t *testing.T) {
	for _, uid := range []int{1234, 0} {
		b := newBox(t, true)
		b.settings.UID, b.settings.GID = uid, uid
		client := b.start().connect()
		status := run(t, client, "cat", "/proc/self/status").out
		for _, want := range []string{"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000",
			"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1"} {
			if !strings.Contains(status, want) {
				t.Errorf("user %d: %q is missing in\n%s", uid, want, status)
			}
		}
		if got := run(t, client, "id"); !strings.Contains(got.out, "(work)") {
			t.Errorf("user %d: id says %+v", uid, got)
		}
		if got := run(t, client, "chown", "4321", "/tmp"); got.code == 0 {
			t.Errorf("user %d may chown", uid)
		}
		if got := run(t, client, "sh", "-c",
			"umask; ulimit -n; cat /proc/self/oom_score_adj; touch ~/mine && pwd"); got.code != 0 ||
			!strings.HasPrefix(got.out, "0022\n") || !strings.HasSuffix(got.out, "/home/work\n") {
			t.Errorf("user %d: got %+v", uid, got)
		}
	}
}
