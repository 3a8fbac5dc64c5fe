package hub

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"slipway/backend/session"
)

// A session's name is unique among the live sessions of one person. An agent refuses a name that one of its own
// sessions has. The hub refuses one that a session at another agent has, as far as it knows: an agent that is not
// reached counts with its last known sessions.

// nameClaim is a name that is being given to a session at an agent, before the session is known here.
type nameClaim struct {
	person, name string
	member       *member
}

// personAt returns the person of sessions at an agent; empty: the user, whose name there may differ. The caller holds
// mu.
func (st *state) personAt(m *member, owner string) string {
	if owner == cmp.Or(m.machine.Owner, m.entry.Owner, st.owner) {
		return ""
	}
	return owner
}

// taken returns what is wrong with a name for a session at an agent if another agent has it, or nil. The caller holds
// mu.
func (l *launches) taken(m *member, owner, name string) *session.FieldError {
	if name == "" {
		return nil
	}
	if other := l.nameAt(l.personAt(m, owner), name, m); other != nil {
		return new(session.NameTaken(name, other.Name()))
	}
	return nil
}

// nameAt returns an agent other than but where a live session of a person has a name, or gets it now; nil: none has it.
// The caller holds mu.
func (l *launches) nameAt(person, name string, but *member) *member {
	for _, k := range l.sessions {
		if s := k.session; k.member != but && s.Name == name && s.Status.Live() &&
			l.personAt(k.member, s.Owner) == person {
			return k.member
		}
	}
	for _, claim := range l.claimed {
		if claim.member != but && claim.name == name && claim.person == person {
			return claim.member
		}
	}
	return nil
}

// claimName reserves a name for a session at an agent until release is called. It fails with
// session_create_already-exists.
func (l *launches) claimName(m *member, owner, name string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wrong := l.taken(m, owner, name); wrong != nil {
		return nil, session.Refused(session.CodeNameTaken, *wrong)
	}
	claim := &nameClaim{person: l.personAt(m, owner), name: name, member: m}
	l.claimed = append(l.claimed, claim)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.claimed = slices.DeleteFunc(l.claimed, func(c *nameClaim) bool { return c == claim })
	}, nil
}

// Rename renames a live session. It fails like [session.Sessions].Rename, and also if another agent has a live session
// of that name and owner.
func (l *launches) Rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	m, _, err := l.find(ctx, string(id))
	if err != nil {
		return session.Session{}, err
	}
	old, err := m.Agent.Get(ctx, id)
	if err != nil {
		return session.Session{}, err
	}
	release, err := l.claimName(m, old.Owner, name)
	if err != nil {
		return session.Session{}, err
	}
	defer release()
	s, err := m.Agent.Rename(ctx, id, name)
	if err == nil {
		l.learn(m, s)
	}
	return s, err
}

// mostPeople is how many names a hint lists.
const mostPeople = 20

// checkPerson fails if a machine has no person of that name. If its people cannot be listed, its agent decides.
func (l *launches) checkPerson(ctx context.Context, m *member, owner string) error {
	people := l.peopleIn(m)
	if people[owner] {
		return nil
	}
	if admin := m.Agent.Admin; admin != nil {
		ctx, cancel := within(ctx, m)
		defer cancel()
		clients, err := admin.PairedClients(ctx)
		if err != nil {
			return nil
		}
		limits, err := admin.Limits(ctx)
		if err != nil {
			return nil
		}
		for _, client := range clients {
			people[client.Owner] = true
		}
		for limited := range limits {
			people[limited] = true
		}
		delete(people, session.DefaultOwner)
	}
	if people[owner] {
		return nil
	}
	names := slices.Sorted(maps.Keys(people))
	listed := strings.Join(names[:min(len(names), mostPeople)], ", ")
	if more := len(names) - mostPeople; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return wrongField(session.CodeInvalid, "owner", session.KindNotFound,
		fmt.Sprintf("%s has no person named %q.", m.Name(), session.Clip(owner)), "People there: "+listed+".")
}

// peopleIn returns the user's name at an agent and the owners of the sessions that are known of it.
func (l *launches) peopleIn(m *member) map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	people := map[string]bool{cmp.Or(m.machine.Owner, m.entry.Owner, l.owner): true}
	for _, k := range l.sessions {
		if k.member == m && k.session.Owner != "" {
			people[k.session.Owner] = true
		}
	}
	return people
}
