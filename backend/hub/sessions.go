package hub

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
)

type finder struct{ *state }

// Find returns the agent and the id of a session. Ref is an id, or the name of a live session, the user's own before
// those of others. It fails with session_read_not-found, or with session_read_ambiguous if several have that name.
func (f *finder) Find(ctx context.Context, ref string) (session.Agent, session.ID, error) {
	m, id, err := f.find(ctx, ref)
	if err != nil {
		return session.Agent{}, "", err
	}
	return m.Agent, id, nil
}

func (f *finder) find(ctx context.Context, ref string) (*member, session.ID, error) {
	var trouble error
	if session.ValidID(ref) {
		if next := f.successor(session.ID(ref)); next != "" {
			return f.find(ctx, string(next))
		}
		m, err := f.home(ctx, session.ID(ref))
		if m != nil {
			return m, session.ID(ref), nil
		}
		trouble = err
	}
	members := f.list()
	lists, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Session, error) {
		return f.listOf(ctx, m, session.Filter{Live: true})
	})
	var found, own []reported
	f.mu.Lock()
	for i, live := range lists {
		trouble = cmp.Or(errs[i], trouble)
		for _, s := range live {
			if s.Name != ref || f.hidden(s) {
				continue
			}
			found = append(found, reported{s, members[i]})
			if f.personAt(members[i], s.Owner) == "" {
				own = append(own, reported{s, members[i]})
			}
		}
	}
	f.mu.Unlock()
	if len(own) > 0 {
		found = own
	}
	switch {
	case len(found) == 1:
		f.settle(found[0].session.ID, found[0].member)
		return found[0].member, found[0].session.ID, nil
	case len(found) > 1:
		a, b := found[0], found[1]
		return nil, "", session.NewError(session.CodeSessionAmbiguous,
			fmt.Sprintf("%s on %s and %s on %s are both named %q.", a.session.ID, a.member.Name(), b.session.ID,
				b.member.Name(), ref), "Use the ID: slipway ps shows it.")
	case trouble != nil && len(members) == 1:
		return nil, "", trouble
	}
	return nil, "", session.WrapError(trouble, session.CodeSessionNotFound, fmt.Sprintf("There is no session %q.", ref),
		"List sessions with: slipway ps -a")
}

// successor returns the session that took the place of one that has left its agent, or "".
func (f *finder) successor(id session.ID) session.ID {
	if locked(f.shared, func() bool { return f.homes[id] != nil }) {
		return ""
	}
	return f.next(id)
}

// next returns the session that takes the place of one, or "".
func (f *finder) next(id session.ID) session.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := session.ID("")
	for _, k := range f.successors(id) {
		if next == "" || !k.session.Held {
			next = k.session.ID
		}
	}
	return next
}

// Heir returns the session that continues one that has ended, or that itself.
func (f *finder) Heir(id session.ID) session.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range len(f.sessions) { // an untrusted agent could report a circle
		if k := f.sessions[id]; k != nil && k.session.Status.Live() {
			break
		}
		next := f.successors(id)
		if len(next) == 0 {
			break
		}
		newest := slices.MaxFunc(next, func(a, b *reported) int {
			return a.session.CreatedAt.Compare(b.session.CreatedAt)
		})
		id = newest.session.ID
	}
	return id
}

// Get returns a session by id or live name, and when it was last heard of if its agent is not reached.
func (f *finder) Get(ctx context.Context, ref string) (session.Session, *time.Time, error) {
	s, heard, err := f.get(ctx, ref)
	if session.CodeOf(err) == session.CodeSessionNotFound {
		if next := f.next(session.ID(ref)); next != "" { // it moved meanwhile
			return f.get(ctx, string(next))
		}
	}
	return s, heard, err
}

