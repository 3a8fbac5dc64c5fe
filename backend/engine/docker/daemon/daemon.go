// Package daemon is the connection to one Docker daemon: its address, its facts, and its errors as [session.Error].
package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"slipway/backend/session"
)

// Daemon is the connection to one daemon. It is safe for concurrent use.
type Daemon struct {
	API *client.Client
	Log *slog.Logger

	answerTime time.Duration // [answerTime] but for tests

	asking chan struct{} // holds a token while a call asks for the first facts

	mu    sync.Mutex // guards facts
	facts *Facts     // what the daemon said of itself last; nil before
}

// answerTime is how long the daemon may take to answer a cheap request before it counts as unavailable.
const answerTime = 20 * time.Second

// Open prepares the connection to the daemon at host; empty: to the one that the docker command would use. It does not
// connect, so that a daemon that is down now may start later. log may be nil.
func Open(host string, log *slog.Logger) (*Daemon, error) {
	endpoint, err := resolveHost(host, hostEnvironment())
	if err != nil {
		return nil, err
	}
	api, err := client.NewClientWithOpts(endpoint.options()...)
	if err != nil {
		return nil, session.WrapError(err, session.CodeServerInvalid,
			"The address of the Docker daemon, "+endpoint.host+", cannot be used.",
			"Check DOCKER_HOST and `docker context ls`.")
	}
	return &Daemon{API: api, Log: cmp.Or(log, slog.New(slog.DiscardHandler)), answerTime: answerTime,
		asking: make(chan struct{}, 1)}, nil
}

func (d *Daemon) Host() string { return d.API.DaemonHost() }

func (d *Daemon) Close() error { return d.API.Close() }

// Brief limits a call that is cheap for the daemon.
func (d *Daemon) Brief(ctx context.Context) (context.Context, context.CancelFunc) {
	return Within(ctx, d.answerTime)
}

// Within limits a call. When the limit ends it, the daemon counts as unavailable.
func Within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, errSilent)
}

// requests is how many requests run at once.
const requests = 8

// Each calls fn for all items, [requests] at a time, and returns the results in order, without those of items that are
// gone. It fails if another error occurred.
func Each[In, Out any](items []In, gone func(error) bool, fn func(In) (Out, error)) ([]Out, error) {
	results, errs := make([]Out, len(items)), make([]error, len(items))
	var group sync.WaitGroup
	turns := make(chan struct{}, requests)
	for i, item := range items {
		group.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			results[i], errs[i] = fn(item)
		})
	}
	group.Wait()
	found := make([]Out, 0, len(items))
	for i, err := range errs {
		switch {
		case err == nil:
			found = append(found, results[i])
		case !gone(err):
			return nil, err
		}
	}
	return found, nil
}

// RemoveContainer removes a container with its anonymous volumes, running or not. It ignores one that does not exist.
func (d *Daemon) RemoveContainer(ctx context.Context, id string) error {
	err := d.API.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	switch {
	case errdefs.IsNotFound(err):
		return nil
	case errdefs.IsConflict(err):
		return d.awaitRemoval(ctx, id) // somebody else is removing it
	}
	return ContainerFailure(ctx, id, err)
}

func (d *Daemon) awaitRemoval(ctx context.Context, id string) error {
	results, errs := d.API.ContainerWait(ctx, id, container.WaitConditionRemoved)
	select {
	case <-results:
		return nil
	case err := <-errs:
		if errdefs.IsNotFound(err) {
			return nil
		}
		return ContainerFailure(ctx, id, err)
	}
}
