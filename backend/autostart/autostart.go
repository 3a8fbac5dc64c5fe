// Package autostart has Slipway start in the background when its person logs in to their desktop. Linux desktops keep
// such entries in a folder of the XDG specification; on other systems there is no [Entry] that could be written.
package autostart

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
	"slipway/backend/session"
)

// Entry is what a desktop reads when its person logs in.
type Entry struct {
	path    string // "": this system has no such entries
	content string
}

// Config says what is started. Env is os.Getenv if nil.
type Config struct {
	System  string // runtime.GOOS
	Program string // the program that serves
	Home    place.Home
	Env     func(string) string
}

// New tells of the entry of one of the person's folders; it writes nothing.
func New(config Config) *Entry {
	env := config.Env
	if env == nil {
		env = os.Getenv
	}
	dir := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // as the specification says
		if env("HOME") == "" {
			return &Entry{}
		}
		dir = filepath.Join(env("HOME"), ".config")
	}
	if config.System != "linux" {
		return &Entry{}
	}
	name, command := "slipway", []string{config.Program, "serve", "--quiet"}
	if !config.Home.IsUsual(env) {
		// Each folder has an entry of its own, so that none removes another's.
		sum := sha256.Sum256([]byte(config.Home.Dir))
		const letters = 8
		name += "-" + hex.EncodeToString(sum[:])[:letters]
		command = append([]string{"env", "SLIPWAY_HOME=" + config.Home.Dir}, command...)
	}
	return &Entry{path: filepath.Join(dir, "autostart", name+".desktop"), content: content(command)}
}

func content(command []string) string {
	quoted := make([]string, len(command))
	for i, arg := range command {
		quoted[i] = quote(arg)
	}
	return "[Desktop Entry]\nType=Application\nName=Slipway\nComment=Keeps sessions reachable and the queue " +
		"moving\nExec=" + strings.Join(quoted, " ") + "\nIcon=slipway\nNoDisplay=true\nTerminal=false\n"
}

// quote writes an argument of Exec. It is escaped twice: for the command, and for the line of the file; a percent sign
// is a field code unless doubled.
func quote(arg string) string {
	inner := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(arg)
	line := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(`"` + inner + `"`)
	return strings.ReplaceAll(line, "%", "%%")
}

// Set writes the entry or removes it. One that the person turned off in the settings of the desktop is left as it is.
// It fails with settings_update_failed, also where the system has no entries.
func (e *Entry) Set(on bool) error {
	switch {
	case e.path == "" && on:
		return session.NewError(session.CodeSettingsFailed, "Slipway cannot start itself at login on this system.",
			"Add “slipway serve --quiet” to the programs that your system starts at login.")
	case e.path == "":
		return nil
	case !on:
		return e.failed(os.Remove(e.path))
	}
	there, err := os.ReadFile(e.path)
	if err == nil && (string(there) == e.content || turnedOff(string(there))) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(e.path), 0o700); err != nil {
		return e.failed(err)
	}
	return e.failed(atomicwriter.WriteFile(e.path, []byte(e.content), 0o600))
}

// turnedOff tells whether a desktop's own settings have turned an entry off.
func turnedOff(entry string) bool {
	for line := range strings.Lines(entry) {
		switch strings.ToLower(strings.ReplaceAll(strings.TrimSpace(line), " ", "")) {
		case "hidden=true", "x-gnome-autostart-enabled=false":
			return true
		}
	}
	return false
}

// failed is the failure of a change; that there is no entry to remove is none.
func (e *Entry) failed(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return session.WrapError(err, session.CodeSettingsFailed, "What starts Slipway at login could not be changed.",
		"Check the permissions of "+filepath.Dir(e.path)+".")
}
