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

// bindLink listens in dir through a descriptor: a socket's path has at most 108 bytes and dir may be longer.
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

// trusted reports whether the guest made a connection, not another process of the container, which may reach the
// socket. The guest is root with a capability that the person's processes lack, also an administrator's, except in a
// user namespace of their own. That has one user, and an administrator cannot make one: see [Engine.Create].
func trusted(conn *net.UnixConn) bool {
	process, err := peer.Of(conn)
	if err != nil {
		return false
	}
	defer process.Close()                               //nolint:errcheck // only read
	if process.UID != 0 && process.UID != os.Getuid() { // the second is root of a rootless engine
		return false
	}
	return process.Capable(unix.CAP_SETPCAP) && process.Users() > 1
}
