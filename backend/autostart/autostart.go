// Package autostart starts Slipway in the background when its user logs in to a Linux desktop, by an entry in a folder
// of the XDG specification. On other systems an [Entry] cannot be written.
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

// Entry is a file that a desktop reads when its user logs in.
type Entry struct {
	path    string // "": not on this system
	content string
}

// Config configures what is started. Env is os.Getenv if nil.
type Config struct {
	System  string // runtime.GOOS
	Program string // the program that serves
	Home    place.Home
	Env     func(string) string
}

// New returns the entry for one of the user's folders. It does not write it.
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
		// Each folder has its own entry, so that none removes another's.
		sum := sha256.Sum256([]byte(config.Home.Dir))
		name += "-" + hex.EncodeToString(sum[:4])
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

// quote quotes an argument of Exec. It escapes twice, for the command and for the line of the file, and doubles percent
// signs, which begin field codes.
func quote(arg string) string {
	inner := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(arg)
	line := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, "\r", `\r`).Replace(`"` + inner + `"`)
	return strings.ReplaceAll(line, "%", "%%")
}

// Set writes or removes the entry. It does not change one that the user turned off in the settings of the desktop. It
// fails with settings_update_failed, also if on is set and the system has no entries.
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

// turnedOff reports whether the settings of a desktop have turned off an entry.
func turnedOff(entry string) bool {
	for line := range strings.Lines(entry) {
		switch strings.ToLower(strings.ReplaceAll(strings.TrimSpace(line), " ", "")) {
		case "hidden=true", "x-gnome-autostart-enabled=false":
			return true
		}
	}
	return false
}

// failed returns the error of a change, unless the entry to remove does not exist.
func (e *Entry) failed(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return session.WrapError(err, session.CodeSettingsFailed, "What starts Slipway at login could not be changed.",
		"Check the permissions of "+filepath.Dir(e.path)+".")
}
