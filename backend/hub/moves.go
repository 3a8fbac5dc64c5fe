package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/pace"
	"slipway/backend/session"
)

// moves gives waiting sessions to machines that have room for them. A session whose launch named no machine floats: it
// waits at one agent, and moves to another one of its resource group that would start it at once. The others move when
// a person asks for it. The two agents hand the session over as [session.Moves] describes; the hub only asks them to,
// and continues whatever it finds half done, by itself or by another hub.
type moves struct {
	*launches
	*relocations            // of those that run
	turn         sync.Mutex // makes moves one at a time
	next         int        // of the floating sessions, where the next round begins; used by followQueues
}

const (
	moveEvery = 2 * time.Second // how often floating sessions are offered to other machines
	mostAsked = 50              // questions of one round; the next one continues
)

// followQueues moves floating sessions until ctx ends.
func (mv *moves) followQueues(ctx context.Context) {
	for pace.Wall().Pause(ctx, moveEvery) == nil {
		mv.settleHeld(ctx)
		mv.spread(ctx)
	}
}

// spread moves every floating session that another machine would start at once.
func (mv *moves) spread(ctx context.Context) {
	full := map[string]bool{} // machines and requests for which there was no room in this round
	waiting, asked := mv.floating(), 0
	if mv.next >= len(waiting) {
		mv.next = 0
	}
	for _, w := range waiting[mv.next:] {
		if ctx.Err() != nil || asked >= mostAsked {
			return
		}
		mv.next++
		var offers []*offer
		asks, err := json.Marshal([]any{w.session.Spec.Image, w.session.Spec.Resources, w.session.Spec.Accelerator,
			w.session.Spec.Cluster})
		for _, m := range mv.others(w, w.session.Floats.Group) {
			turned := m.Name() + string(asks)
			if err != nil || full[m.Name()] || full[turned] {
				continue
			}
			asked++
			o, err := mv.offerFor(ctx, w, m)
			switch {
			case err != nil:
				full[m.Name()] = true
			case o.startsAtOnce() && o.Image != nil:
				offers = append(offers, o)
			default:
				full[turned] = true
			}
		}
		if len(offers) == 0 {
			continue
		}
		to := best(offers).member
		if _, err := mv.move(ctx, w, to); err != nil {
			mv.log.Warn("a waiting session was not moved", "session", w.session.ID, "from", w.member.Name(), "to",
				to.Name(), "error", err)
		}
	}
}

// floating returns the floating sessions that could start elsewhere, in the order of their turns.
func (mv *moves) floating() []reported {
	mv.mu.Lock()
	defer mv.mu.Unlock()
	if len(mv.members) < 2 {
		return nil
	}
	var waiting []reported
	for _, k := range mv.sessions {
		if k.session.Floats != nil && mv.movable(k) {
			waiting = append(waiting, *k)
		}
	}
	slices.SortFunc(waiting, func(a, b reported) int {
		return cmp.Or(cmp.Compare(b.session.Priority, a.session.Priority),
			a.session.CreatedAt.Compare(b.session.CreatedAt), cmp.Compare(a.session.ID, b.session.ID))
	})
	return waiting
}

// movable reports whether another machine could start a session: it waits for resources, is not about to be terminated,
// is the user's own, and depends on nothing that only its machine has. The caller holds mu.
func (mv *moves) movable(k *reported) bool {
	s := k.session
	if s.Status != session.Pending || s.Held || s.Attempt > 0 || s.Wait == nil || !k.member.online ||
		mv.ends.view(s) != nil ||
		s.Wait.Code == session.CodeWaitStart || s.Wait.Code == session.CodeWaitDependency {
		return false
	}
	return len(s.Spec.Mounts) == 0 && len(s.DependsOn) == 0 && len(mv.waiting.of(s.ID)) == 0 &&
		mv.personAt(k.member, s.Owner) == ""
}

// others returns the other machines of a resource group, or all if it is empty, that may take a session.
func (mv *moves) others(w reported, group string) []*member {
	return mv.without(mv.list(), func(m *member) bool {
		return m == w.member || !m.online || m.distrust != nil || group != "" && m.entry.Group != group
	})
}

// offerFor asks an agent what it would do with a session.
func (mv *moves) offerFor(ctx context.Context, w reported, m *member) (*offer, error) {
	ctx, cancel := within(ctx, m)
	defer cancel()
	spec := elsewhere(w.session)
	spec.Name = "" // which is the session's own
	p, err := m.Agent.Preview(ctx, "", spec, 1)
	if err != nil {
		return nil, err
	}
	return offerOf(m, p), nil
}

// startsAtOnce reports whether the next session of an offer would start at once.
func (o *offer) startsAtOnce() bool { return len(o.Errors) == 0 && o.forecasts[0].Wait == nil }

// elsewhere is the spec of a session for another machine.
func elsewhere(s session.Session) session.Spec {
	spec := s.Spec
	spec.Name, spec.Agent, spec.Group, spec.After, spec.Priority = s.Name, "", "", nil, new(s.Priority)
	return spec
}

