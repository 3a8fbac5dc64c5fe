// Package autostart starts Slipway in the background when its user logs in: by an entry in a folder of the XDG
// specification on a Linux desktop, by a launch agent on macOS, and by a value of the Run key on Windows.
package autostart

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/atomicwriter"

	"slipway/backend/place"
	"slipway/backend/session"
)

// Entry is what a desktop reads when its user logs in: a file, or a value of the registry of Windows.
type Entry struct {
	path    string // of the file
	content string
	run     string // the value; if path and run are "", it cannot be written
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
	name, command := "slipway", []string{config.Program, "serve", "--quiet"}
	usual := config.Home.IsUsual(env)
	if !usual {
		// Each folder has its own entry, so that none removes another's.
		sum := sha256.Sum256([]byte(config.Home.Dir))
		name += "-" + hex.EncodeToString(sum[:4])
		command = append([]string{"/usr/bin/env", "SLIPWAY_HOME=" + config.Home.Dir}, command...)
	}
	person := env("HOME")
	switch {
	case config.System == "windows" && usual: // a value has no variables
		// Detached, it leaves no console open.
		return &Entry{run: `"` + config.Program + `" serve --quiet --detach`}
	case config.System == "darwin" && person != "":
		return &Entry{path: filepath.Join(person, "Library", "LaunchAgents", name+".plist"),
			content: agent(name, command)}
	case config.System != "linux":
		return &Entry{}
	}
	dir := env("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // as the specification says
		if person == "" {
			return &Entry{}
		}
		dir = filepath.Join(person, ".config")
	}
	return &Entry{path: filepath.Join(dir, "autostart", name+".desktop"), content: content(command)}
}

// agent is the property list of a launch agent of macOS.
func agent(name string, command []string) string {
	var arguments strings.Builder
	for _, arg := range command {
		arguments.WriteString("<string>")
		_ = xml.EscapeText(&arguments, []byte(arg)) // a Builder takes all
		arguments.WriteString("</string>")
	}
	return xml.Header + `<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" ` +
		`"http://www.apple.com/DTDs/PropertyList-1.0.dtd">` + "\n<plist version=\"1.0\"><dict>\n<key>Label</key>" +
		"<string>" + name + "</string>\n<key>ProgramArguments</key><array>" + arguments.String() +
		"</array>\n<key>RunAtLoad</key><true/>\n</dict></plist>\n"
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
	case e.run != "":
		return e.failed(setRun(e.run, on))
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
	hint := "Check the permissions of " + filepath.Dir(e.path) + "."
	if e.run != "" {
		hint = "Look at “Startup apps” in the settings of Windows."
	}
	return session.WrapError(err, session.CodeSettingsFailed, "What starts Slipway at login could not be changed.",
		hint)
}
