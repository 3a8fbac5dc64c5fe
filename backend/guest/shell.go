package guest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/backend/session"
)

// shell is the image's shell; zero: none.
type shell struct {
	path   string   // of the program
	args   []string // for an interactive shell
	prompt string   // PS1 if the image sets none
}

// shells are programs that wait for commands, so in the foreground of a terminal they do no work.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "busybox"}

// plainPrompt is understood by bash and busybox.
const plainPrompt = `\u@\h:\w\$ `

var shellCandidates = []string{
	"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash",
	"/bin/zsh", "/usr/bin/zsh",
	"/bin/sh", "/usr/bin/sh", "/bin/ash",
	"/bin/busybox", "/usr/bin/busybox",
}

// findShell returns the first shell among the candidates and in path.
func findShell(path string) shell {
	candidates := slices.Clone(shellCandidates)
	for dir := range strings.SplitSeq(path, ":") {
		if filepath.IsAbs(dir) {
			candidates = append(candidates, filepath.Join(dir, "bash"), filepath.Join(dir, "sh"))
		}
	}
	if at := slices.IndexFunc(candidates, executable); at >= 0 {
		return newShell(candidates[at])
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

// interactive returns the command of a terminal. It is not a login shell, in which /etc/profile replaces PATH.
func (s shell) interactive() []string { return append([]string{s.path}, s.args...) }

func (s shell) run(script string) []string { return append(s.interactive(), "-c", script) }

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// lookPath finds name in path as a shell does; "" if it is not there.
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

func noShell(code session.Code) *session.Error {
	return session.NewError(code, "This image has no shell.",
		"Run its programs with exec, or choose an image with a shell.")
}
