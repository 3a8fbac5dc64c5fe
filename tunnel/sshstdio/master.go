package sshstdio

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"slipway/tunnel/askpass"
)

// master is a connection that sessions share, so that a person is asked once.
type master struct {
	carrier *carrier // its own session, whose command waits until this side ends
	socket  string
	asked   bool // logging in needed a secret

	// guarded by Remote.mu
	ridden bool // a carrier has used it
	uses   int  // commands that run over it
	over   bool // it is closed when none uses it
}

// close may be called more than once.
func (m *master) close() {
	_ = m.carrier.Close()
	_ = os.Remove(m.socket)
}

func (m *master) alive() bool { return m.carrier.child.alive() }

// takeMaster returns the shared connection for a carrier to use, nil unless it is up, spares a person a question, and
// was not used by a carrier before.
func (r *Remote) takeMaster() *master {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.master
	switch {
	case m == nil:
	case !m.alive():
		r.master = nil
		m.close()
	case m.ridden:
		r.master = nil // its carrier closes it
	case m.asked:
		m.ridden = true
		return m
	}
	return nil
}

// drop gives up a shared connection that has failed, or whose carrier has ended. Commands that use it come to an end.
func (r *Remote) drop(m *master) {
	r.mu.Lock()
	if r.master == m {
		r.master = nil
	}
	m.over = true
	used := m.uses > 0
	r.mu.Unlock()
	if !used {
		m.close()
	}
}

// use returns the way of a command over a shared connection. The caller holds mu.
func (r *Remote) use(m *master) (w way, release func()) {
	m.uses++
	return way{socket: m.socket, patient: true}, func() {
		r.mu.Lock()
		m.uses--
		last := m.over && m.uses == 0
		r.mu.Unlock()
		if last {
			m.close()
		}
	}
}

// shared returns the connection for a command, which calls release at its end. It logs in if none is up.
func (r *Remote) shared(ctx context.Context) (w way, release func(), err error) {
	if err := r.enter(ctx); err != nil {
		return way{}, nil, err
	}
	defer r.leave()
	r.mu.Lock()
	if m := r.master; m != nil && m.alive() {
		defer r.mu.Unlock()
		w, release = r.use(m)
		return w, release, nil
	}
	r.mu.Unlock()
	alone := func() {}
	known, err := r.inspect(ctx)
	if err != nil {
		return way{}, nil, err
	}
	if known.masterIsUp {
		return way{socket: known.controlPath, patient: true}, alone, nil
	}
	if runtime.GOOS == "windows" { // its ssh cannot share connections
		return way{strict: known.strict, patient: true}, alone, nil
	}
	m, err := r.login(ctx, known)
	if err != nil {
		return way{}, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		defer m.close()
		return way{}, nil, os.ErrClosed
	}
	r.master = m
	w, release = r.use(m)
	return w, release, nil
}

// login opens a connection to share, and asks what ssh asks.
func (r *Remote) login(ctx context.Context, known knowledge) (*master, error) {
	asking, err := askpass.Listen(ctx, r.folder, r.config.Asker)
	if err != nil {
		return nil, err
	}
	defer asking.Close()
	socket := filepath.Join(r.folder, "m"+rand.Text()[:8])
	options := r.options(way{lead: true, socket: socket, strict: known.strict, patient: true})
	c, err := r.start(ctx, options, []string{"cat"}, asking) // cat ends when we do, however we do
	if err != nil {
		return nil, err
	}
	asked, _ := asking.Outcome()
	return &master{carrier: c, socket: socket, asked: asked}, nil
}

// way is the connection of a session: a new one, or one that is up.
type way struct {
	silent  bool   // ask nothing
	strict  bool   // the person's configuration refuses unknown hosts
	socket  string // of a connection that is up
	lead    bool   // make a connection that others share by socket
	patient bool   // no tunnel watches this connection, so ssh must
}

// options are the arguments of ssh up to and including the destination. They override the parts of the person's
// configuration that are meant for a terminal, but not how the machine is reached and who logs in.
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
		// The tunnel has its own heartbeat, which is faster.
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
	case w.silent || (w.socket != "" && !w.lead): // a session that cannot use its socket must not ask either
		args = append(args, "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes")
	case w.strict:
		args = append(args, "-o", "StrictHostKeyChecking=yes")
	default:
		// Also where the configuration says no or accept-new: a person has to confirm the host of their sessions.
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

// knowledge is the person's configuration for a host.
type knowledge struct {
	strict      bool // StrictHostKeyChecking is yes
	controlPath string
	masterIsUp  bool
}

// inspect asks the local client for its configuration, without connecting.
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

// configured returns the local client's configuration for a destination.
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

// ask runs ssh for something that it answers without connecting.
func (r *Remote) ask(ctx context.Context, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, r.config.SSH, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	cmd.Env = askpass.Environment(nil)
	cmd.WaitDelay = checkTimeout
	askpass.Detach(cmd)
	err = cmd.Run()
	return out.String(), errOut.String(), err
}
