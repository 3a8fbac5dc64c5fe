package hub

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"slipway/backend/pace"
	"slipway/backend/session"
)

// AgentUpdate changes how an agent is known here. A nil field is left unchanged.
type AgentUpdate struct {
	Name  *string `json:"name,omitempty"`
	Group *string `json:"group,omitempty"`
}

// UpdateAgent renames or regroups an agent. It fails with agent_call_invalid or agent_call_conflict.
func (d *directory) UpdateAgent(name string, update AgentUpdate) (Agent, error) {
	m, err := d.member(name)
	if err != nil {
		return Agent{}, err
	}
	if err := d.checkUpdate(m, update); err != nil {
		return Agent{}, err
	}
	d.saving.Lock()
	defer d.saving.Unlock()
	changed := d.entryOf(m)
	before := changed.Name
	set(&changed.Name, update.Name)
	set(&changed.Group, update.Group)
	if err := d.saveEntry(m, changed); err != nil {
		return Agent{}, err
	}
	if changed.Name != before {
		d.person.renameAgent(before, changed.Name)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m.entry = changed
	if changed.Name == before {
		d.publishAgent(m)
		return d.agentView(m), nil
	}
	m.called.Store(&changed.Name)
	m.dirty = true
	for _, k := range d.sessions {
		if k.member == m {
			k.session.Agent = changed.Name
		}
	}
	d.stream.forget()
	return d.agentView(m), nil
}

func (d *directory) checkUpdate(m *member, update AgentUpdate) error {
	if update.Name == nil && update.Group == nil {
		return session.NewError(session.CodeAgentInvalid, "Nothing to change.", "Send a name, a group, or both.")
	}
	if update.Name != nil {
		if err := checkWord("name", *update.Name); err != nil {
			return err
		}
		if m.remote == nil && *update.Name != m.Name() {
			return session.NewError(session.CodeAgentConflict,
				fmt.Sprintf("The agent of this computer is always called %s.", m.Name()),
				"Only its resource group can be chosen.")
		}
		if other, err := d.member(*update.Name); err == nil && other != m {
			return taken(*update.Name)
		}
	}
	if update.Group != nil {
		return checkWord("group", *update.Group)
	}
	return nil
}

// saveEntry stores a changed entry. The caller holds saving.
func (d *directory) saveEntry(m *member, changed Entry) error {
	if m.remote == nil {
		groups := map[string]string{}
		if _, err := d.shelf.Load(groupsKey, &groups); err != nil {
			groups = map[string]string{}
		}
		groups[changed.Name] = changed.Group
		return d.shelf.Save(groupsKey, groups)
	}
	return d.saveDirectory(func(entries []Entry) []Entry {
		for i := range entries {
			if entries[i].ID == changed.ID {
				entries[i] = changed
			}
		}
		return entries
	})
}

func (d *directory) ProbeAgent(name string) (Operation, error) {
	return d.about(AgentProbe, name, func(ctx context.Context, work *Work, _ *member, entry Entry) error {
		return d.connector.Probe(ctx, work, entry)
	})
}

func (d *directory) UpgradeAgent(name string) (Operation, error) {
	return d.about(AgentUpgrade, name, func(ctx context.Context, work *Work, m *member, entry Entry) error {
		if err := d.connector.Upgrade(ctx, work, entry); err != nil {
			return err
		}
		return m.remote.Reconnect(ctx, work)
	})
}

// ReconnectAgent starts to reconnect an agent now. It may ask the user.
func (d *directory) ReconnectAgent(name string) (Operation, error) {
	return d.about(AgentReconnect, name, func(ctx context.Context, work *Work, m *member, _ Entry) error {
		d.mu.Lock()
		d.forgive(m) // because a person tries it again
		d.mu.Unlock()
		pace.Signal(m.again)
		return m.remote.Reconnect(ctx, work)
	})
}

// RemoveAgent starts to remove an agent. Uninstall also ends its sessions and removes its files, or fails.
func (d *directory) RemoveAgent(name string, uninstall bool) (Operation, error) {
	return d.about(AgentRemove, name, func(ctx context.Context, work *Work, m *member, entry Entry) error {
		if err := d.connector.Remove(ctx, work, entry, uninstall); err != nil {
			return err
		}
		return d.part(m)
	})
}

func (d *directory) about(kind OperationKind, name string,
	do func(context.Context, *Work, *member, Entry) error) (Operation, error) {
	m, entry, err := d.remoteOf(name)
	if err != nil {
		return Operation{}, err
	}
	return d.operations.start(kind, name, func(ctx context.Context, work *Work) error {
		work.Concerns(m.Name())
		return do(ctx, work, m, entry)
	})
}

// part removes an agent from the directory and forgets what was known of it.
func (d *directory) part(m *member) error {
	d.saving.Lock()
	defer d.saving.Unlock()
	gone := d.entryOf(m).ID
	err := d.saveDirectory(func(entries []Entry) []Entry {
		return slices.DeleteFunc(entries, func(e Entry) bool { return e.ID == gone })
	})
	if err != nil {
		return err
	}
	d.mu.Lock()
	m.gone, m.online = true, false
	d.members = slices.DeleteFunc(slices.Clone(d.members), func(other *member) bool { return other == m })
	for id, k := range d.sessions {
		if k.member == m {
			d.drop(id)
		}
	}
	maps.DeleteFunc(d.folderHomes, func(_ session.FolderID, home *member) bool { return home == m })
	maps.DeleteFunc(d.homes, func(_ session.ID, home *member) bool { return home == m })
	delete(d.stream.boards, m)
	delete(d.stream.links, m)
	d.keys.forget(m)
	m.turned()
	d.stream.forget()
	stop := m.stop
	d.mu.Unlock()
	if stop != nil {
		stop()
		m.done.Wait()
	}
	return d.shelf.Save(memoryKey+gone, nil)
}

// AnswerAgent answers the question of an agent that shows an unexpected key. found is what the question named.
func (d *directory) AnswerAgent(ctx context.Context, name string, accept bool, found string) (Agent, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return Agent{}, err
	}
	pinned, err := m.remote.Answer(ctx, accept, found)
	if err == nil && accept {
		err = d.pin(m, pinned)
	}
	if err != nil {
		return Agent{}, err
	}
	return d.Agent(m.Name())
}

