package hub

import (
	"cmp"
	"slices"
	"time"

	"slipway/backend/session"
)

// state is what is known of the agents, their sessions and folders. Agents and sessions go together, since one that
// comes or goes changes what is known of the other. Its methods call no agent.
type state struct {
	*shared

	// guarded by mu
	members     []*member // replaced, never changed in place
	sessions    map[session.ID]*reported
	usage       map[session.ID]session.Usage
	homes       map[session.ID]*member       // the agent of each session
	folderHomes map[session.FolderID]*member // the agent of each folder that was asked for
	waiting     dependents
	ends        endBook
	reminders   map[session.ID]bool // sessions whose start the person wants to hear of
	keys        keyring
}

func newState(common *shared) *state {
	return &state{shared: common, sessions: map[session.ID]*reported{}, usage: map[session.ID]session.Usage{},
		homes: map[session.ID]*member{}, folderHomes: map[session.FolderID]*member{}, waiting: dependents{},
		ends: endBook{all: map[session.ID]*ending{}}, reminders: map[session.ID]bool{}}
}

type reported struct {
	session session.Session
	member  *member
}

// tell stores and publishes a session, and the sessions whose dependents it has joined. The caller holds mu.
func (st *state) tell(m *member, s session.Session) {
	if !st.claims(m, s.ID) || !st.fits(m, s) {
		return
	}
	before, was := st.sessions[s.ID]
	if live := was && before.session.Status.Live(); m.remote != nil && live != s.Status.Live() {
		st.stream.link(m) // the number of its live sessions has changed
	}
	st.put(m, s)
	st.publishSession(m, s)
	for _, id := range st.waiting.add(s) {
		if k, ok := st.sessions[id]; ok {
			st.publishSession(k.member, k.session)
		}
	}
}

// put stores a session that the agent may have and that fits. It drops finished sessions beyond those of a snapshot;
// [finder.home] asks the agents for them. The caller holds mu.
func (st *state) put(m *member, s session.Session) {
	st.unlist(s.ID)
	st.sessions[s.ID] = &reported{session: s, member: m}
	m.kept++
	m.live += truth(s.Status.Live())
	m.bulk += bulkOf(s)
	st.homes[s.ID] = m
	if s.Status.Live() {
		return
	}
	delete(st.usage, s.ID)
	st.ends.remove(s.ID)
	if len(st.sessions) > session.ResetFinished+finishedSlack {
		st.trim()
	}
}

// trim is called with mu held.
func (st *state) trim() {
	for i, s := range st.sorted() {
		if i >= session.ResetFinished && !s.Status.Live() {
			st.unlist(s.ID)
			delete(st.homes, s.ID)
			delete(st.waiting, s.ID)
		}
	}
}

// unlist is called with mu held.
func (st *state) unlist(id session.ID) {
	if k := st.sessions[id]; k != nil {
		k.member.kept--
		k.member.live -= truth(k.session.Status.Live())
		k.member.bulk -= bulkOf(k.session)
		delete(st.sessions, id)
	}
}

// drop is called with mu held.
func (st *state) drop(id session.ID) {
	st.unlist(id)
	delete(st.usage, id)
	delete(st.homes, id)
	delete(st.reminders, id)
	st.ends.remove(id)
	st.waiting.drop(id)
}

// sorted returns all known sessions, newest first. The caller holds mu.
func (st *state) sorted() []session.Session {
	all := make([]session.Session, 0, len(st.sessions))
	for _, k := range st.sessions {
		all = append(all, k.session)
	}
	sortNewest(all)
	return all
}

// sessionsOf returns the known sessions of an agent, newest first. The caller holds mu.
func (st *state) sessionsOf(m *member) []session.Session {
	return slices.DeleteFunc(st.sorted(), func(s session.Session) bool { return st.sessions[s.ID].member != m })
}

// newest removes the finished sessions after the first most ones from a list.
func newest(all []session.Session, most int) []session.Session {
	finished := 0
	return slices.DeleteFunc(all, func(s session.Session) bool {
		finished += truth(!s.Status.Live())
		return finished > most && !s.Status.Live()
	})
}

func sortNewest(all []session.Session) {
	slices.SortFunc(all, func(a, b session.Session) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// dependents returns the sessions that wait for a session, at the same agent, since no agent lets a session wait for
// another agent's. The caller holds mu.
func (st *state) dependents(id session.ID) []session.ID {
	return slices.DeleteFunc(st.waiting.of(id), func(waits session.ID) bool { return st.homes[waits] != st.homes[id] })
}

// dependents has for each session those that wait for its success. It is guarded by shared.mu.
type dependents map[session.ID][]session.ID

// add adds what s waits for and returns the sessions for which that is new.
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

// of returns the dependents of a session, sorted by id.
func (d dependents) of(id session.ID) []session.ID { return slices.Sorted(slices.Values(d[id])) }

// drop removes a session, as one that waits and as one that is waited for.
func (d dependents) drop(id session.ID) {
	delete(d, id)
	for other, ids := range d {
		if i := slices.Index(ids, id); i >= 0 {
			d[other] = slices.Delete(slices.Clone(ids), i, i+1)
		}
	}
}

// lost marks what is known of an agent as old. The caller holds mu.
func (st *state) lost(m *member) {
	m.online = false
	m.turned()
	st.publishMachine(m)
	st.publishLive(m)
	st.publishAgent(m)
	st.stream.board(m)
}

// publishLive publishes an agent's live sessions after it was lost or is back. The caller holds mu.
func (st *state) publishLive(m *member) {
	if m.remote == nil {
		return
	}
	for _, s := range st.sessionsOf(m) {
		if s.Status.Live() {
			st.publishSession(m, s)
		}
	}
}

// hidden reports whether a session is only the held copy of one that is known. The caller holds mu.
func (st *state) hidden(s session.Session) bool { return s.Held && st.sessions[s.From] != nil }

// successors returns the sessions that took the place of a session of another agent. Only one of them is ever not held.
// The caller holds mu.
func (st *state) successors(id session.ID) []*reported {
	var found []*reported
	for _, k := range st.sessions {
		if k.session.From == id {
			found = append(found, k)
		}
	}
	return found
}

// publishSession is called with mu held.
func (st *state) publishSession(m *member, s session.Session) {
	if st.hidden(s) {
		return
	}
	view := st.sessionView(s, m.stale())
	view.Usage = nil // published separately
	st.stream.publish(Event{Session: &view})
}

// publishMachine is called with mu held.
func (st *state) publishMachine(m *member) { st.stream.publish(Event{Machine: new(m.view())}) }

// publishAgent is called with mu held.
func (st *state) publishAgent(m *member) {
	if !m.gone {
		st.stream.publish(Event{Agent: new(st.agentView(m))})
	}
}

// boards returns the boards of all agents that have sent one. The caller holds mu.
func (st *state) boards() []Board {
	all := []Board{}
	for _, m := range st.members {
		if m.board != nil {
			all = append(all, boardView(*m.board, m.Name(), m.online))
		}
	}
	return all
}

// stale returns when an agent was last heard, or nil while it is reached. The caller holds mu.
func (m *member) stale() *time.Time {
	if m.online {
		return nil
	}
	return new(m.lastHeard)
}
