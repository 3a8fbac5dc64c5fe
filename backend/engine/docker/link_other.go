//go:build !linux

package docker

import (
	"net"
	"path/filepath"

	"slipway/backend/session"
)

// bindLink always fails: a socket of this machine does not lead into the virtual machine that runs Linux containers
// here.
func bindLink(dir string) (*net.UnixListener, error) {
	return nil, session.NewError(session.CodeEngineUnsupported,
		"Docker on this system runs in a machine of its own, which "+filepath.Join(dir, linkSocket)+" does "+
			"not reach.",
		"Run a Slipway agent on a Linux machine.")
}

func trusted(*net.UnixConn) bool { return false }