func (d *directory) pin(m *member, fingerprint string) error {
	d.saving.Lock()
	defer d.saving.Unlock()
	changed := d.entryOf(m)
	if changed.Fingerprint == fingerprint {
		return nil
	}
	changed.Fingerprint = fingerprint
	if err := d.saveEntry(m, changed); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m.entry = changed
	d.publishAgent(m)
	return nil
}

// refuseDuplicate fails with agent_call_conflict if an agent other than itself has the instance. itself may be nil.
func (d *directory) refuseDuplicate(itself *member, instance string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, m := range d.members {
		switch {
		case m == itself || instance == "" || m.machine.Instance != instance:
			continue
		case m.remote == nil:
			return session.NewError(session.CodeAgentConflict, "That is the agent of this computer.",
				"It is already here as "+m.Name()+".")
		}
		return session.NewError(session.CodeAgentConflict,
			fmt.Sprintf("That machine is already known: its agent is %s, at %s.", m.Name(), m.entry.Address),
			"Use that one, or remove it first to reach it this way; its sessions keep running. If this machine is a "+
				"copy of that one, uninstall Slipway on the copy.")
	}
	return nil
}

// checkDuplicate asks an agent that was just added for its instance. If another agent has it, both are the same agent
// at two addresses. An agent that does not answer is accepted.
func (d *directory) checkDuplicate(ctx context.Context, m *member) error {
	ctx, cancel := within(ctx, m)
	defer cancel()
	machine, err := m.Agent.Machine(ctx)
	if err != nil {
		return nil
	}
	return d.refuseDuplicate(m, machine.Instance)
}

// Admin returns the operations that only the admins of a remote agent may use.
func (d *directory) Admin(name string) (session.Admin, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return nil, err
	}
	return m.Agent.Admin, nil
}

// PairedClient is a client that is paired with an agent. This marks the computer that asks.
type PairedClient struct {
	session.PairedClient
	This bool
}

func (d *directory) PairedClients(ctx context.Context, name string) ([]PairedClient, error) {
	admin, err := d.Admin(name)
	if err != nil {
		return nil, err
	}
	paired, err := admin.PairedClients(ctx)
	own := d.connector.Key()
	return each(paired, func(c session.PairedClient) PairedClient {
		return PairedClient{c, own != "" && c.Key == own}
	}), err
}

// PairCode creates a code that pairs one client with an agent.
func (d *directory) PairCode(ctx context.Context, name string,
	request session.PairRequest) (session.PairCode, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return session.PairCode{}, err
	}
	if role := request.Role; role != "" && role != session.RoleUser && role != session.RoleAdmin {
		return session.PairCode{}, wrongField(session.CodeAgentInvalid, "role", session.KindInvalid,
			fmt.Sprintf("Unknown role %q.", session.Clip(string(role))), "Use admin or user.")
	}
	if request.Owner != "" && !userRule.MatchString(request.Owner) {
		return session.PairCode{}, wrongOwner(session.CodeAgentInvalid, request.Owner)
	}
	return m.remote.PairCode(ctx, request)
}

// Rotation is the change of a key. The old key has signed the new one, so whoever knew the old one accepts it.
type Rotation struct {
	Before      string   `json:"before"`      // fingerprint of the old key
	Fingerprint string   `json:"fingerprint"` // of the new key
	Told        []string `json:"told"`        // agents that have learned this computer's new key
	Later       []string `json:"later"`       // agents that learn it when they are next reached
}

// RotateAgentKey has an agent change its key. It fails with agent_call_unavailable if it is not reached by ssh.
func (d *directory) RotateAgentKey(ctx context.Context, name string) (Rotation, error) {
	m, _, err := d.remoteOf(name)
	if err != nil {
		return Rotation{}, err
	}
	rotated, err := m.remote.RotateKey(ctx)
	return Rotation{Before: rotated.Before, Fingerprint: rotated.Key}, err
}

// RotateOwnKey changes the key by which agents know this computer.
func (d *directory) RotateOwnKey(ctx context.Context) (Rotation, error) {
	if d.connector == nil {
		return Rotation{}, session.NewError(session.CodeAgentUnavailable,
			"This Slipway reaches no other machines, so it has no key.", "Use the slipway program.")
	}
	rotation, err := d.connector.Rotate(ctx)
	if err != nil {
		return Rotation{}, err
	}
	names := map[string]string{}
	for _, m := range d.list() {
		names[d.entryOf(m).ID] = m.Name()
	}
	for _, list := range [][]string{rotation.Told, rotation.Later} {
		for i, id := range list {
			list[i] = names[id]
		}
		slices.Sort(list)
	}
	return rotation, nil
}
