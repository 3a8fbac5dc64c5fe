//go:build unix

package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slipway/backend/place"
	"slipway/backend/session"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func sessionOf(pid int) (int, error) { return unix.Getsid(pid) }

func evaluatedSelf(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// oldOne is a folder whose daemon is of an old version, with books.
func oldOne(t *testing.T) (place.Home, Status) {
	t.Helper()
	home := newHome(t)
	if err := home.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home.Join("agent.db"), []byte("old form"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := switching{home: home}
	if err := s.link(program(t, home, "old")); err != nil {
		t.Fatal(err)
	}
	return home, start(t, home, ProgramLink(home))
}

func linked(t *testing.T, home place.Home) string {
	t.Helper()
	target, err := filepath.EvalSymlinks(ProgramLink(home))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Base(target)
}

func TestSwitchReplacesWhatRuns(t *testing.T) {
	home, old := oldOne(t)
	path := program(t, home, "good")
	program(t, home, "slipway-of-long-ago")
	done, err := Switch(t.Context(), home, StartOptions{Program: path})
	if err != nil || !done.Done || done.From.PID != old.PID || done.To.PID == old.PID {
		t.Fatalf("%+v, %v", done, err)
	}
	if linked(t, home) != "good" {
		t.Errorf("the link names %s", linked(t, home))
	}
	again, err := Switch(t.Context(), home, StartOptions{Program: path})
	if err != nil || again.Done || again.To.PID != done.To.PID {
		t.Errorf("done again: %+v, %v", again, err)
	}
	for _, pattern := range []string{"*" + backupSuffix, "bin/slipway-*"} {
		if left, _ := filepath.Glob(home.Join(pattern)); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

func TestSwitchStartsWhereNothingRan(t *testing.T) {
	home := newHome(t)
	done, err := Switch(t.Context(), home, StartOptions{Program: program(t, home, "good")})
	if err != nil || !done.Done || done.From.PID != 0 || done.To.PID == 0 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestSwitchGoesBackToWhatWorked(t *testing.T) {
	for _, name := range []string{"mute", "dying"} {
		t.Run(name, func(t *testing.T) {
			home, old := oldOne(t)
			_, err := Switch(t.Context(), home, StartOptions{Program: program(t, home, name), Timeout: time.Second})
			if session.CodeOf(err) != "agent_install_failed" {
				t.Fatalf("%v", err)
			}
			c, err := Connect(t.Context(), home)
			if err != nil {
				t.Fatal(err)
			}
			status, err := c.Status(t.Context())
			if err != nil || status.SHA256 != old.SHA256 || linked(t, home) != "old" {
				t.Errorf("%+v, %v, link to %s", status, err, linked(t, home))
			}
			if books, err := os.ReadFile(home.Join("agent.db")); err != nil || string(books) != "old form" {
				t.Errorf("books %q, %v", books, err)
			}
		})
	}
	t.Run("where nothing worked before", func(t *testing.T) {
		home := newHome(t)
		_, err := Switch(t.Context(), home, StartOptions{Program: program(t, home, "dying"), Timeout: time.Second})
		if session.CodeOf(err) != "server_start_failed" {
			t.Errorf("%v", err)
		}
	})
}

func TestSwitchLeavesAPersonsOwnSlipwayAlone(t *testing.T) {
	home := newHome(t)
	plane := start(t, home, program(t, home, "plane"))
	done, err := Switch(t.Context(), home, StartOptions{Program: program(t, home, "good")})
	if err != nil || done.Done || done.To.PID != plane.PID || linked(t, home) != "good" {
		t.Errorf("%+v, %v, link to %s", done, err, linked(t, home))
	}
	c, err := Connect(t.Context(), home)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := c.Status(t.Context()); err != nil || status.PID != plane.PID {
		t.Errorf("%+v, %v", status, err)
	}
	if _, err := Uninstall(t.Context(), home, UninstallOptions{EndSessions: true}); session.CodeOf(
		err) != "agent_call_conflict" {
		t.Errorf("uninstall: %v", err)
	}
}

func TestUninstallLeavesWhatIsNeeded(t *testing.T) {
	for _, c := range []struct {
		name string
		live int
		opts UninstallOptions
		hub  bool
		kept string
		left int
	}{
		{"everything goes", 0, UninstallOptions{}, false, "", 0},
		{"sessions end first", 2, UninstallOptions{EndSessions: true}, false, "", 0},
		{"books stay while sessions live", 2, UninstallOptions{}, false, "agent.db lock", 2},
		{"books stay where that is wished", 0, UninstallOptions{KeepData: true}, false, "agent.db lock", 0},
		{"what the desktop keeps stays", 0, UninstallOptions{}, true, "agent.db hub.db lock", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			home := newHome(t)
			t.Setenv("FAKE_LIVE", fmt.Sprint(c.live))
			status := start(t, home, program(t, home, "good"))
			if c.hub {
				if err := os.WriteFile(home.Join("hub.db"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			left, err := Uninstall(t.Context(), home, c.opts)
			if err != nil || left.Live != c.left {
				t.Fatalf("%+v, %v", left, err)
			}
			var names []string
			for _, path := range left.Kept {
				names = append(names, filepath.Base(path))
			}
			slices.Sort(names)
			if strings.Join(names, " ") != c.kept || c.kept == "" && isThere(home.Dir) {
				t.Errorf("kept %v", names)
			}
			for deadline := time.Now().Add(patience); unix.Kill(status.PID, 0) == nil &&
				!zombie(status.PID); time.Sleep(lookPause) {
				if time.Now().After(deadline) { // it gives the folder up a moment before it ends
					t.Fatalf("process %d goes on", status.PID)
				}
			}
		})
	}
}

func TestNoClientStartsTheAgentWhileItIsRemoved(t *testing.T) {
	home, told := newHome(t), filepath.Join(t.TempDir(), "told")
	s := switching{home: home}
	if err := s.link(program(t, home, "good")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_DIALLED", told)
	start(t, home, ProgramLink(home))
	if left, err := Uninstall(t.Context(), home, UninstallOptions{}); err != nil || isThere(home.Dir) {
		t.Errorf("left %v, %v", left.Kept, err)
	}
	if said, err := os.ReadFile(told); err != nil || !strings.Contains(string(said), "Slipway was removed") {
		t.Errorf("a client that connected meanwhile was told: %s, %v", said, err)
	}
}

func TestUninstallKeepsTheBooksOfWhatCannotBeAsked(t *testing.T) {
	home := newHome(t)
	if err := home.Make(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home.Join("agent.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("FAKE_BROKEN", "1")
	if _, err := Uninstall(t.Context(), home, UninstallOptions{EndSessions: true}); session.CodeOf(
		err) != "server_start_failed" {
		t.Errorf("with its sessions: %v", err)
	}
	left, err := Uninstall(t.Context(), home, UninstallOptions{})
	if err != nil || !slices.Contains(left.Kept, home.Join("agent.db")) {
		t.Errorf("left %+v, %v", left, err)
	}
}

// zombie says whether a process has ended and only waits to be taken note of.
func zombie(pid int) bool {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Contains(string(data), ") Z ")
}

// TestSystemdKeepsTheDaemonWhereItCan runs against a systemd that is a script.
func TestSystemdKeepsTheDaemonWhereItCan(t *testing.T) {
	home := newHome(t)
	path := program(t, home, "good")
	bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
	config := t.TempDir()
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("CALLS", calls)
	for name, text := range map[string]string{
		"loginctl": `echo "loginctl $*" >> "$CALLS"
case "$*" in
*enable-linger*) touch "$CALLS.linger";;
*) [ -e "$CALLS.linger" ] && echo Linger=yes || echo Linger=no;;
esac`,
		"systemctl": `echo "systemctl $*" >> "$CALLS"
unit="$XDG_CONFIG_HOME/systemd/user/$5"
case "$*" in *" restart "*)
  program=$(sed -n 's/^ExecStart="\(.*\)" agent.*/\1/p' "$unit")
  env SLIPWAY_AGENT_KEEPER=systemd SLIPWAY_HOME="$(sed -n 's/^Environment="SLIPWAY_HOME=\([^"]*\)".*/\1/p' "$unit")" \
    setsid "$program" agent --quiet >/dev/null 2>&1 </dev/null &
esac`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if status := start(t, home, path); status.Keeper != KeeperSystemd {
		t.Errorf("kept by %q", status.Keeper)
	}
	told, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"enable-linger", "daemon-reload", "enable slipway-agent-", "restart slipway-agent-"} {
		if !strings.Contains(string(told), want) {
			t.Errorf("systemd was never asked to %s:\n%s", want, told)
		}
	}
	if left, err := Uninstall(t.Context(), home, UninstallOptions{}); err != nil || len(left.Kept) > 0 {
		t.Errorf("%+v, %v", left, err)
	}
	if units, _ := filepath.Glob(filepath.Join(config, "systemd/user/*")); len(units) > 0 {
		t.Errorf("units are left: %v", units)
	}
}
