package hub

import (
	"context"
	"sync"
	"time"
)

// answerWithin is how long an agent on another machine may take to answer before
// others are not kept waiting for it. One whose link is known to be down fails
// at once.
const answerWithin = 5 * time.Second

// askAll calls fn for every agent at once and returns when all have answered.
func askAll(ctx context.Context, members []*member, fn func(ctx context.Context, i int, m *member)) {
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() {
			ctx, cancel := within(ctx, m)
			defer cancel()
			fn(ctx, i, m)
		})
	}
	group.Wait()
}

// on returns the agent of that name alone, or all where name is empty;
// agent_find_not-found.
func (st *state) on(name string) ([]*member, error) {
	if name == "" {
		return st.list(), nil
	}
	m, err := st.member(name)
	return []*member{m}, err
}

// within bounds what an agent on another machine is asked.
func within(ctx context.Context, m *member) (context.Context, context.CancelFunc) {
	if m.remote == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, answerWithin)
}
