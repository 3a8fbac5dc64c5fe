//go:build !linux

package docker

import (
	"net"

	"slipway/backend/session"
)

// Supported fails: Linux containers run in a virtual machine here. Their guests answer on sockets that do not lead out
// of it, and its driver accounts for the devices.
func Supported() error {
	return session.NewError(session.CodeEngineUnsupported,
		"On this system, containers run in a virtual machine, where Slipway can neither run sessions nor account "+
			"for GPUs.", "Add a Linux machine: slipway agent add HOST")
}

func bindLink(string) (*net.UnixListener, error) { return nil, Supported() }

func trusted(*net.UnixConn) bool { return false }
