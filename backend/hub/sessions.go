package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/backend/vet"
)

// LaunchRequest asks for one session. Key makes it safe to send twice.
type LaunchRequest struct {
	Key  string       `json:"key,omitempty"`
	Spec session.Spec `json:"spec"`
	// Owner is the person for whom it is launched, by somebody who rules the
	// agent; empty: the hub's owner.
	Owner string `json:"owner,omitempty"`
}

// Preview is what the chosen agent says of a launch.
type Preview struct {
	session.Preview
	Agent string
}

// Image is an image with the name of the agent that has it.
type Image struct {
	session.Image
	Agent string `json:"agent"`
}

// Machines returns every agent's machine as last heard of.
func (ms *machines) Machines() []Machine {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return ms.machines()
}

// Usage returns the newest sample of a live session, nil if there is none.
func (f *finder) Usage(id session.ID) *session.Usage {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u, ok := f.usage[id]; ok {
		return &u
	}
	return nil
}

// Launch chooses an agent and launches there, then remembers the spec among
// the recents. A request sent again with its key goes to the agent it went to
// before, which returns the session of the first.
func (l *launches) Launch(ctx context.Context, req LaunchRequest) (session.Session, error) {
	s, err := l.launch(ctx, req)
	if err != nil {
		return session.Session{}, err
	}
	l.addRecent(ctx, req, 1, s)
	return s, nil
}

func (l *launches) launch(ctx context.Context, req LaunchRequest) (session.Session, error) {
	m, err := l.placement.choose(ctx, req)
	if err != nil {
		return session.Session{}, err
	}
	owner, err := l.placement.ownerAt(m, req.Owner)
	if err != nil {
		return session.Session{}, err
	}
	// of another machine its gate says so
	s, err := m.Agent.Launch(ctx, session.LaunchRequest{Key: req.Key, Owner: owner, Spec: req.Spec, ByAdmin: true})
	if err != nil {
		return session.Session{}, err
	}
	if !l.finder.settle(s.ID, m) {
		return session.Session{}, &session.Error{Code: vet.CodeReply,
			Message: fmt.Sprintf("The agent %s answered with a session of another agent.", m.Name()),
			Hint:    "Look at the agents: " + m.Name() + " is not to be trusted."}
	}
	l.learn(m, s)
	return s, nil
}

// ownerAt is the owner of a launch at an agent. Of our own name there the agent
// decides; whoever only uses an agent launches for nobody else.
func (pl *placement) ownerAt(m *member, asked string) (string, error) {
	pl.mu.Lock()
	owner, role := m.machine.Owner, m.machine.Role
	pl.mu.Unlock()
	refused := func(code session.Code, message, hint string) error {
		return &session.Error{Code: code, Message: message, Hint: hint,
			Fields: []session.FieldError{{Field: "owner", Code: code, Message: message, Hint: hint}}}
	}
	switch {
	case asked != "" && !userRule.MatchString(asked):
		return "", refused("session_create_invalid-owner", fmt.Sprintf("%q is not a name for an owner.", clip(asked)),
			"Use letters and digits.")
	case m.remote == nil:
		return cmp.Or(asked, pl.owner), nil
	case asked != "" && asked != owner && role == session.RoleUser:
		return "", refused("session_create_forbidden-owner",
			fmt.Sprintf("You use the agent %s and do not rule it, so you launch there for nobody else.", m.Name()),
			"Choose an agent that you rule, or leave the owner out.")
	}
	return asked, nil
}

// learn notes a session that was just launched at an agent on another machine:
// the way there may break before its event comes.
func (l *launches) learn(m *member, s session.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.remote != nil && !m.gone && l.sessions[s.ID] == nil {
		m.dirty = true
		l.tell(m, s)
	}
}

// finder finds sessions at the agents, and lists them.
type finder struct{ *state }

