package hub

import (
	"context"
	"time"

	"slipway/backend/session"
	"slipway/backend/vet"
)

// reported is a session as its agent last reported it.
type reported struct {
	session session.Session
	member  *member
}

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
func (h *Hub) recall(m *member) {
	var kept memory
	found, err := h.shelf.Load(memoryKey+m.entry.ID, &kept)
	if err != nil {
		h.log.Warn("what was known of an agent cannot be read", "agent", m.Name(), "error", err)
	}
	if !found || err != nil {
		return
	}
	if err := vet.Check(&kept.Machine); err != nil { // a release kept it that took it as it came
		h.log.Warn("what was known of an agent is left out", "agent", m.Name(), "error", err)
		return
	}
	m.lastHeard, m.machine = kept.LastHeard, kept.Machine
	m.machine.Agent = m.Name()
	for _, s := range kept.Sessions {
		if vet.Check(&s) != nil || h.state.homes[s.ID] != nil {
			continue
		}
		s.Agent = m.Name()
		h.state.remember(m, s)
		h.state.waiting.add(s)
	}
}

// keepMemories keeps what is known of remote agents every keepEvery, and once more
// when ctx ends.
func (h *Hub) keepMemories(ctx context.Context) {
	ticker := time.NewTicker(keepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			h.keepAll()
			return
		case <-ticker.C:
			h.keepAll()
		}
	}
}

// keepAll keeps what is known of each remote agent of which anything changed.
func (h *Hub) keepAll() {
	for _, m := range h.state.list() {
		if err := h.keep(m); err != nil {
			h.log.Error("what is known of an agent is not kept", "agent", m.Name(), "error", err)
		}
	}
}

func (h *Hub) keep(m *member) error {
	h.saving.Lock()
	defer h.saving.Unlock()
	h.mu.Lock()
	if m.remote == nil || !m.dirty || m.gone {
		h.mu.Unlock()
		return nil
	}
	m.dirty = false
	kept := memory{LastHeard: m.lastHeard, Machine: m.machine}
	finished := 0
	for _, s := range h.state.sorted() {
		if h.state.sessions[s.ID].member != m {
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
	h.mu.Unlock()
	return h.shelf.Save(memoryKey+id, kept)
}

// forgetMemory needs saving.
func (h *Hub) forgetMemory(m *member) error {
	h.mu.Lock()
	id := m.entry.ID
	h.mu.Unlock()
	return h.shelf.Save(memoryKey+id, nil)
}
