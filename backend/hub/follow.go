package hub

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/vet"
)

// The pause before a silent agent is asked again grows from firstPause to longestPause.
const (
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// follower takes in the events of the agents while the hub runs.
type follower struct {
	*state
	first []*member     // those of the Config
	heard chan struct{} // closed when each of them has sent its state once

	pinned func() map[session.ID]bool // the sessions of pinned launches

	running func() context.Context // the context of Run; nil before and after it; guarded by mu
}

func newFollower(s *state, members []Member) *follower {
	f := &follower{state: s, heard: make(chan struct{})}
	for _, m := range members {
		f.first = append(f.first, newMember(m.Name, m.Local, m.Agent))
	}
	s.members = append(s.members, f.first...)
	return f
}

func (f *follower) start(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = func() context.Context { return ctx }
	for _, m := range f.members {
		f.begin(m)
	}
}

func (f *follower) wait() {
	f.mu.Lock()
	f.running = nil
	f.mu.Unlock()
	for _, m := range f.list() {
		m.done.Wait()
	}
}

// WaitHeard waits until every agent of the Config has sent its state once, or ctx ends.
func (f *follower) WaitHeard(ctx context.Context) {
	select {
	case <-f.heard:
	case <-ctx.Done():
	}
}

// follow watches one agent until ctx ends, and reconnects as necessary.
func (f *follower) follow(ctx context.Context, m *member) {
	var cursor session.Cursor
	pause, wary, said := firstPause, firstDistrust, false
	for ctx.Err() == nil {
		if !f.linkUp(m) {
			select {
			case <-ctx.Done():
			case <-m.up:
			}
			continue
		}
		select {
		case <-m.up: // known by now
		default:
		}
		err := f.greet(ctx, m, cursor)
		if err == nil {
			err = f.watch(ctx, m, cursor, func(e session.Event) error {
				pause, said = firstPause, false
				cursor = session.Cursor{Epoch: e.Epoch, Seq: e.Seq}
				f.apply(m, e)
				return nil
			})
		}
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, errLinkBack) {
			continue
		}
		if !said {
			said = true
			f.log.Warn("an agent is not reached", "agent", m.Name(), "error", err)
		}
		f.offline(m)
		if session.CodeOf(err) == session.CodeAgentReply {
			wary = f.leaveAlone(ctx, m, wary)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-m.up:
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// errLinkBack says that an agent whose link was down, and is up again, has to be greeted: what was watched may go on
// without an event.
var errLinkBack = errors.New("the link is back")

// watch passes on the events of an agent. It fails with [errLinkBack] if the link comes back while the agent counts as
// lost.
func (f *follower) watch(ctx context.Context, m *member, cursor session.Cursor,
	each func(session.Event) error) error {
	watching, stop := context.WithCancelCause(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		for {
			select {
			case <-watching.Done():
				return
			case <-m.up:
			}
			if !f.isOnline(m) {
				stop(errLinkBack)
			}
		}
	})
	err := m.Agent.Watch(watching, cursor, each)
	if cause := context.Cause(watching); errors.Is(cause, errLinkBack) {
		err = cause
	}
	stop(nil)
	beside.Wait()
	return err
}

func (f *follower) isOnline(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.online
}

// leaveAlone waits before an agent whose data was refused is asked again, and returns the next pause. A new connection
// does not shorten the wait, since the agent decides when it connects.
func (f *follower) leaveAlone(ctx context.Context, m *member, pause time.Duration) time.Duration {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
		return min(2*pause, longestDistrust)
	case <-m.again:
	}
	return firstDistrust
}

// linkUp reports whether calling an agent is useful. An agent on another machine wakes its follower when it is reached.
func (f *follower) linkUp(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return m.remote == nil || m.link.State == LinkConnected || m.link.State == LinkProbing
}

// greet checks whether a lost agent is back. If nothing has changed meanwhile, no event says so.
func (f *follower) greet(ctx context.Context, m *member, cursor session.Cursor) error {
	if m.remote == nil || cursor == (session.Cursor{}) {
		return nil
	}
	limited, cancel := within(ctx, m)
	defer cancel()
	machine, err := m.Agent.Machine(limited)
	if err != nil {
		return err
	}
	f.apply(m, session.Event{Machine: &machine})
	return nil
}

func (f *follower) offline(m *member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.online {
		f.lost(m)
	}
}

func (f *follower) apply(m *member, e session.Event) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.gone {
		return
	}
	m.lastHeard, m.dirty = now, true
	if m.distrust != nil && now.Sub(m.distrust.Last) > distrustFor {
		f.forgive(m)
	}
	cameBack := !m.online
	m.online = true
	if cameBack {
		m.turned()
	}
	switch {
	case e.Reset != nil:
		f.reset(m, *e.Reset)
		return
	case e.Session != nil:
		f.tell(m, *e.Session)
	case e.Removed != nil:
		if f.claims(m, *e.Removed) {
			f.drop(*e.Removed)
			f.stream.publish(Event{Removed: string(*e.Removed)})
			for _, k := range f.successors(*e.Removed) {
				f.publishSession(k.member, k.session)
			}
		}
	case e.Machine != nil:
		m.machine = *e.Machine
		if !cameBack {
			f.publishMachine(m)
		}
	case len(e.Usage) > 0:
		f.sampled(m, e.Usage)
	case e.Devices != nil:
		m.board = e.Devices
		f.stream.board(m)
	}
	if cameBack {
		f.publishMachine(m)
		f.publishAgent(m)
		f.publishLive(m)
		f.stream.board(m)
	}
}

