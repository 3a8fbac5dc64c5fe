package guest

import (
	"slices"
	"strings"

	"slipway/backend/engine"
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

// newEnvironment returns the environment of the person's programs: the image's, then a login's, then the session's,
// and its defaults where none of them sets the variable.
func newEnvironment(image []string, shell shell, s engine.GuestConfig) environment {
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
	e = e.set("HOME", homePath).set("USER", UserOf(s)).set("LOGNAME", UserOf(s))
	if shell.path != "" {
		e = e.set("SHELL", shell.path)
	}
	return e.with(s.Env).withDefaults(s.Defaults)
}

// withDefaults adds variables that are not set.
func (e environment) withDefaults(vars []session.EnvVar) environment {
	return e.with(slices.DeleteFunc(slices.Clone(vars), func(v session.EnvVar) bool {
		return slices.ContainsFunc(e, func(entry string) bool { return strings.HasPrefix(entry, v.Name+"=") })
	}))
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
	ownFolder  = "/.slipway"
	configPath = ownFolder + "/config.json"
	socketName = "agent.sock"     // in /.slipway/link
	selfPath   = "/proc/self/exe" // the guest's own program
)

// User is the name of the person in every container but those of administrator sessions.
const User = "work"

// UserOf is the name of the person in a container.
func UserOf(s engine.GuestConfig) string {
	if s.Admin {
		return "root"
	}
	return User
}
