package daemon

import (
	"context"
	"errors"
	"io"
	"net"

	"slipway/backend/place"
	"slipway/backend/session"
)

// Sockets are the sockets of one folder's agent.
type Sockets struct {
	Tunnel  net.Listener // accepts tunnel carriers
	Control net.Listener // accepts requests for [Serve]

	close func() error
}

// Close closes both sockets and removes their files.
func (s *Sockets) Close() error { return s.close() }

// Dial opens a connection for a tunnel carrier to the agent of a folder. It fails with [ErrNotRunning], or with
// agent_connect_forbidden if the agent is in another container or sandbox.
func Dial(ctx context.Context, home place.Home) (net.Conn, error) {
	conn, err := dial(ctx, home, tunnelSocket)
	if err != nil && session.CodeOf(err) == "" {
		err = errors.Join(ErrNotRunning, err)
	}
	return conn, err
}

// Bridge copies between in and out and the agent of a folder until either side ends. It starts a daemon if none runs.
// It does not close in, because a read of it may outlast Bridge.
func Bridge(ctx context.Context, home place.Home, in io.Reader, out io.Writer) error {
	conn, err := Dial(ctx, home)
	if errors.Is(err, ErrNotRunning) {
		if _, err = Start(ctx, home, StartOptions{}); err != nil {
			return err
		}
		conn, err = Dial(ctx, home)
	}
	if session.CodeOf(err) == session.CodeConnectForbidden {
		return err
	}
	if err != nil {
		return session.WrapError(err, session.CodeUnreachable, "The agent of "+home.Dir+" cannot be reached.",
			"Look at its log, "+LogFile(home)+".")
	}
	defer conn.Close() //nolint:errcheck // both directions have ended
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		half, halves := conn.(interface{ CloseWrite() error }) // a pipe of Windows has none
		if _, err := io.Copy(conn, in); err != nil || !halves || half.CloseWrite() != nil {
			_ = conn.Close()
		}
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
