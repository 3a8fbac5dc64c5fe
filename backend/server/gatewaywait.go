package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"slipway/backend/session"
)

// errNotReached ends a request whose answer did not begin because the agent was
// not reached for longer than the request waits.
var errNotReached = &session.Error{Code: session.CodeAgentUnavailable, Message: "The agent is not reached.",
	Hint: "Slipway keeps trying. Check the state of its connection."}

// bounded bounds how long a request waits while the agent that keeps its session
// is not reached: connections into sessions outlive their tunnel, but nobody
// watches a page that does not come. It returns the request to make, and what
// ends the watch; call that when the answer begins, and at the end. What asks
// for a connection of its own, as a notebook's page does, waits without bound.
func (g *gateway) bounded(r *http.Request, host appHost) (request *http.Request, begun func()) {
	if r.Header.Get("Upgrade") != "" {
		return r, func() {}
	}
	ctx, giveUp := context.WithCancelCause(r.Context())
	watching, stop := context.WithCancel(r.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for watching.Err() == nil {
			if remote, err := g.server.hub.AwaitKeeperLost(watching, host.session); !remote || err != nil {
				return
			}
			waiting, cancel := context.WithTimeout(watching, g.patience(r))
			remote, err := g.server.hub.AwaitKeeper(waiting, host.session)
			cancel()
			if err != nil && watching.Err() == nil || !remote {
				giveUp(errNotReached)
				return
			}
		}
	})
	return r.WithContext(ctx), func() { stop(); watch.Wait() }
}

// causeOf is why a request failed: that it was given up, where it was.
func causeOf(r *http.Request, err error) error {
	if cause := context.Cause(r.Context()); errors.Is(cause, errNotReached) {
		return cause
	}
	return err
}
