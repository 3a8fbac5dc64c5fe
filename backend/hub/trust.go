package hub

import (
	"fmt"
	"time"

	"slipway/backend/session"
	"slipway/backend/vet"
)

// Untrusted says that an agent sent invalid data, by mistake or because somebody has changed it. The data is not used.
// The mark disappears after ten minutes without invalid data, or when the agent is reconnected.
type Untrusted struct {
	Error session.Error `json:"error"` // the latest; its message says what was wrong
	Since time.Time     `json:"since"`
	Last  time.Time     `json:"last"`
	Count int           `json:"count"` // how often it happened
}

const (
	// The pause before an agent is asked again whose data was refused grows from firstDistrust to longestDistrust. An
	// agent is trusted again if it sent nothing invalid for distrustFor.
	firstDistrust   = 5 * time.Second
	longestDistrust = 5 * time.Minute
	distrustFor     = 10 * time.Minute

	// The most that the hub stores of one agent on another machine.
	mostKept = vet.MostSessions // sessions
	mostBulk = 256 << 20        // bytes of their commands and variables
)

// distrust records that an agent sent invalid data. An agent in this process is always trusted.
func (st *state) distrust(m *member, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.suspect(m, session.AsError(err, session.CodeAgentReply))
}

// suspect is called with mu held.
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
	// a new value, because views of the old one are read without mu
	m.distrust = &Untrusted{Error: *e, Since: m.distrust.Since, Last: now, Count: m.distrust.Count + 1}
	if first {
		st.publishAgent(m)
	} else {
		st.stream.link(m)
	}
}

// claims reports whether an agent may report a session. It belongs to the agent that reported it first, but always to
// an agent in this process that has it. The caller holds mu.
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

// claimsFolder reports whether an agent may report a folder. The caller holds mu.
func (st *state) claimsFolder(m *member, id session.FolderID) bool {
	home := st.folderHomes[id]
	if home == nil || home == m || m.remote == nil {
		return true
	}
	st.suspect(m, foreign(m, "folder", string(id), home))
	return false
}

func foreign(m *member, what, id string, home *member) *session.Error {
	return session.NewError(session.CodeAgentReply,
		fmt.Sprintf("The agent %s claims the %s %s, which belongs to %s.", m.Name(), what, id, home.Name()),
		"The claim is ignored. If these are two addresses of one machine, remove one of them. Otherwise ask its admin.")
}

// strange returns the error of a call that an agent answered with what belongs to another.
func strange(m *member, what string) error {
	return session.NewError(session.CodeAgentReply,
		fmt.Sprintf("The agent %s answered with a %s of another agent.", m.Name(), what),
		"Look at the agents: "+m.Name()+" is not to be trusted.")
}

// fits reports whether there is room for a session of an agent. The caller holds mu.
func (st *state) fits(m *member, s session.Session) bool {
	kept, bulk := m.kept, m.bulk+bulkOf(s)
	if k := st.sessions[s.ID]; k != nil {
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

func bulkOf(s session.Session) int {
	bulk := len(s.Spec.Command) + len(s.Spec.Setup)
	for _, variable := range s.Spec.Env {
		bulk += len(variable.Name) + len(variable.Value)
	}
	return bulk
}

// forgive trusts an agent again. The caller holds mu.
func (st *state) forgive(m *member) {
	if m.distrust != nil {
		m.distrust = nil
		st.publishAgent(m)
	}
}
