package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"slipway/backend/peer"
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
	process, err := peer.Of(conn)
	if err != nil {
		return false
	}
	defer process.Close() //nolint:errcheck // only read
	return process.Capable(unix.CAP_SETUID)
}
