package hub

import (
	"slices"

	"slipway/backend/session"
)

// dependents knows for each session those that wait for it to end in success.
// It is guarded by shared.mu.
type dependents map[session.ID][]session.ID

// add notes what s waits for and returns the sessions that were not known to be
// waited for by it.
func (d dependents) add(s session.Session) []session.ID {
	var joined []session.ID
	for _, id := range s.DependsOn {
		if !slices.Contains(d[id], s.ID) {
			d[id] = append(d[id], s.ID)
			joined = append(joined, id)
		}
	}
	return joined
}

// of returns the dependents of a session by their ids.
func (d dependents) of(id session.ID) []session.ID { return slices.Sorted(slices.Values(d[id])) }

// drop forgets a session, as one that waits and as one that is waited for.
func (d dependents) drop(id session.ID) {
	delete(d, id)
	for other, ids := range d {
		if i := slices.Index(ids, id); i >= 0 {
			d[other] = slices.Delete(slices.Clone(ids), i, i+1)
		}
	}
}

// Dependents returns the ids of the sessions that wait for one to end in success.
func (f *finder) Dependents(id session.ID) []session.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dependents(id)
}

// dependents needs mu: those that wait for a session at the same agent, since no
// agent lets a session wait for another's.
func (st *state) dependents(id session.ID) []session.ID {
	return slices.DeleteFunc(st.waiting.of(id), func(waits session.ID) bool { return st.homes[waits] != st.homes[id] })
}
