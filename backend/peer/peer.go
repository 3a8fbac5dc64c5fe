// Package peer says which process is at the other end of a Unix socket, and whether that process lives on the machine
// itself or in a container or sandbox on it. A user id alone does not tell: the processes of a session have the id of
// the person who runs the agent, and connecting works through a read-only mount.
package peer

import (
	"errors"
	"net"
)

// ErrElsewhere means that the process at the other end lives in another mount, process or user namespace than this one,
// as those of containers do.
var ErrElsewhere = errors.New("the process at the other end is in a container or sandbox")

// ErrUnknown means that nothing can be found out about the process at the other end, for example because it has ended.
var ErrUnknown = errors.New("the process at the other end is unknown")

// Process is the process at the other end of a connection: the one that connected, or the one that began to listen.
type Process struct {
	PID, UID int
	end
}

// Of finds the process at the other end of conn. The caller closes it. It fails with [ErrElsewhere] or [ErrUnknown].
func Of(conn *net.UnixConn) (*Process, error) { return of(conn) }