// move hands a session over to another agent and returns it as it is there.
func (mv *moves) move(ctx context.Context, w reported, to *member) (session.Session, error) {
	mv.turn.Lock()
	defer mv.turn.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 4*answerWithin)
	defer cancel()
	s, err := w.member.Agent.Get(ctx, w.session.ID) // with the values of its variables
	if err != nil {
		return session.Session{}, err
	}
	confidential, err := mv.secrets.confidential(ctx, s.Spec)
	if err != nil {
		return session.Session{}, err
	}
	held, err := to.Agent.Accept(ctx, session.LaunchRequest{From: s.ID, Key: cmp.Or(s.Key, "move/"+newID()),
		Owner: locked(mv.shared, func() string { return mv.ownName(to) }), Spec: elsewhere(s), Floats: s.Floats,
		Tags: s.Tags, Launch: s.Launch, ByAdmin: true, Confidential: confidential})
	if err != nil {
		return session.Session{}, err
	}
	if !mv.settle(held.ID, to) || held.From != s.ID {
		return session.Session{}, strange(to, "session")
	}
	mv.learn(to, held)
	if locked(mv.shared, func() bool { return mv.reminders[s.ID] }) {
		if err := mv.setReminder(held.ID, true); err != nil {
			mv.log.Error("the reminder of a session that moves is not saved", "session", s.ID, "error", err)
		}
	}
	return mv.finish(ctx, w.member, held, to)
}

// ownName returns the user's name at an agent, empty if that is for the agent to know. The caller holds mu.
func (mv *moves) ownName(m *member) string {
	if m.remote == nil {
		return cmp.Or(m.machine.Owner, mv.owner)
	}
	return ""
}

// finish asks the agent of a session to yield to a held one. Then that one is released, or dropped if the session does
// not wait any more. Whatever else happens, the next round of any hub continues here.
func (mv *moves) finish(ctx context.Context, from *member, held session.Session, to *member) (session.Session, error) {
	err := from.Agent.Yield(ctx, held.From, held.ID)
	after, cancel := afterwards(ctx)
	defer cancel()
	switch session.CodeOf(err) {
	case "":
		if err != nil {
			return session.Session{}, err
		}
	case session.CodeSessionConflict:
		if drop := to.Agent.Yield(after, held.ID, held.From); drop != nil {
			mv.log.Warn("a session that was not moved stays held", "session", held.ID, "agent", to.Name(),
				"error", drop)
		}
		return session.Session{}, err
	default:
		return session.Session{}, err
	}
	s, err := to.Agent.Release(after, held.ID)
	if err != nil {
		return session.Session{}, err
	}
	mv.learn(to, s)
	mv.log.Info("a waiting session was moved", "session", held.From, "to", to.Name(), "as", s.ID)
	mv.follow(held.From, s.ID)
	return s, nil
}

// follow makes the recent launches refer to the session that took the place of another.
func (mv *moves) follow(from, to session.ID) {
	err := mv.person.changeRecents(func(recents []Recent) ([]Recent, error) {
		recents = slices.Clone(recents)
		for i := range recents {
			if recents[i].Session == from {
				recents[i].Session = to
			}
		}
		return recents, nil
	})
	if err != nil {
		mv.log.Error("the launch history is not saved", "error", err)
	}
}

// settleHeld continues moves that were interrupted.
func (mv *moves) settleHeld(ctx context.Context) {
	mv.turn.Lock()
	defer mv.turn.Unlock()
	held := locked(mv.shared, func() (held []reported) {
		for _, k := range mv.sessions {
			if k.session.Held && k.session.Status == session.Pending && k.member.online {
				held = append(held, *k)
			}
		}
		return held
	})
	for _, k := range held {
		for _, m := range mv.without(mv.list(), func(m *member) bool { return m == k.member || !m.online }) {
			limited, cancel := within(ctx, m)
			_, err := mv.finish(limited, m, k.session, k.member)
			cancel()
			if err == nil || session.CodeOf(err) == session.CodeSessionConflict {
				break
			}
		}
	}
}

// MoveOffer is a machine to which a waiting session could be moved.
type MoveOffer struct {
	Agent string        `json:"agent"`
	Wait  *session.Wait `json:"wait,omitempty"` // for what it would wait there; absent: it would start at once
	Pulls bool          `json:"pulls"`          // its image would be pulled first
}

// MoveOffers returns the machines to which a waiting session could be moved. It is empty for a session that cannot be
// moved, such as one that mounts folders of its machine.
func (mv *moves) MoveOffers(ctx context.Context, ref string) ([]MoveOffer, error) {
	w, err := mv.waits(ctx, ref)
	offers := []MoveOffer{}
	if err != nil || !locked(mv.shared, func() bool { return mv.movable(&w) }) {
		return offers, err
	}
	for _, m := range mv.others(w, "") {
		if o, err := mv.offerFor(ctx, w, m); err == nil && len(o.Errors) == 0 {
			offers = append(offers, MoveOffer{Agent: m.Name(), Wait: o.forecasts[0].Wait, Pulls: o.Image == nil})
		}
	}
	return offers, nil
}

// Move moves a waiting session to another machine and returns it as it is there, with its new id.
func (mv *moves) Move(ctx context.Context, ref, agent string) (session.Session, error) {
	to, err := mv.member(agent)
	if err != nil {
		return session.Session{}, err
	}
	w, err := mv.waits(ctx, ref)
	switch {
	case err != nil:
		return session.Session{}, err
	case w.member == to:
		return session.Session{}, session.NewError(session.CodeSessionConflict,
			fmt.Sprintf("%s is on %s already.", w.session.Name, to.Name()), "Choose another machine.")
	case !locked(mv.shared, func() bool { return mv.movable(&w) }):
		return session.Session{}, session.NewError(session.CodeSessionConflict,
			fmt.Sprintf("%s cannot be moved.", w.session.Name),
			"Only your own session can be moved, while it waits for resources, mounts no folder, and neither waits "+
				"for another session nor is waited for.")
	}
	return mv.move(ctx, w, to)
}

// waits returns a session as its agent has it now, and its agent.
func (mv *moves) waits(ctx context.Context, ref string) (reported, error) {
	m, id, err := mv.find(ctx, ref)
	if err != nil {
		return reported{}, err
	}
	s, err := m.Agent.Get(ctx, id)
	return reported{s, m}, err
}
