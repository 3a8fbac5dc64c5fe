//go:build linux

package guest_test

import (
	"strings"
	"syscall"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

func TestASetupEndsWithItsSession(t *testing.T) {
	for name, command := range map[string]string{"interactive": "", "batch": "echo never"} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t, true)
			b.settings.Command, b.settings.Setup = command, "id -u; echo $GREETING; sleep 1000"
			b.start()
			watch(t, b.connect())
			waitFor(t, "the setup", func() bool { return strings.Contains(b.output.String(), "1234\ngood day\n") })
			must(t, b.cmd.Process.Signal(syscall.SIGTERM))
			b.exit()
			if log := b.output.String(); strings.Contains(log, "never") || strings.Contains(log, "failed") {
				t.Errorf("the log is %q", log)
			}
		})
	}
}

func TestActionsBeforeTheStartOfAServer(t *testing.T) {
	serving := func(t *testing.T, argv []string, actions ...session.StartAction) *box {
		b := newBox(t, true)
		b.settings.Server = &engine.Server{Argv: argv, Actions: actions}
		return b.start()
	}
	isExit := func(e link.Event) bool { return e.Exit != nil }

	t.Run("are done in order, as the person", func(t *testing.T) {
		const show = "cat made/deep/config /tmp/slipway-*.py; stat -c '%a %u' made/deep/config"
		b := serving(t, []string{"sh", "-c", show},
			session.StartAction{Action: "mkdir", Path: "made/deep"},
			session.StartAction{Action: "write_file", Path: "made/deep/config", Body: "one\n"},
			session.StartAction{Action: "write_file", Path: "/home/work/made/deep/config", Body: "two\n", Append: true,
				Mode: "750"},
			session.StartAction{Action: "write_tempfile", Body: "three\n"},
			session.StartAction{Action: "run_command", Command: []string{"sh", "-c", "echo four $GREETING; id -u >&2"}},
			session.StartAction{Action: "log", Message: "five"})
		events := watch(t, b.connect())
		if got := await(t, events, "exit", isExit); *got.Exit != 0 {
			t.Errorf("the server ended with %d", *got.Exit)
		}
		if code := b.exit(); code != 0 {
			t.Errorf("the container ended with %d", code)
		}
		log := b.output.String()
		for _, want := range []string{"write_tempfile: /tmp/slipway-", "four good day\n", "1234\n",
			"five\none\ntwo\nthree\n750 1234\n"} {
			if !strings.Contains(log, want) {
				t.Errorf("%q is not in the log:\n%s", want, log)
			}
		}
	})

	for name, c := range map[string]struct {
		action  session.StartAction
		code    int
		message string
	}{
		"a program with a code of its own": {session.StartAction{Action: "run_command",
			Command: []string{"sh", "-c", "echo no such package; exit 7"}}, 7,
			"run_command, action 2 before the start, failed: sh ended with code 7: no such package"},
		"a program that does not exist": {session.StartAction{Action: "run_command", Command: []string{"pipp"}}, 126,
			`run_command, action 2 before the start, failed: Program "pipp" not found in this session.`},
		"a file of root": {session.StartAction{Action: "write_file", Path: "/usr/bin/sh", Body: "x"}, 1,
			"write_file of /usr/bin/sh, action 2 before the start, failed: "},
	} {
		t.Run("end the container when one fails: "+name, func(t *testing.T) {
			b := serving(t, []string{"echo", "served"}, session.StartAction{Action: "log", Message: "first"}, c.action)
			events := watch(t, b.connect())
			got := await(t, events, "the error", func(e link.Event) bool { return e.Error != nil })
			if got.Error.Code != session.CodeAppExited || !strings.HasPrefix(got.Error.Message, c.message) {
				t.Errorf("the event says %+v", got.Error)
			}
			if code := b.exit(); code != c.code {
				t.Errorf("the container ended with %d", code)
			}
			if log := b.output.String(); !strings.HasPrefix(log, "first\n") || strings.Contains(log, "served") ||
				!strings.Contains(log, c.message) {
				t.Errorf("the log is %q", log)
			}
		})
	}

	t.Run("are interrupted by a stop", func(t *testing.T) {
		b := serving(t, []string{"echo", "served"}, session.StartAction{Action: "run_command",
			Command: []string{"sh", "-c", "echo busy; sleep 1000"}})
		watch(t, b.connect())
		waitFor(t, "the action", func() bool { return strings.Contains(b.output.String(), "busy") })
		must(t, b.cmd.Process.Signal(syscall.SIGTERM))
		if code := b.exit(); code != 143 || b.output.String() != "busy\n" {
			t.Errorf("code %d, log %q", code, b.output.String())
		}
	})
}
