package hub

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/session"
)

// Member is one agent that the hub is given. Local is set when it rules the
// machine that the hub itself runs on.
type Member struct {
	Name  string
	Local bool
	Agent session.Agent
}

// member is an agent with what was last heard of it. The fields from link on
// are guarded by mu; those of entry that change with it.
type member struct {
	Local  bool
	Agent  session.Agent
	remote Remote // nil: it is in this process
	called atomic.Pointer[string]

	// up holds one token when the agent is reached again, so that nobody waits longer.
	up   chan struct{}
	stop context.CancelFunc // ends its following; nil while the hub does not run
	done sync.WaitGroup     // of its following

	entry     Entry
	link      Link
	machine   session.Machine
	board     *session.DeviceBoard // nil: it told none yet
	online    bool
	changed   chan struct{} // closed and replaced when it is reached otherwise than before, or removed
	told      bool          // its whole state was received at least once by this hub
	lastHeard time.Time
	dirty     bool // what is known has changed since it was kept
	gone      bool // it was removed

	distrust *Distrust     // nil: it sent nothing that it may not send
	again    chan struct{} // holds one token when a person tries it again
	kept     int           // of its sessions among Hub.sessions
	bulk     int           // of their largest texts, in bytes
}

func newMember(name string, local bool, agent session.Agent) *member {
	m := &member{Local: local, Agent: agent, up: make(chan struct{}, 1), changed: make(chan struct{}),
		again: make(chan struct{}, 1), machine: session.Machine{Agent: name}}
	m.entry = Entry{Name: name, Group: DefaultGroup}
	m.called.Store(&name)
	return m
}

// Name is what the agent is called here. It may change at any time.
func (m *member) Name() string { return *m.called.Load() }

// wake has whoever waits for the agent try at once.
func (m *member) wake() {
	select {
	case m.up <- struct{}{}:
	default:
	}
}

// list returns the members as they are now.
func (st *state) list() []*member {
	st.mu.Lock()
	defer st.mu.Unlock()
	return append([]*member(nil), st.members...)
}

// Local returns the name of the agent on this machine, or "" if there is none.
func (st *state) Local() string {
	for _, m := range st.list() {
		if m.Local {
			return m.Name()
		}
	}
	return ""
}

// member returns the agent of a name; agent_find_not-found.
func (st *state) member(name string) (*member, error) {
	for _, m := range st.list() {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, noSuchAgent(name)
}

// begin needs mu: it starts to follow an agent, if the hub runs.
func (f *follower) begin(m *member) {
	if f.running == nil || m.gone {
		return
	}
	ctx, stop := context.WithCancel(f.running())
	m.stop = stop
	m.done.Go(func() { f.follow(ctx, m) })
	if m.remote == nil {
		return
	}
	m.done.Go(func() { m.remote.Run(ctx) })
	m.done.Go(func() { f.followLink(ctx, m) })
}

// followLink takes in how an agent is reached, until ctx ends.
func (f *follower) followLink(ctx context.Context, m *member) {
	for {
		link, changed := m.remote.Link()
		f.linked(m, link)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// linked notes how an agent is reached and tells of it: at once when that is
// something else than before, and with the next flush when only figures moved.
func (f *follower) linked(m *member, link Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := m.link
	m.link = link
	if link.LastHeard.After(m.lastHeard) {
		m.lastHeard = link.LastHeard
	}
	if before.same(link) {
		f.stream.link(m)
		return
	}
	m.turned()
	if link.State == LinkConnected && before.State != LinkConnected {
		m.wake()
	}
	if (link.State == LinkDown || link.State == LinkOff || link.State == LinkQuestion) && m.online {
		f.lost(m)
	}
	f.publishAgent(m)
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
	st.stream.publish(Event{Session: &s, Dependents: st.dependents(s.ID), LastHeard: m.stale()})
}

// stale needs mu: when what is known of an agent was heard, nil while it is
// reached and what is known is how things are.
func (m *member) stale() *time.Time {
	if m.online {
		return nil
	}
	at := m.lastHeard
	return &at
}
