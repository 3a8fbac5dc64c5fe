//go:build !linux

package docker

import (
	"net"
	"path/filepath"

	"slipway/backend/session"
)

// bindLink always fails: Linux containers run in a virtual machine here, which a socket does not reach.
func bindLink(dir string) (*net.UnixListener, error) {
	return nil, session.NewError(session.CodeEngineUnsupported,
		"Docker on this system runs in a virtual machine, which "+filepath.Join(dir, linkSocket)+" does "+
			"not reach.", "Run a Slipway agent on a Linux machine.")
}

func trusted(*net.UnixConn) bool { return false }
