package guest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// container starts Linux processes as the work user. All but its helper is immutable, and so it is safe for concurrent
// use.
type container struct {
	uid, gid int
	groups   []int // besides gid
	home     string
	shell    shell
	env      environment
	helper   fileHelper
	held     *places
}

var _ Processes = (*container)(nil)

// Which looks along the PATH of the session.
func (c *container) Which(names []string) map[string]string {
	path, _ := c.env.get("PATH")
	found := map[string]string{}
	for _, name := range names {
		if at := lookPath(name, path); at != "" {
			found[name] = at
		}
	}
	return found
}

// DialPort tries the IPv4 loopback, then that of IPv6.
func (c *container) DialPort(ctx context.Context, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, fmt.Errorf("there is no port %d", port)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err == nil {
		return conn, nil
	}
	if conn, err := dialer.DialContext(ctx, "tcp6", net.JoinHostPort("::1", strconv.Itoa(port))); err == nil {
		return conn, nil
	}
	return nil, err
}

func (c *container) DialHost(ctx context.Context, host string, port int) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

func (c *container) ListenPort(ctx context.Context, port int) (net.Listener, error) {
	var config net.ListenConfig
	return config.Listen(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// spec is how a command is started as the work user, with env around it.
func (c *container) spec(cmd Command, env environment) childSpec {
	return childSpec{uid: c.uid, gid: c.gid, groups: c.groups, dir: cmp.Or(cmd.Dir, c.home), argv: cmd.Argv,
		env: env.with(cmd.Env)}
}

// Start starts a program on pipes.
func (c *container) Start(cmd Command) (terminal.Process, error) {
	spec := c.spec(cmd, c.env)
	var ours [3]*os.File
	closeAll := func(files []*os.File) {
		for _, file := range files {
			if file != nil && file != c.held.null {
				_ = file.Close()
			}
		}
	}
	defer func() { closeAll(spec.files[:]) }()
	for i := range spec.files {
		var err error
		switch {
		case i > 0:
			ours[i], spec.files[i], err = os.Pipe()
		case cmd.Stdin:
			spec.files[i], ours[i], err = os.Pipe()
		default:
			spec.files[i] = c.held.null
		}
		if err != nil {
			closeAll(ours[:])
			return nil, err
		}
		if spec.files[i] != c.held.null {
			_ = unix.Fchown(int(spec.files[i].Fd()), c.uid, c.gid) // for programs that open /dev/stdout anew
		}
	}
	started, err := startChild(spec)
	if err != nil {
		closeAll(ours[:])
		return nil, err
	}
	process := &command{child: started, stdout: newOutputPipe(ours[1], started.ended),
		stderr: newOutputPipe(ours[2], started.ended)}
	if ours[0] != nil {
		process.stdin = ours[0]
	}
	return process, nil
}

func (c *container) Script(text string) []string {
	switch {
	case c.shell.path == "":
		return nil
	case text == "":
		return c.shell.interactive()
	}
	return c.shell.run(text)
}

// OpenTerminal starts a program on a terminal.
func (c *container) OpenTerminal(cmd Command, cols, rows int) (terminal.TTY, error) {
	if len(cmd.Argv) == 0 {
		if !hasShell(c) {
			return nil, noShell(session.CodeGuestInternal)
		}
		cmd.Argv = c.shell.interactive()
	}
	master, slave, err := c.held.openPTY()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	t := &tty{File: master}
	if err := t.Resize(cols, rows); err != nil {
		_ = master.Close()
		return nil, fmt.Errorf("set the terminal's size: %w", err)
	}
	// The person owns the terminal, so that programs may open it by name.
	_ = slave.Chown(c.uid, c.gid)
	_ = slave.Chmod(0o620)
	spec := c.spec(cmd, c.env.forTerminal(c.shell))
	spec.files, spec.terminal = [3]*os.File{slave, slave, slave}, true
	if t.child, err = startChild(spec); err != nil {
		_ = master.Close()
		return nil, err
	}
	return t, nil
}

// tty is a program on a terminal, seen from the terminal's master side.
type tty struct {
	*os.File
	child *child
}

func (t *tty) Resize(cols, rows int) error {
	return pty.Setsize(t.File, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
}

func (t *tty) Wait() int { return t.child.Wait() }

// Close hangs up: everything on the terminal gets SIGHUP, and the program itself is killed if it stays. What was
// started to outlive its terminal goes on.
func (t *tty) Close() error {
	t.child.hangUp()
	return t.File.Close()
}

var _ Foregrounder = (*tty)(nil)

// Foreground implements [Foregrounder] by the process group that the kernel calls the terminal's foreground. See
// ioctl_tty(2), TIOCGPGRP.
func (t *tty) Foreground() (string, bool) {
	conn, err := t.SyscallConn()
	if err != nil {
		return "", false
	}
	var group int
	var failure error
	err = conn.Control(func(fd uintptr) { group, failure = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) })
	if err != nil || failure != nil || group <= 0 {
		return "", false
	}
	command := commandOf(group)
	if command == "" {
		return "", false // it ended between the two questions, or it is hidden
	}
	name := strings.TrimPrefix(path.Base(strings.Fields(command)[0]), "-")
	if group == t.child.pid && slices.Contains(shells, name) {
		return "", true
	}
	return command, true
}

// commandOf is the command line of a process, shortened, or "" if it is gone.
func commandOf(pid int) string {
	const maxCommandLine = 4 << 10
	line, err := kernelFile("/proc/"+strconv.Itoa(pid)+"/cmdline", maxCommandLine)
	if err != nil {
		return ""
	}
	words := strings.Fields(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	if len(words) == 0 {
		return ""
	}
	words[0] = path.Base(words[0])
	return shorten(words)
}
