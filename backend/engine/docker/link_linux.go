package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// bindLink listens in dir by way of a descriptor of it, since a socket's path
// has at most 108 bytes and dir may be deeper than that.
func bindLink(dir string) (*net.UnixListener, error) {
	folder, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer folder.Close() //nolint:errcheck // only read
	path := fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), linkSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// trusted reports whether the guest made a connection, rather than one of the
// person's processes beside it: those have the same user id and may reach the
// socket, but no process of theirs has a capability, and the guest has.
func trusted(conn *net.UnixConn) bool {
	pid, err := peer(conn)
	if err != nil || pid <= 0 {
		return false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "CapEff:"); ok {
			bits, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			return err == nil && bits&(1<<unix.CAP_SETUID) != 0
		}
	}
	return false
}

// peer is the process at the other end: the one that connected, or that began
// to listen.
func peer(conn *net.UnixConn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		credentials, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, err
	}
	return int(credentials.Pid), nil
}