// Find returns the agent that keeps a session and the session's id. Ref is an
// id, or the name of a live session. It fails with session_read_not-found, or
// with session_read_conflict where agents have live sessions of one name.
func (f *finder) Find(ctx context.Context, ref string) (session.Agent, session.ID, error) {
	m, id, err := f.find(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	return m.Agent, id, nil
}

func (f *finder) find(ctx context.Context, ref string) (*member, session.ID, error) {
	var trouble error
	if session.ValidID(ref) {
		m, err := f.home(ctx, session.ID(ref))
		if m != nil {
			return m, session.ID(ref), nil
		}
		trouble = err
	}
	members := f.list()
	lists := make([][]session.Session, len(members))
	errs := make([]error, len(members))
	askAll(ctx, members, func(ctx context.Context, i int, m *member) {
		lists[i], errs[i] = f.listOf(ctx, m, session.Filter{Live: true})
	})
	var found []*member
	var id session.ID
	for i, live := range lists {
		if errs[i] != nil {
			trouble = errs[i]
		}
		if at := slices.IndexFunc(live, func(s session.Session) bool { return s.Name == ref }); at >= 0 {
			found, id = append(found, members[i]), live[at].ID
		}
	}
	switch {
	case len(found) == 1:
		f.settle(id, found[0])
		return found[0], id, nil
	case len(found) > 1:
		return nil, "", &session.Error{Code: "session_read_conflict",
			Message: fmt.Sprintf("%s and %s both have a session named %q.", found[0].Name(), found[1].Name(), ref),
			Hint:    "Use the id: slipway ps shows it."}
	case trouble != nil && len(members) == 1:
		return nil, "", trouble
	}
	return nil, "", &session.Error{Code: "session_read_not-found", Message: fmt.Sprintf("There is no session %q.", ref),
		Hint: "List sessions with: slipway ps -a", Err: trouble}
}

// Get returns a session by id, or by the name of a live one. Where its agent is
// not reached it is as it was heard last, and the time is when that was.
func (f *finder) Get(ctx context.Context, ref string) (session.Session, *time.Time, error) {
	m, id, err := f.find(ctx, ref)
	if err != nil {
		return session.Session{}, nil, err
	}
	ask, cancel := within(ctx, m)
	defer cancel()
	s, err := m.Agent.Get(ask, id)
	if err == nil || !unreached(ask, err) && session.CodeOf(err) != vet.CodeReply || ctx.Err() != nil {
		return s, nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k, ok := f.sessions[id]
	if !ok || m.remote == nil {
		return session.Session{}, nil, err
	}
	at := m.lastHeard
	return k.session, &at, nil
}

// unreached reports whether err says that an agent was not reached, or did not
// answer in time.
func unreached(ctx context.Context, err error) bool {
	return session.CodeOf(err).Detail() == session.DetailUnavailable || ctx.Err() != nil
}

// home returns the agent of an id, nil if there is none. The error says what
// kept it from being certain.
func (f *finder) home(ctx context.Context, id session.ID) (*member, error) {
	f.mu.Lock()
	m := f.homes[id]
	f.mu.Unlock()
	if m != nil {
		return m, nil
	}
	members := f.list()
	errs := make([]error, len(members))
	askAll(ctx, members, func(ctx context.Context, i int, m *member) { _, errs[i] = m.Agent.Get(ctx, id) })
	var trouble error
	for i, err := range errs {
		if err == nil && f.settle(id, members[i]) { // the agent of this computer is asked first
			return members[i], nil
		}
		if err == nil {
			continue
		}
		if session.CodeOf(err).Detail() != session.DetailNotFound {
			trouble = err
		}
	}
	return nil, trouble
}

// settle notes which agent keeps a session, and reports whether it may be.
func (f *finder) settle(id session.ID, m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.gone || !f.claims(m, id) {
		return false
	}
	f.homes[id] = m
	return true
}

// List returns the sessions of all agents, newest first. An agent that is not
// reached answers with what was last known of it; the error is returned only
// when nothing is known at all.
func (f *finder) List(ctx context.Context, filter session.Filter) ([]session.Session, error) {
	return f.ListOn(ctx, "", filter)
}

// ListOn returns the sessions of one agent, or of all where none is named.
func (f *finder) ListOn(ctx context.Context, agent string, filter session.Filter) ([]session.Session, error) {
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
	lists := make([][]session.Session, len(members))
	errs := make([]error, len(members))
	askAll(ctx, members, func(ctx context.Context, i int, m *member) { lists[i], errs[i] = f.listOf(ctx, m, wide) })
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	all := []session.Session{}
	failed := 0
	for i := range members {
		all = append(all, lists[i]...)
		failed += truth(errs[i] != nil)
		if errs[i] != nil && session.CodeOf(errs[i]).Detail() != session.DetailUnavailable && members[i].remote == nil {
			return nil, errs[i]
		}
	}
	if failed == len(members) {
		return nil, firstError(errs)
	}
	sortNewest(all)
	return page(all, filter), nil
}

func (f *finder) listOf(ctx context.Context, m *member, filter session.Filter) ([]session.Session, error) {
	sessions, err := m.Agent.List(ctx, filter)
	if err == nil {
		return f.own(m, sessions), nil
	}
	if !unreached(ctx, err) && session.CodeOf(err) != vet.CodeReply {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.lastHeard.IsZero() {
		return nil, err
	}
	remembered := slices.DeleteFunc(f.sorted(), func(s session.Session) bool {
		return f.sessions[s.ID].member != m || filter.Live && !s.Status.Live() || filter.Finished && s.Status.Live()
	})
	return page(remembered, filter), nil
}

// Stale says when what is known of a session's agent was heard, nil while that
// agent is reached.
func (f *finder) Stale(id session.ID) *time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m := f.homes[id]; m != nil && m.remote != nil {
		return m.stale()
	}
	return nil
}

func page(all []session.Session, filter session.Filter) []session.Session {
	all = all[min(max(filter.Offset, 0), len(all)):]
	if filter.Limit > 0 && len(all) > filter.Limit {
		all = all[:filter.Limit]
	}
	return all
}

// Images lists what every agent has. An agent that is not reached is left out
// as long as another one answers.
func (im *images) Images(ctx context.Context) ([]Image, error) { return im.ImagesOn(ctx, "") }

// ImagesOn lists what one agent has, or every agent where none is named.
func (im *images) ImagesOn(ctx context.Context, agent string) ([]Image, error) {
	all := []Image{}
	members, err := im.on(agent)
	if err != nil {
		return nil, err
	}
	lists := make([][]session.Image, len(members))
	asked := make([]error, len(members))
	askAll(ctx, members, func(ctx context.Context, i int, m *member) { lists[i], asked[i] = m.Agent.ListImages(ctx) })
	errs := make([]error, 0, len(members))
	for i, m := range members {
		if asked[i] != nil {
			errs = append(errs, asked[i])
		}
		for _, image := range lists[i] {
			all = append(all, Image{Image: image, Agent: m.Name()})
		}
	}
	if len(errs) > 0 && len(errs) == len(members) {
		return nil, errors.Join(errs...)
	}
	return all, nil
}