func (f *finder) get(ctx context.Context, ref string) (session.Session, *time.Time, error) {
	m, id, err := f.find(ctx, ref)
	if err != nil {
		return session.Session{}, nil, err
	}
	ask, cancel := within(ctx, m)
	defer cancel()
	s, err := m.Agent.Get(ask, id)
	if err == nil || !unreached(ask, err) && session.CodeOf(err) != session.CodeAgentReply || ctx.Err() != nil {
		return s, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.sessions[id]
	if !ok || m.remote == nil {
		return session.Session{}, nil, err
	}
	return k.session, new(m.lastHeard), nil
}

// unreached reports whether err says that an agent was not reached or did not answer in time.
func unreached(ctx context.Context, err error) bool {
	return session.CodeOf(err).Detail() == session.DetailUnavailable || ctx.Err() != nil
}

// home returns the agent of an id, or nil if there is none. The error says why that is not certain.
func (f *finder) home(ctx context.Context, id session.ID) (*member, error) {
	f.mu.Lock()
	m := f.homes[id]
	f.mu.Unlock()
	if m != nil {
		return m, nil
	}
	members := f.list()
	_, errs := askAll(ctx, members, func(ctx context.Context, m *member) (session.Session, error) {
		return m.Agent.Get(ctx, id)
	})
	var trouble error
	for i, err := range errs {
		if err == nil && f.settle(id, members[i]) { // this computer's agent comes first
			return members[i], nil
		}
		if err != nil && session.CodeOf(err).Detail() != session.DetailNotFound {
			trouble = err
		}
	}
	return nil, trouble
}

// settle records the agent of a session, and reports whether it may have it.
func (f *finder) settle(id session.ID, m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.gone || !f.claims(m, id) {
		return false
	}
	f.homes[id] = m
	return true
}

// List returns the sessions of one agent, or of all if none is named, newest first. For an agent that is not reached it
// returns what was last known. It fails only if nothing at all is known.
func (f *finder) List(ctx context.Context, agent string, filter session.Filter) ([]session.Session, error) {
	members, err := f.on(agent)
	if err != nil {
		return nil, err
	}
	if len(members) == 1 {
		return f.listOf(ctx, members[0], filter)
	}
	wide := filter
	wide.Offset = 0
	if filter.Limit > 0 {
		wide.Limit = filter.Offset + filter.Limit
	}
	lists, errs := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Session, error) {
		return f.listOf(ctx, m, wide)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for i, err := range errs {
		if err != nil && session.CodeOf(err).Detail() != session.DetailUnavailable && members[i].remote == nil {
			return nil, err
		}
	}
	if !slices.Contains(errs, nil) {
		return nil, firstError(errs)
	}
	all := append([]session.Session{}, slices.Concat(lists...)...)
	sortNewest(all)
	return page(all, filter), nil
}

func (f *finder) listOf(ctx context.Context, m *member, filter session.Filter) ([]session.Session, error) {
	sessions, err := m.Agent.List(ctx, filter)
	if err == nil {
		return f.own(m, sessions), nil
	}
	if !unreached(ctx, err) && session.CodeOf(err) != session.CodeAgentReply {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.lastHeard.IsZero() {
		return nil, err
	}
	remembered := slices.DeleteFunc(f.sessionsOf(m), func(s session.Session) bool {
		return filter.Live && !s.Status.Live() || filter.Finished && s.Status.Live()
	})
	return page(remembered, filter), nil
}

func page(all []session.Session, filter session.Filter) []session.Session {
	all = all[min(max(filter.Offset, 0), len(all)):]
	if filter.Limit > 0 {
		all = all[:min(filter.Limit, len(all))]
	}
	return all
}

// View returns a session as this program reports it, with what its agent does not know.
func (f *finder) View(s session.Session) Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	var at *time.Time
	if m := f.homes[s.ID]; m != nil && m.remote != nil {
		at = m.stale()
	}
	return f.sessionView(s, at)
}

// Keeper returns the agent of a session, and whether it is known.
func (f *finder) Keeper(id session.ID) (Agent, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.homes[id]; m != nil {
		return f.agentView(m), true
	}
	return Agent{}, false
}

// AwaitKeeper waits until the agent of a session is reached. It returns false if that agent is local or unknown.
func (f *finder) AwaitKeeper(ctx context.Context, id session.ID) (bool, error) {
	return f.awaitMember(ctx, true, func() *member { return f.homes[id] })
}

// AwaitKeeperLost waits until the agent of a session is not reached, and is otherwise like AwaitKeeper.
func (f *finder) AwaitKeeperLost(ctx context.Context, id session.ID) (bool, error) {
	return f.awaitMember(ctx, false, func() *member { return f.homes[id] })
}

// Waiting returns the sessions that are PENDING at one agent, or at all if none is named, by agent and in queue order.
func (f *finder) Waiting(ctx context.Context, agent string) ([]session.Session, error) {
	live, err := f.List(ctx, agent, session.Filter{Live: true})
	if err != nil {
		return nil, err
	}
	waiting := slices.DeleteFunc(live, func(s session.Session) bool { return s.Status != session.Pending })
	order := map[string]int{}
	for i, m := range f.list() {
		order[m.Name()] = i
	}
	slices.SortStableFunc(waiting, func(a, b session.Session) int {
		return cmp.Or(cmp.Compare(order[a.Agent], order[b.Agent]), cmp.Compare(position(a), position(b)),
			a.CreatedAt.Compare(b.CreatedAt))
	})
	return waiting, nil
}

// position returns the place of a session in its agent's queue. Sessions without a place come last.
func position(s session.Session) int {
	if s.Wait == nil || s.Wait.Position == 0 {
		return 1 << 30
	}
	return s.Wait.Position
}

func (f *finder) own(m *member, sessions []session.Session) []session.Session {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(sessions, func(s session.Session) bool {
		return m.remote != nil && !f.claims(m, s.ID) || f.hidden(s)
	})
}
