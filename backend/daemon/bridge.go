package daemon

import (
	"context"
	"errors"
	"io"
	"net"

	"slipway/backend/place"
	"slipway/backend/session"
)

// Dial opens one connection for a carrier to what rules the agent of a folder;
// [ErrNotRunning] where nothing does, agent_connect_forbidden where it is in
// another container or sandbox than this program.
func Dial(ctx context.Context, home place.Home) (*net.UnixConn, error) {
	conn, err := dialUnix(ctx, home, tunnelSocket)
	if err != nil && session.CodeOf(err) == "" {
		err = errors.Join(ErrNotRunning, err)
	}
	return conn, err
}

// Bridge carries in and out to what rules the agent of a folder, starting a
// daemon where nothing does, until either side ends. Closing in is left to the
// caller: a read of it may outlast Bridge.
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
		return &session.Error{Code: session.CodeUnreachable, Message: "The agent of " + home.Dir +
			" cannot be reached.", Hint: "Look at its log, " + LogFile(home) + ".", Err: err}
	}
	defer conn.Close() //nolint:errcheck // both directions have ended
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	go func() {
		_, err := io.Copy(conn, in)
		if err == nil {
			err = conn.CloseWrite()
		}
		if err != nil {
			_ = conn.Close()
		}
	}()
	if _, err := io.Copy(out, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
