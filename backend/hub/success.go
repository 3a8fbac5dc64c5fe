package hub

import (
	"context"

	"slipway/backend/session"
)

// mostCompared is how many of the newest ended sessions of each agent are searched for a success.
const mostCompared = 1000

// LastSuccess returns a session, and the newest one like it that was launched before it and succeeded; nil if none is
// known. Alike are sessions of one person and one name or, if there is none of the name, one image and command. It
// fails like [Hub.Get].
func (f *finder) LastSuccess(ctx context.Context, ref string) (s session.Session, success *session.Session, err error) {
	home, id, err := f.find(ctx, ref)
	if err == nil {
		s, _, err = f.Get(ctx, string(id))
	}
	if err != nil {
		return s, nil, err
	}
	members := f.list()
	lists, _ := askAll(ctx, members, func(ctx context.Context, m *member) ([]session.Session, error) {
		return f.listOf(ctx, m, session.Filter{Finished: true, Limit: mostCompared})
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	person, named := f.personAt(home, s.Owner), false
	for i, m := range members {
		for _, other := range lists[i] {
			if !other.Succeeded() || !other.CreatedAt.Before(s.CreatedAt) || f.personAt(m, other.Owner) != person {
				continue
			}
			same := other.Name == s.Name
			alike := same || !named && other.Spec.Type == s.Spec.Type && other.Spec.Command == s.Spec.Command &&
				session.SameImage(other.Spec.Image, s.Spec.Image)
			if alike && (success == nil || same && !named || other.CreatedAt.After(success.CreatedAt)) {
				success, named = &other, same
			}
		}
	}
	return s, success, nil
}
