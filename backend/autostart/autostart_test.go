package autostart

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/place"
	"slipway/backend/session"
)

// entry is that of the usual folder of a person whose files are below dir.
func entry(t *testing.T, dir, program, home string) *Entry {
	t.Helper()
	env := map[string]string{"HOME": dir}
	if home == "" {
		home = filepath.Join(dir, ".local", "share", "slipway")
	}
	return New(Config{System: "linux", Program: program, Home: place.Home{Dir: home},
		Env: func(name string) string { return env[name] }})
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func set(t *testing.T, e *Entry, on bool) {
	t.Helper()
	if err := e.Set(on); err != nil {
		t.Fatal(err)
	}
}

func TestTheEntryIsWrittenAndRemoved(t *testing.T) {
	dir := t.TempDir()
	e := entry(t, dir, "/usr/bin/slipway", "")
	path := filepath.Join(dir, ".config", "autostart", "slipway.desktop")
	set(t, e, false) // there is nothing to remove
	if _, err := os.Stat(filepath.Dir(path)); err == nil {
		t.Error("a folder was made for nothing")
	}
	set(t, e, true)
	const want = "[Desktop Entry]\nType=Application\nName=Slipway\nComment=Keeps sessions reachable and the queue " +
		"moving\nExec=\"/usr/bin/slipway\" \"serve\" \"--quiet\"\nIcon=slipway\nNoDisplay=true\nTerminal=false\n"
	if got := read(t, path); got != want {
		t.Errorf("the entry is\n%s", got)
	}
	moved := entry(t, dir, "/opt/a b/100%/$slip\\way", "")
	set(t, moved, true)
	if got, want := read(t, path), `Exec="/opt/a b/100%%/\\$slip\\\\way" "serve" "--quiet"`; !contains(got, want) {
		t.Errorf("of another place the entry is\n%s", got)
	}
	set(t, e, false)
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// contains tells whether a line stands in a text.
func contains(text, line string) bool { return slices.Contains(strings.Split(text, "\n"), line) }

func TestAnotherFolderHasAnEntryOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	usual, other := entry(t, dir, "/usr/bin/slipway", ""), entry(t, dir, "/usr/bin/slipway", "/srv/try out")
	set(t, usual, true)
	set(t, other, true)
	if got := read(t, other.path); !contains(got,
		`Exec="/usr/bin/env" "SLIPWAY_HOME=/srv/try out" "/usr/bin/slipway" "serve" "--quiet"`) {
		t.Errorf("the entry is\n%s", got)
	}
	set(t, other, false)
	if _, err := os.Stat(usual.path); err != nil {
		t.Errorf("the other entry went too: %v", err)
	}
}

func TestWhatTheDesktopTurnedOffStaysOff(t *testing.T) {
	e := entry(t, t.TempDir(), "/usr/bin/slipway", "")
	for _, line := range []string{"Hidden=true", "X-GNOME-Autostart-enabled=false"} {
		set(t, e, true)
		off := read(t, e.path) + line + "\n"
		if err := os.WriteFile(e.path, []byte(off), 0o600); err != nil {
			t.Fatal(err)
		}
		set(t, e, true)
		if got := read(t, e.path); got != off {
			t.Errorf("%s was written over:\n%s", line, got)
		}
		set(t, e, false)
	}
}

func TestWhereThereIsNoEntryThatIsSaid(t *testing.T) {
	for _, system := range []string{"plan9", "windows"} {
		e := New(Config{System: system, Home: place.Home{Dir: t.TempDir()},
			Env: func(string) string { return "/somewhere" }})
		if err := e.Set(true); session.CodeOf(err) != "settings_update_failed" {
			t.Errorf("%s: %v", system, err)
		}
		set(t, e, false)
	}
}

func TestALaunchAgentStartsItOnMacOS(t *testing.T) {
	dir := t.TempDir()
	home := place.Home{Dir: filepath.Join(dir, "a & b")}
	e := New(Config{System: "darwin", Program: "/opt/slipway", Home: home, Env: func(name string) string {
		return map[string]string{"HOME": dir}[name]
	}})
	set(t, e, true)
	found, err := filepath.Glob(filepath.Join(dir, "Library", "LaunchAgents", "slipway-*.plist"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	var list struct {
		Arguments []string `xml:"dict>array>string"`
	}
	want := []string{"/usr/bin/env", "SLIPWAY_HOME=" + home.Dir, "/opt/slipway", "serve", "--quiet"}
	if err := xml.Unmarshal([]byte(read(t, found[0])), &list); err != nil || !slices.Equal(list.Arguments, want) {
		t.Errorf("it starts %q, %v", list.Arguments, err)
	}
	set(t, e, false)
	if _, err := os.Stat(found[0]); err == nil {
		t.Error("it is still there")
	}
}

func TestAFolderThatCannotBeWrittenIsSaid(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".config"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := entry(t, dir, "/usr/bin/slipway", "").Set(true); session.CodeOf(err) != "settings_update_failed" {
		t.Errorf("%v", err)
	}
}
