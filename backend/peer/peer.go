// Package peer finds the process at the other end of a Unix socket, and whether it is in a container or sandbox. The
// user id is not enough: the processes of a session have the id of the person who runs the agent, and connecting works
// through a read-only mount.
package peer

import (
	"errors"
	"net"
)

// ErrElsewhere means that the process at the other end is in another mount, process or user namespace.
var ErrElsewhere = errors.New("the process at the other end is in a container or sandbox")

// ErrUnknown means that the process at the other end cannot be found, for example because it has ended.
var ErrUnknown = errors.New("the process at the other end is unknown")

// Process is the process at the other end of a connection: the one that connected or that listened.
type Process struct {
	PID, UID int
	end
}

// Of finds the process at the other end of conn. The caller closes it. It fails with [ErrElsewhere] or [ErrUnknown].
func Of(conn *net.UnixConn) (*Process, error) { return of(conn) }
