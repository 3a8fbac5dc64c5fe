package docker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/docker/docker/api/types/container"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

var errExited = &session.Error{Code: session.CodeGuestExited,
	Message: "The container ended before its guest could be reached.", Hint: "Read the session's log."}

// patience is how long Guest waits before it checks whether the container still runs.
const patience = 300 * time.Millisecond

func (e *Engine) Guest(ctx context.Context, id string) (net.Conn, error) {
	k, err := e.kernel(ctx, id)
	if err != nil {
		return nil, err
	}
	waiting, stop := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		stop(e.exit(waiting, id))
	}()
	conn, err := k.link.accept(waiting)
	cause := context.Cause(waiting)
	stop(nil)
	<-watched
	failed, ended := errors.AsType[*session.Error](cause)
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() == nil && ended:
		return nil, failed
	}
	return nil, daemon.Failure(ctx, err)
}

// kernel returns the kernel of a container. If an earlier process created it, its link is bound again.
func (e *Engine) kernel(ctx context.Context, id string) (*kernel, error) {
	if k := e.kernels.of(id); k != nil {
		return k, nil
	}
	state, err := e.Inspect(ctx, id)
	if err != nil {
		return nil, err
	}
	dir, err := e.kernels.path(state.Name)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return nil, session.WrapError(err, session.CodeSessionUnavailable,
			"The files that connect to container "+state.Name+" no longer exist.",
			"Terminate the session; its container cannot be reached any more.")
	}
	k, err := e.kernels.open(state.Name)
	if err != nil {
		return nil, err
	}
	e.kernels.bind(id, k)
	return k, nil
}

// exit returns why the guest will not connect, once the container ended or is gone, or ctx's error when ctx ends first.
func (e *Engine) exit(ctx context.Context, id string) error {
	select {
	case <-time.After(patience):
	case <-ctx.Done():
		return ctx.Err()
	}
	results, errs := e.daemon.API.ContainerWait(ctx, id, container.WaitConditionNextExit)
	state, err := e.Inspect(ctx, id)
	switch {
	case err != nil:
		return err
	case !state.Running && !state.Created:
		return e.whyExited(ctx, id, state.ExitCode)
	}
	select {
	case result := <-results:
		return e.whyExited(ctx, id, int(result.StatusCode))
	case err := <-errs:
		return daemon.ContainerFailure(ctx, id, err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// whyExited recognises a guest that refuses its image.
func (e *Engine) whyExited(ctx context.Context, id string, code int) error {
	if code != engine.ExitUnsafe {
		return errExited
	}
	log, err := e.Logs(ctx, id, session.LogOptions{Tail: 1})
	if err != nil {
		return errExited
	}
	defer log.Close()                               //nolint:errcheck // only read
	line, _ := io.ReadAll(io.LimitReader(log, 512)) //nolint:errcheck // what was read counts
	reason, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "slipway-guest: ")
	if !ok || strings.ContainsFunc(reason, unicode.IsControl) {
		return errExited
	}
	return session.NewError(session.CodeEngineUnsupported, "This image cannot be used: "+reason+".",
		"Choose another image, or change it so that this is a directory of its own.")
}

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
		conn.Close() //nolint:errcheck // it is no trusted process
	}
}

func (l *link) close() { l.listener.Close() } //nolint:errcheck // nothing to lose
