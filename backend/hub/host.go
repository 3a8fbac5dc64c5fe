package hub

import (
	"context"

	"slipway/backend/session"
)

// Doctor probes the machine of an agent; of the local one where none is named.
func (ms *machines) Doctor(ctx context.Context, agent string) ([]session.Check, error) {
	if agent == "" {
		agent = ms.Local()
	}
	m, err := ms.member(agent)
	if err != nil {
		return nil, err
	}
	return m.Agent.Doctor(ctx)
}

// ListDirectories lists the directories in a directory of an agent's machine.
func (ms *machines) ListDirectories(ctx context.Context, agent, path string) (session.DirectoryListing, error) {
	m, err := ms.member(agent)
	if err != nil {
		return session.DirectoryListing{}, err
	}
	return m.Agent.ListDirectories(ctx, path)
}
