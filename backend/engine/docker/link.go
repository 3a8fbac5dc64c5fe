package docker

import (
	"context"
	"net"
	"time"

	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// linkSocket is the name of the guest's socket in its link directory.
const linkSocket = "agent.sock"

// link is the listening end of a container's connection to its guest. The guest dials at its start and after each loss;
// its connections wait in the listener.
type link struct {
	listener *net.UnixListener
	turn     chan struct{} // holds one token, taken by whoever accepts
	current  net.Conn      // what was accepted last; belongs to whoever has the token
}

// listenLink binds the socket in dir again if it exists.
func listenLink(dir string) (*link, error) {
	listener, err := bindLink(dir)
	if err != nil {
		return nil, daemon.FileFailure("the guest's socket", err)
	}
	l := &link{listener: listener, turn: make(chan struct{}, 1)}
	l.turn <- struct{}{}
	return l, nil
}

// accept returns the next connection of the guest and closes the one before, so that a guest that still uses it dials
// again. Connections of other processes are closed.
func (l *link) accept(ctx context.Context) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { l.turn <- struct{}{} }()
	if l.current != nil {
		l.current.Close() //nolint:errcheck // it is given up
		l.current = nil
	}
	if err := l.listener.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		l.listener.SetDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed listener needs no interruption
		close(interrupted)
	})
	defer func() {
		if !stop() {
			<-interrupted // so that it cannot interrupt the next caller
		}
	}()
	for {
		conn, err := l.listener.AcceptUnix()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, session.WrapError(err, session.CodeSessionUnavailable, "The container's link was closed.", "")
		case trusted(conn):
			l.current = conn
			return conn, nil
		}
		conn.Close() //nolint:errcheck // it is nobody we know
	}
}

func (l *link) close() { l.listener.Close() } //nolint:errcheck // nothing to lose
