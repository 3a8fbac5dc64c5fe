package hub

import (
	"cmp"
	"context"
	"slices"

	"slipway/backend/session"
)

// Waiting returns the sessions that are PENDING at one agent, or at all where
// none is named, agent by agent in the order of their turn.
func (f *finder) Waiting(ctx context.Context, agent string) ([]session.Session, error) {
	live, err := f.ListOn(ctx, agent, session.Filter{Live: true})
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

// position is the place of a session in its agent's queue; one that was not
// planned yet comes last.
func position(s session.Session) int {
	if s.Wait == nil || s.Wait.Position == 0 {
		return 1 << 30
	}
	return s.Wait.Position
}
