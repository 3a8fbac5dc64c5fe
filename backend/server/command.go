package server

import (
	"path"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
)

// shellLine is a command line for a POSIX shell, as quoted words.
type shellLine []string

func (l *shellLine) word(text string) { *l = append(*l, quote(text)) }

func (l *shellLine) add(flag, value string) { *l = append(*l, flag, quote(value)) }

// some adds a flag unless its value is empty.
func (l *shellLine) some(flag, value string) {
	if value != "" {
		l.add(flag, value)
	}
}

// number adds a flag unless its value is 0.
func (l *shellLine) number(flag string, n int) {
	if n != 0 {
		l.add(flag, strconv.Itoa(n))
	}
}

// on adds a flag without a value if set is true.
func (l *shellLine) on(flag string, set bool) {
	if set {
		*l = append(*l, flag)
	}
}

// env adds variables. -e NAME leaves out the value of a variable with a secret-looking name, so that it comes from the
// environment of the shell.
func (l *shellLine) env(vars []session.EnvVar) {
	for _, v := range vars {
		if session.SecretName(v.Name) {
			l.add("-e", v.Name)
		} else {
			l.add("-e", v.Name+"="+v.Value)
		}
	}
}

// mount adds a mount of source.
func (l *shellLine) mount(source string, m session.Mount) {
	text := source + ":" + session.MountTarget(m)
	if m.ReadOnly {
		text += ":ro"
	}
	l.add("-v", text)
}

func (l *shellLine) text() string { return strings.Join(*l, " ") }

// commandLine returns the slipway run command of a spec.
func commandLine(spec session.Spec) string {
	line := shellLine{"slipway", "run"}
	line.some("--image", spec.Image)
	line.some("--name", spec.Name)
	if spec.Type == session.Batch {
		line.add("--type", string(spec.Type))
	}
	line.number("--cpu", spec.Resources.CPU)
	if spec.Resources.Memory != 0 {
		line.add("--mem", spec.Resources.Memory.Exact())
	}
	if spec.Resources.Shm != 0 {
		line.add("--shm", spec.Resources.Shm.Exact())
	}
	line.number("--threads", spec.Threads)
	line.env(spec.Env)
	for _, m := range spec.Mounts {
		source := m.Source
		if m.Folder != "" {
			source = path.Join(m.Folder, m.Path)
		}
		line.mount(source, m)
	}
	for _, port := range spec.Ports {
		line.number("--port", port)
	}
	line.some("--on", spec.Agent)
	line.some("--group", spec.Group)
	line.queue(spec)
	if spec.Type == session.Batch {
		line.batch(spec)
	}
	return line.text()
}

// queue adds the flags about devices, the queue, usage accounts and idle checks.
func (l *shellLine) queue(spec session.Spec) {
	l.some("--gpu", requestOut(spec.Accelerator))
	l.on("--uncooperative", spec.Uncooperative)
	l.on("--no-ssh", spec.NoSSH)
	l.on("--mps", spec.MPS)
	l.number("--cluster", spec.Cluster)
	if spec.Priority != nil {
		l.add("--priority", strconv.Itoa(*spec.Priority))
	}
	for _, ref := range spec.After {
		l.some("--after", ref)
	}
	l.some("--pending-timeout", lengthOut(spec.PendingTimeout))
	l.some("--label", spec.Label)
	l.number("--commit-on-end", spec.CommitOnEnd)
	if spec.Idle == nil {
		return
	}
	l.on("--idle-off", *spec.Idle == (session.IdlePolicy{}))
	l.some("--idle-lifetime", lengthOut(spec.Idle.Lifetime))
	l.some("--idle-network", lengthOut(spec.Idle.Network))
	use := spec.Idle.Use
	l.some("--idle-window", lengthOut(use.Window))
	l.some("--idle-grace", lengthOut(use.Grace))
	l.on("--idle-any", use.Any)
	for _, threshold := range []struct {
		flag  string
		value *float64
	}{{"--idle-cpu", use.CPU}, {"--idle-memory", use.Memory}, {"--idle-gpu", use.GPU}, {"--idle-vram", use.VRAM}} {
		if threshold.value != nil {
			l.add(threshold.flag, strconv.FormatFloat(*threshold.value, 'f', -1, 64))
		}
	}
}

func (l *shellLine) batch(spec session.Spec) {
	if spec.NotBefore != nil {
		l.add("--start-at", spec.NotBefore.Format(time.RFC3339))
	}
	l.some("--timeout", lengthOut(spec.Timeout))
	if spec.Command != "" {
		l.add("--", spec.Command)
	}
}

// quote quotes text as one word for a POSIX shell.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
