package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"slipway/backend/session"
)

// AgentUpdate changes how an agent is known here; a nil field is left as it is.
type AgentUpdate struct{ Name, Group *string }

// UpdateAgent renames an agent or puts it into another resource group:
// agent_update_invalid, agent_update_already-exists, agent_update_conflict.
func (h *Hub) UpdateAgent(name string, update AgentUpdate) (Agent, error) {
	m, err := h.state.member(name)
	if err != nil {
		return Agent{}, err
	}
	if err := h.checkUpdate(m, update); err != nil {
		return Agent{}, err
	}
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	changed := m.entry
	h.mu.Unlock()
	before := changed.Name
	if update.Name != nil {
		changed.Name = *update.Name
	}
	if update.Group != nil {
		changed.Group = *update.Group
	}
	if err := h.keepEntry(m, changed); err != nil {
		return Agent{}, err
	}
	if changed.Name != before {
		h.person.renameRecents(before, changed.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.entry = changed
	if changed.Name == before {
		h.state.publishAgent(m)
		return h.state.agentView(m, h.state.live(m)), nil
	}
	m.called.Store(&changed.Name)
	m.dirty = true
	for _, k := range h.state.sessions {
		if k.member == m {
			k.session.Agent = changed.Name
		}
	}
	h.stream.forget()
	return h.state.agentView(m, h.state.live(m)), nil
}

func (h *Hub) checkUpdate(m *member, update AgentUpdate) error {
	if update.Name == nil && update.Group == nil {
		return &session.Error{Code: "agent_update_invalid", Message: "Nothing is to be changed.",
			Hint: "Send a name, a group, or both."}
	}
	if update.Name != nil {
		if err := checkWord("name", *update.Name, "agent_update_invalid"); err != nil {
			return err
		}
		if m.remote == nil && *update.Name != m.Name() {
			return &session.Error{Code: "agent_update_conflict",
				Message: fmt.Sprintf("The agent of this computer is always called %s.", m.Name()),
				Hint:    "Only its resource group can be chosen."}
		}
		for _, other := range h.state.list() {
			if other != m && other.Name() == *update.Name {
				return taken(*update.Name, "agent_update_already-exists")
			}
		}
	}
	if update.Group != nil {
		return checkWord("group", *update.Group, "agent_update_invalid")
	}
	return nil
}

// keepEntry needs saving.
func (h *Hub) keepEntry(m *member, changed Entry) error {
	if m.remote == nil {
		groups := map[string]string{}
		if _, err := h.shelf.Load(groupsKey, &groups); err != nil {
			groups = map[string]string{}
		}
		groups[changed.Name] = changed.Group
		return h.shelf.Save(groupsKey, groups)
	}
	return h.saveDirectory(func(entries []Entry) []Entry {
		for i := range entries {
			if entries[i].ID == changed.ID {
				entries[i] = changed
			}
		}
		return entries
	})
}

// renameRecents needs saving: what was launched at an agent can be launched
// there again under its new name.
func (ps *person) renameRecents(before, after string) {
	recents := ps.Recents()
	changed := false
	for i := range recents {
		if recents[i].Spec.Agent == before {
			recents[i].Spec.Agent, changed = after, true
		}
	}
	if !changed {
		return
	}
	if err := ps.shelf.Save(recentsKey, recents); err != nil {
		ps.log.Error("the launch history is not saved", "error", err)
		return
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.recents = recents
	told := cloneRecents(recents)
	ps.stream.publish(Event{Recents: &told})
}

// remoteOf returns an agent of another machine; agent_find_not-found or
// agent_update_conflict for the local one.
func (st *state) remoteOf(name string) (*member, Entry, error) {
	m, err := st.member(name)
	if err != nil {
		return nil, Entry{}, err
	}
	if m.remote == nil {
		return nil, Entry{}, &session.Error{Code: "agent_update_conflict",
			Message: fmt.Sprintf("%s is the agent of this computer and belongs to it.", name),
			Hint:    "Choose an agent of another machine."}
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	return m, m.entry, nil
}

// ProbeAgent begins to look at an agent's machine again.
func (h *Hub) ProbeAgent(name string) (Operation, error) {
	return h.about(AgentProbe, name, func(ctx context.Context, work *Work, _ *member, entry Entry) error {
		return h.connector.Probe(ctx, work, entry)
	})
}

// UpgradeAgent begins to bring this version to an agent's machine.
func (h *Hub) UpgradeAgent(name string) (Operation, error) {
	return h.about(AgentUpgrade, name, func(ctx context.Context, work *Work, m *member, entry Entry) error {
		if err := h.connector.Upgrade(ctx, work, entry); err != nil {
			return err
		}
		return m.remote.Reconnect(ctx, work)
	})
}

// ReconnectAgent begins to reach an agent at once. It may ask a person.
func (h *Hub) ReconnectAgent(name string) (Operation, error) {
	return h.about(AgentReconnect, name, func(ctx context.Context, work *Work, m *member, _ Entry) error {
		h.follower.forgive(m)
		return m.remote.Reconnect(ctx, work)
	})
}

// RemoveAgent begins to forget an agent. With uninstall its sessions end and
// its files go first; one that cannot be reached is then not forgotten either.
func (h *Hub) RemoveAgent(name string, uninstall bool) (Operation, error) {
	return h.about(AgentRemove, name, func(ctx context.Context, work *Work, m *member, entry Entry) error {
		if err := h.connector.Remove(ctx, work, entry, uninstall); err != nil {
			return err
		}
		return h.part(m)
	})
}

// about begins an operation with an agent of another machine.
func (h *Hub) about(kind OperationKind, name string,
	do func(context.Context, *Work, *member, Entry) error) (Operation, error) {
	m, entry, err := h.state.remoteOf(name)
	if err != nil {
		return Operation{}, err
	}
	return h.operations.start(kind, name, func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		return do(ctx, work, m, entry)
	})
}

// part takes an agent out of the directory and forgets what was known of it.
func (h *Hub) part(m *member) error {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	id := m.entry.ID
	h.mu.Unlock()
	if err := h.saveDirectory(func(entries []Entry) []Entry {
		return slices.DeleteFunc(entries, func(e Entry) bool { return e.ID == id })
	}); err != nil {
		return err
	}
	h.mu.Lock()
	m.gone, m.online = true, false
	h.state.members = slices.DeleteFunc(slices.Clone(h.state.members), func(other *member) bool { return other == m })
	for id, k := range h.state.sessions {
		if k.member == m {
			h.state.drop(id)
		}
	}
	maps.DeleteFunc(h.state.folders, func(_ session.FolderID, home *member) bool { return home == m })
	for id, home := range h.state.homes {
		if home == m {
			delete(h.state.homes, id)
		}
	}
	delete(h.stream.boards, m)
	delete(h.stream.links, m)
	h.state.keys.forget(m)
	m.turned()
	h.stream.forget()
	stop := m.stop
	h.mu.Unlock()
	if stop != nil {
		stop()
		m.done.Wait()
	}
	return h.follower.forgetMemory(m)
}

// AnswerAgent answers the question of an agent that shows another key than
// before. found must be what the question named.
func (h *Hub) AnswerAgent(ctx context.Context, name string, accept bool, found string) (Agent, error) {
	m, _, err := h.state.remoteOf(name)
	if err != nil {
		return Agent{}, err
	}
	pinned, err := m.remote.Answer(ctx, accept, found)
	if err != nil {
		return Agent{}, err
	}
	if accept {
		if err := h.pin(m, pinned); err != nil {
			return Agent{}, err
		}
	}
	return h.Agent(m.Name())
}

// pin remembers the key of an agent.
func (h *Hub) pin(m *member, fingerprint string) error {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	changed := m.entry
	h.mu.Unlock()
	if changed.Fingerprint == fingerprint {
		return nil
	}
	changed.Fingerprint = fingerprint
	if err := h.keepEntry(m, changed); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	m.entry = changed
	h.state.publishAgent(m)
	return nil
}
