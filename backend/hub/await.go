package hub

import (
	"context"

	"slipway/backend/session"
)

// Keeper returns the agent that keeps a session, and whether it is known.
func (f *finder) Keeper(id session.ID) (Agent, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.homes[id]
	if m == nil {
		return Agent{}, false
	}
	return f.agentView(m, f.live(m)), true
}

// AwaitKeeper waits until the agent that keeps a session is reached. It reports
// false at once where that agent is in this process or not known, so that there
// is nothing to wait for, and fails with ctx's error or when it was removed.
func (f *finder) AwaitKeeper(ctx context.Context, id session.ID) (bool, error) {
	return f.awaitMember(ctx, true, func() *member { return f.homes[id] })
}

// AwaitKeeperLost is AwaitKeeper the other way round: it waits until the agent
// is not reached.
func (f *finder) AwaitKeeperLost(ctx context.Context, id session.ID) (bool, error) {
	return f.awaitMember(ctx, false, func() *member { return f.homes[id] })
}

// awaitMember waits until the agent that find returns, which needs mu, is
// reached, or is not.
func (st *state) awaitMember(ctx context.Context, want bool, find func() *member) (bool, error) {
	for {
		st.mu.Lock()
		m := find()
		if m == nil || m.remote == nil {
			st.mu.Unlock()
			return false, nil
		}
		reached, changed := m.online || m.link.State == LinkConnected, m.changed
		st.mu.Unlock()
		if reached == want {
			return true, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return true, ctx.Err()
		}
	}
}

// turned needs mu: it wakes whoever waits for an agent to be reached or removed.
func (m *member) turned() {
	close(m.changed)
	m.changed = make(chan struct{})
}
