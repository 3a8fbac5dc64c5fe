package guest

import (
	"os"
	"path/filepath"
	"strings"

	"slipway/backend/session"
)

// shell is the image's shell. The zero shell is none.
type shell struct {
	path   string   // program
	args   []string // what makes an interactive shell of it
	prompt string   // PS1 for a shell that has none of its own
}

// shells are programs that wait for commands: having the terminal is no work.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "busybox"}

// plainPrompt is understood by bash and busybox.
const plainPrompt = `\u@\h:\w\$ `

// shellCandidates in the order of what people like to work in.
var shellCandidates = []string{
	"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
	"/bin/zsh", "/usr/bin/zsh",
	"/bin/sh", "/usr/bin/sh", "/bin/ash",
	"/bin/busybox", "/usr/bin/busybox",
}

// findShell returns the image's best shell, looking at the usual places, then along path.
func findShell(path string) shell {
	candidates := shellCandidates
	for dir := range strings.SplitSeq(path, ":") {
		if filepath.IsAbs(dir) {
			candidates = append(candidates[:len(candidates):len(candidates)],
				filepath.Join(dir, "bash"), filepath.Join(dir, "sh"))
		}
	}
	for _, candidate := range candidates {
		if executable(candidate) {
			return newShell(candidate)
		}
	}
	return shell{}
}

func newShell(path string) shell {
	s := shell{path: path}
	target := path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved
	}
	switch filepath.Base(target) {
	case "bash":
		s.prompt = plainPrompt
	case "busybox":
		s.prompt = plainPrompt
		if filepath.Base(path) == "busybox" {
			s.args = []string{"sh"}
		}
	}
	return s
}

// interactive is the command of a terminal. It is no login shell: those let /etc/profile replace the image's PATH.
func (s shell) interactive() []string { return append([]string{s.path}, s.args...) }

// run is the command that runs a script.
func (s shell) run(script string) []string {
	return append(s.interactive(), "-c", script)
}

// executable reports whether path is a program.
func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// lookPath finds name along path as a shell would; "" where it is not.
func lookPath(name, path string) string {
	if strings.Contains(name, "/") {
		if executable(name) {
			return name
		}
		return ""
	}
	for dir := range strings.SplitSeq(path, ":") {
		if dir == "" {
			dir = "."
		}
		if candidate := filepath.Join(dir, name); executable(candidate) {
			return candidate
		}
	}
	return ""
}

func noShell(code session.Code) error {
	return session.NewError(code, "This image has no shell.",
		"Run its programs with exec, or choose an image with a shell.")
}
