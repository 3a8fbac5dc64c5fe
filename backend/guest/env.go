package guest

import (
	"slices"
	"strings"

	"slipway/backend/session"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is an ordered list of variables in which a later value replaces an earlier one.
type environment []string

func (e environment) get(name string) string {
	for _, entry := range e {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func (e environment) set(name, value string) environment {
	entry := name + "=" + value
	for i, old := range e {
		if strings.HasPrefix(old, name+"=") {
			e[i] = entry
			return e
		}
	}
	return append(e, entry)
}

// fill sets a variable that is missing or empty.
func (e environment) fill(name, value string) environment {
	if e.get(name) != "" {
		return e
	}
	return e.set(name, value)
}

func (e environment) with(vars []session.EnvVar) environment {
	e = slices.Clone(e)
	for _, v := range vars {
		e = e.set(v.Name, v.Value)
	}
	return e
}

// newEnvironment returns the environment of the person's programs: the image's, then a login's, then the session's.
func newEnvironment(image []string, shell shell, session []session.EnvVar) environment {
	var e environment
	for _, entry := range image {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			e = e.set(name, value)
		}
	}
	e = e.fill("PATH", defaultPath)
	path := e.get("PATH")
	if own := homePath + "/.local/bin"; !slices.Contains(strings.Split(path, ":"), own) {
		e = e.set("PATH", path+":"+own)
	}
	if e.get("LC_ALL") == "" {
		e = e.fill("LANG", "C.UTF-8")
	}
	e = e.set("HOME", homePath).set("USER", User).set("LOGNAME", User)
	if shell.path != "" {
		e = e.set("SHELL", shell.path)
	}
	return e.with(session)
}

func (e environment) forTerminal(shell shell) environment {
	e = slices.Clone(e).set("TERM", "xterm-256color").set("COLORTERM", "truecolor")
	if shell.prompt != "" {
		e = e.fill("PS1", shell.prompt) // the image's start files override it
	}
	return e
}

const homePath = session.Home

const (
	configPath = "/.slipway/config.json"
	socketName = "agent.sock"     // in /.slipway/link
	selfPath   = "/proc/self/exe" // the guest's own program
)

// User is the name of the person in every container.
const User = "work"
