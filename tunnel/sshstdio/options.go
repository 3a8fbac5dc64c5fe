package sshstdio

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// way says by which connection a session goes: a new one, or one that stands.
type way struct {
	silent  bool   // ask nothing and wait for nobody
	strict  bool   // the person's configuration refuses unknown hosts
	socket  string // of a connection that stands
	lead    bool   // make a connection that others share by socket
	patient bool   // nobody above watches this connection, so ssh must
}

// options are the arguments of ssh up to and including the destination. They override what in the person's
// configuration is meant for somebody at a terminal; how the machine is reached and who logs in they leave alone.
func (r *Remote) options(w way) []string {
	args := []string{
		"-T", "-x", "-a",
		"-o", "ClearAllForwardings=yes", // a port that is taken must not stop us
		"-o", "RemoteCommand=none",
		"-o", "PermitLocalCommand=no",
		"-o", "EscapeChar=none",
		"-o", "VisualHostKey=no",
		"-o", "LogLevel=INFO", // messages are how failures are told apart
		"-o", "TCPKeepAlive=yes",
		"-o", fmt.Sprintf("ConnectTimeout=%d", int(connectTimeout.Seconds())),
	}
	if w.patient {
		args = append(args, "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3")
	} else {
		// The tunnel's own heartbeat decides, sooner and by what it measures.
		args = append(args, "-o", "ServerAliveInterval=0", "-o", "Compression=no")
	}
	switch {
	case w.lead:
		args = append(args, "-o", "ControlMaster=yes", "-o", "ControlPersist=no", "-S", escapePercent(w.socket))
	case w.socket != "":
		args = append(args, "-o", "ControlMaster=no", "-S", escapePercent(w.socket))
	default:
		args = append(args, "-o", "ControlMaster=no", "-S", "none")
	}
	switch {
	case w.silent || (w.socket != "" && !w.lead): // a session that cannot ride must not ask either
		args = append(args, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
	case w.strict:
		args = append(args, "-o", "StrictHostKeyChecking=yes")
	default:
		// Also where the configuration says no or accept-new: whom we hand our sessions to is for a person to confirm.
		args = append(args, "-o", "StrictHostKeyChecking=ask")
	}
	return append(args, r.destination()...)
}

func (r *Remote) destination() []string {
	var args []string
	if r.config.ConfigFile != "" {
		args = append(args, "-F", r.config.ConfigFile)
	}
	options, name := r.config.Host.args()
	return append(append(args, options...), "--", name)
}

// escapePercent keeps ssh from expanding a path.
func escapePercent(path string) string { return strings.ReplaceAll(path, "%", "%%") }

// knowledge is what the person's configuration says about a host.
type knowledge struct {
	strict      bool // StrictHostKeyChecking is yes
	controlPath string
	masterIsUp  bool
}

// inspect asks the local client what it would do. Nothing is connected to.
func (r *Remote) inspect(ctx context.Context) (knowledge, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	said, errOut, err := r.configured(ctx, r.destination())
	if err != nil {
		return knowledge{}, explainLocal(ctx.Err(), errOut, err)
	}
	strict, path := said["stricthostkeychecking"], said["controlpath"]
	k := knowledge{strict: strict == "true" || strict == "yes"}
	if path != "" && path != "none" {
		k.controlPath = path
		_, _, err := r.ask(ctx, append([]string{"-O", "check", "-S", escapePercent(path)}, r.destination()...)...)
		k.masterIsUp = err == nil
	}
	return k, nil
}

// configured returns the configuration that the local client has for a destination.
func (r *Remote) configured(ctx context.Context, destination []string) (said map[string]string, stderr string,
	err error) {
	out, stderr, err := r.ask(ctx, append([]string{"-G"}, destination...)...)
	said = map[string]string{}
	for line := range strings.Lines(out) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		said[name] = value
	}
	return said, stderr, err
}

// ask runs ssh for something that it can answer by itself.
func (r *Remote) ask(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, r.config.SSH, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = environment("", "")
	cmd.WaitDelay = checkTimeout
	err = cmd.Run()
	return out.String(), errOut.String(), err
}
