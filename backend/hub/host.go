package hub

import (
	"context"

	"slipway/backend/session"
)

// Doctor probes the machine of an agent; of the local one where none is named.
func (h *Hub) Doctor(ctx context.Context, agent string) ([]session.Check, error) {
	if agent == "" {
		agent = h.Local()
	}
	a, err := h.agent(agent)
	if err != nil {
		return nil, err
	}
	return a.Doctor(ctx)
}

// ListDirectories lists the directories in a directory of an agent's machine.
func (h *Hub) ListDirectories(ctx context.Context, agent, path string) (session.DirectoryListing, error) {
	a, err := h.agent(agent)
	if err != nil {
		return session.DirectoryListing{}, err
	}
	return a.ListDirectories(ctx, path)
}

// agent returns the agent of a name; agent_find_not-found.
func (h *Hub) agent(name string) (session.Agent, error) {
	m, err := h.member(name)
	if err != nil {
		return nil, err
	}
	return m.Agent, nil
}
