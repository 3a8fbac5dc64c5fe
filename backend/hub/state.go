package hub

import (
	"cmp"
	"slices"
	"time"

	"slipway/backend/session"
)

// state is what the agents have told: which of them there are, what they keep and
// how it is. Agents and their sessions go together, since one that comes or goes
// changes what is known of the other. Its methods ask no agent.
type state struct {
	*shared

	// mu guards these.
	members     []*member // replaced, never changed, when one comes or goes
	sessions    map[session.ID]*reported
	usage       map[session.ID]session.Usage
	homes       map[session.ID]*member       // which agent keeps a session
	folderHomes map[session.FolderID]*member // which agent keeps a folder, as far as it was asked for
	waiting     dependents
	keys        keyring
}

func newState(common *shared) *state {
	return &state{shared: common, sessions: map[session.ID]*reported{}, usage: map[session.ID]session.Usage{},
		homes: map[session.ID]*member{}, folderHomes: map[session.FolderID]*member{}, waiting: dependents{}}
}

// reported is a session as its agent last reported it.
type reported struct {
	session session.Session
	member  *member
}

// tell needs mu: it publishes a session, and after one that waits for others
// those others, whose dependents it joined.
func (st *state) tell(m *member, s session.Session) {
	if !st.claims(m, s.ID) || !st.fits(m, s) {
		return
	}
	before, was := st.sessions[s.ID]
	if live := was && before.session.Status.Live(); m.remote != nil && live != s.Status.Live() {
		st.stream.link(m) // the number of its live sessions
	}
	st.put(m, s)
	st.publishSession(m, s)
	for _, id := range st.waiting.add(s) {
		if k, ok := st.sessions[id]; ok {
			st.publishSession(k.member, k.session)
		}
	}
}

// put needs mu. The session is the agent's, and there is room for it. Finished
// sessions beyond those of a snapshot are let go; [finder.home] asks the agents
// for one of them.
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
	if len(st.sessions) > session.ResetFinished+finishedSlack {
		st.trim()
	}
}

// trim needs mu.
func (st *state) trim() {
	for i, s := range st.sorted() {
		if i >= session.ResetFinished && !s.Status.Live() {
			st.unlist(s.ID)
			delete(st.homes, s.ID)
			delete(st.waiting, s.ID)
		}
	}
}

// unlist needs mu.
func (st *state) unlist(id session.ID) {
	if k := st.sessions[id]; k != nil {
		k.member.kept--
		k.member.live -= truth(k.session.Status.Live())
		k.member.bulk -= bulkOf(k.session)
		delete(st.sessions, id)
	}
}

// drop needs mu.
func (st *state) drop(id session.ID) {
	st.unlist(id)
	delete(st.usage, id)
	delete(st.homes, id)
	st.waiting.drop(id)
}

// sorted needs mu: what is known, newest first.
func (st *state) sorted() []session.Session {
	all := make([]session.Session, 0, len(st.sessions))
	for _, k := range st.sessions {
		all = append(all, k.session)
	}
	sortNewest(all)
	return all
}

func sortNewest(all []session.Session) {
	slices.SortFunc(all, func(a, b session.Session) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
}

// dependents needs mu: those that wait for a session at the same agent, since no
// agent lets a session wait for another's.
func (st *state) dependents(id session.ID) []session.ID {
	return slices.DeleteFunc(st.waiting.of(id), func(waits session.ID) bool { return st.homes[waits] != st.homes[id] })
}

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

// lost needs mu: what is known of an agent is from now on as old as lastHeard.
func (st *state) lost(m *member) {
	m.online = false
	m.turned()
	st.publishMachine(m)
	st.publishLive(m)
	st.publishAgent(m)
	st.stream.board(m)
}

// publishLive needs mu: it tells of an agent's live sessions again, because
// whether they are known for certain has changed.
func (st *state) publishLive(m *member) {
	if m.remote == nil {
		return
	}
	for _, s := range st.sorted() {
		if st.sessions[s.ID].member == m && s.Status.Live() {
			st.publishSession(m, s)
		}
	}
}

// publishSession needs mu.
func (st *state) publishSession(m *member, s session.Session) {
	view := st.sessionView(s, m.stale())
	view.Usage = nil // it is told by itself
	st.stream.publish(Event{Session: &view})
}

// publishMachine needs mu.
func (st *state) publishMachine(m *member) {
	st.stream.publish(Event{Machine: new(m.view())})
}

// publishAgent needs mu.
func (st *state) publishAgent(m *member) {
	if !m.gone {
		st.stream.publish(Event{Agent: new(st.agentView(m))})
	}
}

// agents needs mu.
func (st *state) agents() []Agent {
	all := make([]Agent, len(st.members))
	for i, m := range st.members {
		all[i] = st.agentView(m)
	}
	return all
}

// boards needs mu: the boards of all agents that have told one.
func (st *state) boards() []Board {
	all := make([]Board, 0, len(st.members))
	for _, m := range st.members {
		if m.board != nil {
			all = append(all, boardView(*m.board, m.Name(), m.online))
		}
	}
	return all
}

// machines needs mu.
func (st *state) machines() []Machine {
	all := make([]Machine, 0, len(st.members))
	for _, m := range st.members {
		all = append(all, m.view())
	}
	return all
}

// stale needs mu: when what is known of an agent was heard, nil while it is
// reached and what is known is how things are.
func (m *member) stale() *time.Time {
	if m.online {
		return nil
	}
	return new(m.lastHeard)
}