// sampled stores and publishes samples of an agent's own sessions. The caller holds mu.
func (f *follower) sampled(m *member, usage []session.Usage) {
	for _, u := range usage {
		if k := f.sessions[u.Session]; k != nil && k.member == m {
			f.usage[u.Session] = u
			f.stream.sample(u)
		} else {
			f.claims(m, u.Session)
		}
	}
}

// reset replaces what is known of the agent's sessions. Every watcher then takes a snapshot, which is simpler than
// sending the difference. The caller holds mu.
func (f *follower) reset(m *member, r session.Reset) {
	for id, k := range f.sessions {
		if k.member == m {
			delete(f.sessions, id)
			delete(f.usage, id)
		}
	}
	maps.DeleteFunc(f.homes, func(_ session.ID, home *member) bool { return home == m })
	m.kept, m.live, m.bulk = 0, 0, 0
	m.machine, m.board = r.Machine, r.Devices
	for _, s := range r.Sessions {
		if f.claims(m, s.ID) && f.fits(m, s) {
			f.put(m, s)
		}
	}
	f.waiting = dependents{}
	for _, k := range f.sessions {
		f.waiting.add(k.session)
	}
	f.stream.forget()
	pace.Signal(m.pins)
	if !m.told {
		m.told = true
		waiting := slices.ContainsFunc(f.first, func(other *member) bool { return !other.told })
		if !waiting && slices.Contains(f.first, m) {
			close(f.heard)
		}
	}
}

// prefer tells an agent which sessions are of pinned launches, whenever that may have changed. The next change, or the
// next time that the agent is reached, makes up for a failure.
func (f *follower) prefer(ctx context.Context, m *member) {
	knows := map[session.ID]bool{}
	for {
		select {
		case <-m.pins:
		case <-ctx.Done():
			return
		}
		pinned := f.pinnedOn(m)
		for id := range knows {
			knows[id] = pinned[id]
		}
		maps.Copy(knows, pinned)
		for id, on := range knows {
			limited, cancel := within(ctx, m)
			if err := m.Agent.Prefer(limited, id, on); err != nil {
				f.log.Debug("an agent does not know a pinned launch", "agent", m.Name(), "session", id, "error", err)
			}
			cancel()
		}
		maps.DeleteFunc(knows, func(_ session.ID, on bool) bool { return !on })
	}
}

// pinnedOn returns the sessions of pinned launches, without those that another agent is known to have.
func (f *follower) pinnedOn(m *member) map[session.ID]bool {
	pinned := f.pinned()
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(pinned, func(id session.ID, _ bool) bool {
		known := f.sessions[id]
		return known != nil && known.member != m
	})
	return pinned
}

// pinsChanged has all agents be sent what is pinned.
func (f *follower) pinsChanged() {
	for _, m := range f.list() {
		pace.Signal(m.pins)
	}
}

// begin starts to follow an agent if the hub runs. The caller holds mu.
func (f *follower) begin(m *member) {
	if f.running == nil || m.gone {
		return
	}
	ctx, stop := context.WithCancel(f.running())
	m.stop = stop
	m.done.Go(func() { f.follow(ctx, m) })
	m.done.Go(func() { f.prefer(ctx, m) })
	if m.remote == nil {
		return
	}
	m.done.Go(func() { m.remote.Run(ctx) })
	m.done.Go(func() { f.followLink(ctx, m) })
}

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

// linked stores and publishes the state of an agent's link, at once unless only figures changed.
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
		pace.Signal(m.up)
	}
	if (link.State == LinkDown || link.State == LinkOff || link.State == LinkQuestion) && m.online {
		f.lost(m)
	}
	f.publishAgent(m)
}

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
		f.log.Warn("the stored state of an agent is ignored", "agent", m.Name(), "error", err)
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
			f.log.Error("the state of an agent cannot be stored", "agent", m.Name(), "error", err)
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
