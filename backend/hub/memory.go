package hub

import (
	"context"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/vet"
)

// memory is what is kept of an agent over restarts, so that one that is not
// reached is still shown, with its age.
type memory struct {
	LastHeard time.Time       `json:"lastHeard"`
	Machine   session.Machine `json:"machine"`
	// the live ones and the newest finished ones, without the values of secret-looking variables
	Sessions []session.Session `json:"sessions"`
}

const (
	memoryKey = "hub.known." // and the entry's id
	// keepEvery is how often what changed is kept.
	keepEvery = 10 * time.Second
	// memoryFinished is how many finished sessions are kept for each agent.
	memoryFinished = 50
)

// recall puts back what was kept of an agent. It is called before the hub is shared.
func (f *follower) recall(m *member) {
	var kept memory
	found, err := f.shelf.Load(memoryKey+m.entry.ID, &kept)
	if err != nil {
		f.log.Warn("what was known of an agent cannot be read", "agent", m.Name(), "error", err)
	}
	if !found || err != nil {
		return
	}
	if err := vet.Check(&kept.Machine); err != nil { // a release kept it that took it as it came
		f.log.Warn("what was known of an agent is left out", "agent", m.Name(), "error", err)
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

// saveMemoriesOften keeps what is known of remote agents every keepEvery, and once more
// when ctx ends.
func (f *follower) saveMemoriesOften(ctx context.Context) {
	for pace.Wall().Pause(ctx, keepEvery) == nil {
		f.saveMemories()
	}
	f.saveMemories()
}

// saveMemories keeps what is known of each remote agent of which anything changed.
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
	finished := 0
	for _, s := range f.sorted() {
		if f.sessions[s.ID].member != m {
			continue
		}
		if !s.Status.Live() {
			if finished++; finished > memoryFinished {
				continue
			}
		}
		s.Spec = s.Spec.Redacted("")
		kept.Sessions = append(kept.Sessions, s)
	}
	id := m.entry.ID
	f.mu.Unlock()
	return f.shelf.Save(memoryKey+id, kept)
}

// forgetMemory needs saving.
func (f *follower) forgetMemory(m *member) error {
	return f.shelf.Save(memoryKey+f.entryOf(m).ID, nil)
}
