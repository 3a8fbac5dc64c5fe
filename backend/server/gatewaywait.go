package server

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"slipway/backend/session"
)

// errNotReached ends a request whose agent was unreachable for longer than the request waits.
var errNotReached = &session.Error{Code: session.CodeAgentUnavailable, Message: "The agent is not reached.",
	Hint: "Slipway keeps trying. Check the state of its connection."}

// bounded limits how long a request waits for its response while the session's agent is unreachable: connections into
// sessions outlive their tunnel, but a page should not load forever. It returns the request to make and a function that
// ends the limit; call it when the response begins, and at the end. Upgrades, such as a notebook's WebSocket, have no
// limit.
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

// causeOf returns why a request failed: the cause of its context if that is errNotReached, else err.
func causeOf(r *http.Request, err error) error {
	if cause := context.Cause(r.Context()); errors.Is(cause, errNotReached) {
		return cause
	}
	return err
}
