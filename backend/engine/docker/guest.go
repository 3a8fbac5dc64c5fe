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
	facts, err := e.daemon.Facts(ctx)
	if err != nil {
		return nil, err
	}
	k, err := e.kernels.open(state.Name, e.answers(facts))
	if err != nil {
		return nil, err
	}
	e.kernels.bind(id, k)
	return k, nil
}

// answers returns how guests are reached: by a socket of this machine, or through a daemon on another one.
func (e *Engine) answers(facts *daemon.Facts) opener {
	if facts.Here {
		return listenSocket
	}
	return func(k *kernel) (link, error) { return &execLink{daemon: e.daemon, name: k.name, turn: newTurn()}, nil }
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
