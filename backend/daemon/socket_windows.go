package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/tunnel/pipe"
)

// Listen opens both sockets, named pipes that only the user of this process can connect to. The caller holds the
// folder's lock.
func Listen(home place.Home, _ []int, _ *slog.Logger) (*Sockets, error) {
	if err := home.Make(); err != nil {
		return nil, err
	}
	tunnel, err := pipe.Listen(home.Join(tunnelSocket))
	if err != nil {
		return nil, unopened(err)
	}
	control, err := pipe.Listen(home.Join(controlSocket))
	if err != nil {
		return nil, errors.Join(unopened(err), tunnel.Close())
	}
	return &Sockets{Tunnel: tunnel, Control: control,
		close: func() error { return errors.Join(closed(tunnel), closed(control)) }}, nil
}

func unopened(err error) error {
	return session.WrapError(err, session.CodeServerFailed, "The pipe of the agent cannot be created.",
		"Another program may have it. Sign out and in again.")
}

// closed closes a listener that may be closed already.
func closed(listener net.Listener) error {
	if err := listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// dial connects to a socket of the agent of a folder. If another user answers there: agent_connect_forbidden.
func dial(ctx context.Context, home place.Home, socket string) (net.Conn, error) {
	conn, err := pipe.Dial(ctx, home.Join(socket))
	if errors.Is(err, pipe.ErrStranger) {
		err = session.WrapError(err, session.CodeConnectForbidden,
			"A program of another user answers in place of the agent of "+home.Dir+".", "End that program.")
	}
	return conn, err
}
