//go:build unix

package pipe

import (
	"context"
	"errors"
	"net"
	"os"
)

// Listen makes a socket that only this user can connect to. Closing the listener removes it.
func Listen(path string) (net.Listener, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// Dial connects to the socket at path. It does not look at whose it is: its directory is this user's.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", path)
}
