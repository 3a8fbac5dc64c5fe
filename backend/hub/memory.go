package hub

import (
	"context"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/vet"
)

// memory is what is stored of an agent, so that it is shown, with its age, while it is not reached.
type memory struct {
	LastHeard time.Time       `json:"lastHeard"`
	Machine   session.Machine `json:"machine"`
	// live sessions and the newest finished ones, without the values of secret-looking variables
	Sessions []session.Session `json:"sessions"`
}

const (
	memoryKey      = "hub.known."     // followed by the id of the entry
	keepEvery      = 10 * time.Second // how often changes are stored
	memoryFinished = 50               // finished sessions that are stored for each agent
)

// recall loads what was stored of an agent. It is called before the hub is shared.
func (f *follower) recall(m *member) {
	var kept memory
	found, err := f.shelf.Load(memoryKey+m.entry.ID, &kept)
	if err == nil && found {
		err = vet.Check(&kept.Machine) // an old version may have stored it unchecked
	}
	if err != nil {
		f.log.Warn("what was known of an agent is left out", "agent", m.Name(), "error", err)
	}
	if !found || err != nil {
		return
	}
	m.lastHeard, m.machine = kept.LastHeard, kept.Machine
	m.machine.Agent = m.Name()
	for _, s := range kept.Sessions {
		if vet.Check(&s) != nil || f.homes[s.ID] != nil {
			continue
		}
		s.Agent = m.Name()
		f.put(m, s)
		f.waiting.add(s)
	}
}

// saveMemoriesOften stores what is known of remote agents every keepEvery and when ctx ends.
func (f *follower) saveMemoriesOften(ctx context.Context) {
	for pace.Wall().Pause(ctx, keepEvery) == nil {
		f.saveMemories()
	}
	f.saveMemories()
}

func (f *follower) saveMemories() {
	for _, m := range f.list() {
		if err := f.saveMemory(m); err != nil {
			f.log.Error("what is known of an agent is not kept", "agent", m.Name(), "error", err)
		}
	}
}

func (f *follower) saveMemory(m *member) error {
	f.saving.Lock()
	defer f.saving.Unlock()
	f.mu.Lock()
	if m.remote == nil || !m.dirty || m.gone {
		f.mu.Unlock()
		return nil
	}
	m.dirty = false
	kept := memory{LastHeard: m.lastHeard, Machine: m.machine}
	for _, s := range newest(f.sessionsOf(m), memoryFinished) {
		s.Spec = s.Spec.Redacted("")
		kept.Sessions = append(kept.Sessions, s)
	}
	id := m.entry.ID
	f.mu.Unlock()
	return f.shelf.Save(memoryKey+id, kept)
}
