package guest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
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

// container starts Linux processes as the work user. It is safe for concurrent use, because only its helper changes.
type container struct {
	uid, gid int
	groups   []int // besides gid
	author   session.GitAuthor
	admin    bool // the user is root and keeps the capabilities of administrators
	home     string
	shell    shell
	env      environment
	helper   fileHelper
	held     *places
	sockets  string // folder of the sockets of services; empty: the network is the container's own
}

var _ Processes = (*container)(nil)

func (c *container) Which(names []string) map[string]string {
	found := map[string]string{}
	for _, name := range names {
		if at := lookPath(name, c.env.get("PATH")); at != "" {
			found[name] = at
		}
	}
	return found
}

func (c *container) DialPort(ctx context.Context, port int) (net.Conn, error) {
	switch {
	case port < 1 || port > 65535:
		return nil, fmt.Errorf("there is no port %d", port)
	case c.sockets != "":
		return c.dialShared(ctx, port)
	}
	return dialLoopback(ctx, port)
}

// dialLoopback tries the IPv4 loopback, then that of IPv6.
func dialLoopback(ctx context.Context, port int) (net.Conn, error) {
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

// Start starts a program on pipes.
func (c *container) Start(cmd Command) (terminal.Process, error) {
	var ours, theirs [3]*os.File
	closeAll := func(files []*os.File) {
		for _, file := range files {
			if file != nil && file != c.held.null {
				_ = file.Close()
			}
		}
	}
	defer func() { closeAll(theirs[:]) }()
	for i := range theirs {
		var err error
		switch {
		case i > 0:
			ours[i], theirs[i], err = os.Pipe()
		case cmd.Stdin:
			theirs[i], ours[i], err = os.Pipe()
		default:
			theirs[i] = c.held.null
		}
		if err != nil {
			closeAll(ours[:])
			return nil, err
		}
		if theirs[i] != c.held.null {
			_ = unix.Fchown(int(theirs[i].Fd()), c.uid, c.gid) // for programs that open /dev/stdout
		}
	}
	started, err := c.startChild(cmd, c.env, theirs, false)
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
	t.child, err = c.startChild(cmd, c.env.forTerminal(c.shell), [3]*os.File{slave, slave, slave}, true)
	if err != nil {
		_ = master.Close()
		return nil, err
	}
	return t, nil
}

type tty struct {
	*os.File
	child *child
}

func (t *tty) Resize(cols, rows int) error {
	return pty.Setsize(t.File, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)})
}

func (t *tty) Wait() int { return t.child.Wait() }

// Close sends SIGHUP to everything on the terminal, which a program may ignore, and kills the terminal's own program.
func (t *tty) Close() error {
	t.child.hangUp()
	return t.File.Close()
}

var _ Foregrounder = (*tty)(nil)

// Foreground implements [Foregrounder] with the terminal's foreground process group. See ioctl_tty(2), TIOCGPGRP.
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
		return "", false // it ended meanwhile, or it is hidden
	}
	name := strings.TrimPrefix(path.Base(strings.Fields(command)[0]), "-")
	if group == t.child.pid && slices.Contains(shells, name) {
		return "", true
	}
	return command, true
}

// commandOf returns the shortened command line of a process; "" if it has ended.
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

func (c *container) Listening() []int {
	ports := loopbackListeners(func(string) bool { return true })
	if c.sockets != "" {
		ports = ownListeners()
	}
	first, last := passingPorts("/proc/sys/net/ipv4/ip_local_port_range")
	return slices.DeleteFunc(ports, func(port int) bool { return port >= first && port <= last })
}

// loopbackListeners reads the ports of sockets that listen on the loopback, whose inodes count, from the kernel's
// tables.
func loopbackListeners(counts func(inode string) bool) (ports []int) {
	for _, table := range [...]string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := openKernel(table)
		if err != nil {
			continue // a kernel without that protocol
		}
		ports = append(ports, listeners(file, counts)...)
		_ = file.Close()
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// listeners returns the listening ports in a table that the loopback reaches, of sockets whose inodes count. Docker's
// name server is on 127.0.0.11.
func listeners(table io.Reader, counts func(inode string) bool) []int {
	var ports []int
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		// sl local_address rem_address st queues timers retransmits uid timeout inode …; 0A means that the socket
		// listens
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != "0A" || !counts(fields[9]) {
			continue
		}
		address, port, _ := strings.Cut(fields[1], ":")
		number, err := strconv.ParseUint(port, 16, 16)
		if err == nil && number > 0 && onLoopback(address) {
			ports = append(ports, int(number))
		}
	}
	return ports
}

// onLoopback reports whether an address, in the kernel's byte order, is 127.0.0.1, ::1 or any address.
func onLoopback(address string) bool {
	switch address {
	case "00000000", "00000000000000000000000000000000", "00000000000000000000000001000000",
		"0100007F", "0000000000000000FFFF00000100007F", "0000000000000000FFFF000000000000":
		return true
	}
	return false
}

// passingPorts reads the range of ephemeral ports, which programs such as a notebook use internally.
func passingPorts(path string) (first, last int) {
	first, last = 32768, 60999
	data, err := kernelFile(path, maxKernelText)
	if err != nil {
		return first, last
	}
	var from, to int
	if n, _ := fmt.Sscan(string(data), &from, &to); n != 2 {
		return first, last
	}
	return from, to
}
