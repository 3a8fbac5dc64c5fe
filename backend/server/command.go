package server

import (
	"path"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
)

// commandLine is the slipway run line that asks for the same as spec. The
// values of secret-looking variables are left out: -e NAME takes them from the
// shell's own environment.
func commandLine(spec session.Spec) string {
	words := []string{"slipway", "run"}
	add := func(flag, value string) { words = append(words, flag, quote(value)) }
	if spec.Image != "" {
		add("--image", spec.Image)
	}
	if spec.Name != "" {
		add("--name", spec.Name)
	}
	if spec.Type == session.Batch {
		add("--type", string(spec.Type))
	}
	if spec.Resources.CPU != 0 {
		add("--cpu", strconv.Itoa(spec.Resources.CPU))
	}
	if spec.Resources.Memory != 0 {
		add("--mem", spec.Resources.Memory.Exact())
	}
	if spec.Resources.Shm != 0 {
		add("--shm", spec.Resources.Shm.Exact())
	}
	if spec.Threads != 0 {
		add("--threads", strconv.Itoa(spec.Threads))
	}
	for _, v := range spec.Env {
		if session.SecretName(v.Name) {
			add("-e", v.Name)
		} else {
			add("-e", v.Name+"="+v.Value)
		}
	}
	for _, m := range spec.Mounts {
		text := m.Source
		if m.Folder != "" {
			text = path.Join(m.Folder, m.Path)
		}
		text += ":" + session.MountTarget(m)
		if m.ReadOnly {
			text += ":ro"
		}
		add("-v", text)
	}
	for _, port := range spec.Ports {
		add("--port", strconv.Itoa(port))
	}
	if spec.Agent != "" {
		add("--on", spec.Agent)
	}
	if spec.Group != "" {
		add("--group", spec.Group)
	}
	words = append(words, queueWords(spec)...)
	if spec.Type == session.Batch {
		words = append(words, batchWords(spec)...)
	}
	return strings.Join(words, " ")
}

// queueWords are the flags about devices, the queue, the accounts and idle checks.
func queueWords(spec session.Spec) []string {
	var words []string
	add := func(flag, value string) {
		if value != "" {
			words = append(words, flag, quote(value))
		}
	}
	number := func(flag string, n int) {
		if n != 0 {
			add(flag, strconv.Itoa(n))
		}
	}
	if !spec.Accelerator.IsZero() {
		add("--gpu", spec.Accelerator.String())
	}
	if spec.Uncooperative {
		words = append(words, "--uncooperative")
	}
	if spec.NoSSH {
		words = append(words, "--no-ssh")
	}
	if spec.MPS {
		words = append(words, "--mps")
	}
	number("--cluster", spec.Cluster)
	if spec.Priority != nil {
		add("--priority", strconv.Itoa(*spec.Priority))
	}
	for _, ref := range spec.After {
		add("--after", ref)
	}
	add("--pending-timeout", lengthOut(spec.PendingTimeout))
	add("--label", spec.Label)
	number("--commit-on-end", spec.CommitOnEnd)
	if spec.Idle == nil {
		return words
	}
	if *spec.Idle == (session.IdlePolicy{}) {
		words = append(words, "--idle-off")
	}
	add("--idle-lifetime", lengthOut(spec.Idle.Lifetime))
	add("--idle-network", lengthOut(spec.Idle.Network))
	use := spec.Idle.Use
	add("--idle-window", lengthOut(use.Window))
	add("--idle-grace", lengthOut(use.Grace))
	if use.Any {
		words = append(words, "--idle-any")
	}
	for _, threshold := range []struct {
		flag  string
		value *float64
	}{{"--idle-cpu", use.CPU}, {"--idle-memory", use.Memory}, {"--idle-gpu", use.GPU}, {"--idle-vram", use.VRAM}} {
		if threshold.value != nil {
			add(threshold.flag, strconv.FormatFloat(*threshold.value, 'f', -1, 64))
		}
	}
	return words
}

func batchWords(spec session.Spec) []string {
	var words []string
	if spec.NotBefore != nil {
		words = append(words, "--start-at", spec.NotBefore.Format(time.RFC3339))
	}
	if spec.Timeout != 0 {
		words = append(words, "--timeout", spec.Timeout.String())
	}
	if spec.Command != "" {
		words = append(words, "--", quote(spec.Command))
	}
	return words
}

// quote makes one word of text for a POSIX shell.
func quote(text string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	if text != "" && strings.Trim(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
