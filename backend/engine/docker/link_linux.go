package docker

import (
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"slipway/backend/peer"
)

// bindLink listens in dir.
func bindLink(dir string) (*net.UnixListener, error) {
	return peer.Listen(filepath.Join(dir, linkSocket))
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
