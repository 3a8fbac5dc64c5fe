package guest

import (
	"context"
	"fmt"
	"net"
	"os"
)

// makeSockets makes the folder for the sockets of services, which no other user may enter.
func (c *container) makeSockets() error {
	dir, err := os.MkdirTemp("/tmp", "slipway-apps-")
	if err == nil {
		err = os.Chown(dir, c.uid, c.gid)
	}
	c.sockets = dir
	return err
}

// dialShared connects to a service by its socket, or to a port on which a program of this container listens, where the
// loopback is that of others, too.
func (c *container) dialShared(ctx context.Context, port int) (net.Conn, error) {
	var dialer net.Dialer
	if conn, err := dialer.DialContext(ctx, "unix", socketOf(c.sockets, port)); err == nil {
		return conn, nil
	}
	for _, own := range ownListeners() {
		if own == port {
			return dialLoopback(ctx, port)
		}
	}
	return nil, fmt.Errorf("no program of this container listens on port %d", port)
}

// ownListeners returns the ports on which programs of this container listen.
func ownListeners() []int {
	own := ownSockets()
	return loopbackListeners(func(inode string) bool { return own[inode] })
}
