package server

import (
	"context"
	"crypto/rand"
	"time"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

const (
	// reattachFirst is the pause before a terminal that was cut off is joined a
	// second time while its agent is reached; it doubles up to reattachMost.
	reattachFirst = 50 * time.Millisecond
	reattachMost  = 2 * time.Second
	// reattachTries is how often in a row an agent that is reached may fail to
	// join a terminal before the client is told.
	reattachTries = 8
)

// attach joins a terminal. Where its agent is on another machine the client
// stays attached while that is not reached: it is joined again at the byte
// where it was.
func (s terminalRoutes) attach(ctx context.Context, ref string, req session.AttachRequest) (terminal.Conn, error) {
	agent, id, err := s.hub.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	if keeper, known := s.hub.Keeper(id); !known || keeper.Address == "" {
		return frames(agent.AttachTerminal(ctx, id, req))
	}
	if req.Client == "" {
		req.Client = rand.Text() // by which the agent knows what of its input it has
	}
	first, err := frames(agent.AttachTerminal(ctx, id, req))
	if err != nil {
		return nil, err
	}
	joined, pause := time.Now(), time.Duration(0)
	return terminal.NewLasting(ctx, first, req.Offset, func(ctx context.Context, offset uint64) (terminal.Conn, error) {
		// An agent that lets in and cuts off at once is not joined in a loop.
		if pause = min(max(2*pause, reattachFirst), reattachMost); time.Since(joined) > reattachMost {
			pause = 0
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		again := req
		again.Offset = offset
		conn, err := s.reattach(ctx, id, again)
		joined = time.Now()
		return conn, err
	}), nil
}

// reattach joins a terminal as soon as its agent is reached again. It fails when
// the terminal is gone, or the agent was removed.
func (s terminalRoutes) reattach(ctx context.Context, id session.ID, req session.AttachRequest) (terminal.Conn, error) {
	pause := reattachFirst
	for try := 1; ; try++ {
		began := time.Now()
		if _, err := s.hub.AwaitKeeper(ctx, id); err != nil {
			return nil, err
		}
		if time.Since(began) > reattachFirst {
			pause, try = reattachFirst, 1
		}
		agent, id, err := s.hub.Find(ctx, string(id))
		if err == nil {
			var conn terminal.Conn
			if conn, err = frames(agent.AttachTerminal(ctx, id, req)); err == nil {
				return conn, nil
			}
		}
		if keeper, known := s.hub.Keeper(id); known && !keeper.Online {
			try = 0
		}
		if try >= reattachTries || session.CodeOf(err).Detail() != session.DetailUnavailable {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		pause = min(2*pause, reattachMost)
	}
}
