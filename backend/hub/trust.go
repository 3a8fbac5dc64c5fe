package hub

import (
	"fmt"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/vet"
)

// Untrusted says that an agent sent data that no agent may send: by mistake, or
// because somebody has changed it. The data is not used. It goes when nothing of
// the kind came for ten minutes, or when the agent is reconnected.
type Untrusted struct {
	Error session.Error `json:"error"` // the newest; its message names what was wrong
	Since time.Time     `json:"since"`
	Last  time.Time     `json:"last"`
	Count int           `json:"count"` // how often it happened
}

// How long an agent whose data is refused is left alone, and for how long it must
// send nothing invalid before the warning goes.
const (
	firstDistrust   = 5 * time.Second
	longestDistrust = 5 * time.Minute
	distrustFor     = 10 * time.Minute
)

// Bounds of what the hub keeps of one agent on another machine.
const (
	mostKept = vet.MostSessions // sessions
	mostBulk = 256 << 20        // bytes of their commands and variables
)

// distrust notes that an agent sent what it may not. An agent in this process is
// part of this program.
func (st *state) distrust(m *member, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.suspect(m, session.AsError(err, session.CodeAgentReply))
}

// suspect needs mu.
func (st *state) suspect(m *member, e *session.Error) {
	if m.remote == nil || m.gone {
		return
	}
	now := st.now()
	first := m.distrust == nil
	if first {
		m.distrust = &Untrusted{Since: now}
		st.log.Warn("an agent is not trusted", "agent", m.Name(), "error", e)
	}
	noted := *m.distrust // views of it are read without mu
	noted.Error, noted.Last = *e, now
	noted.Count++
	m.distrust = &noted
	if first {
		st.publishAgent(m)
		return
	}
	st.stream.link(m)
}

// claims needs mu: whether an agent may tell of a session. One that is another
// agent's stays that agent's, except that nobody takes the place of an agent in
// this process.
func (st *state) claims(m *member, id session.ID) bool {
	home := st.homes[id]
	switch {
	case home == nil || home == m || home.remote == nil && m.remote == nil:
		return true
	case m.remote == nil:
		st.suspect(home, foreign(home, "session", string(id), m))
		st.drop(id)
		return true
	}
	st.suspect(m, foreign(m, "session", string(id), home))
	return false
}

// claimsFolder needs mu.
func (st *state) claimsFolder(m *member, id session.FolderID) bool {
	home := st.folderHomes[id]
	if home == nil || home == m || m.remote == nil {
		return true
	}
	st.suspect(m, foreign(m, "folder", string(id), home))
	return false
}

// foreign is the fault of an agent that tells of what is another's.
func foreign(m *member, what, id string, home *member) *session.Error {
	return session.NewError(session.CodeAgentReply,
		fmt.Sprintf("The agent %s claims the %s %s, which belongs to %s.", m.Name(), what, id, home.Name()),
		"The claim is ignored. If these are two ways to one machine, remove one of the two; otherwise ask who runs it.")
}

// fits needs mu: whether there is room for one more session of an agent.
func (st *state) fits(m *member, s session.Session) bool {
	k := st.sessions[s.ID]
	kept, bulk := m.kept, m.bulk+bulkOf(s)
	if k != nil {
		kept, bulk = kept-1, bulk-bulkOf(k.session)
	}
	if m.remote == nil || kept < mostKept && bulk <= mostBulk {
		return true
	}
	st.suspect(m, session.NewError(session.CodeAgentReply,
		fmt.Sprintf("The agent %s reports more sessions than Slipway keeps.", m.Name()),
		"Some of its sessions are not shown. If it really has so many, end or remove some."))
	return false
}

// bulkOf is what the largest texts of a session take.
func bulkOf(s session.Session) int {
	bulk := len(s.Spec.Command)
	for i := range s.Spec.Env {
		bulk += len(s.Spec.Env[i].Name) + len(s.Spec.Env[i].Value)
	}
	return bulk
}

// trustAgain needs mu: the warning goes where nothing invalid came for a while.
func (f *follower) trustAgain(m *member, now time.Time) {
	if m.distrust != nil && now.Sub(m.distrust.Last) > distrustFor {
		m.distrust = nil
		f.publishAgent(m)
	}
}

// forgive takes the warning of an agent back, since a person tries it again.
func (f *follower) forgive(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.distrust != nil {
		m.distrust = nil
		f.publishAgent(m)
	}
	pace.Signal(m.again)
}
