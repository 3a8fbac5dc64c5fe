package sim

import (
	"context"

	"slipway/backend/engine"
)

func (s *containers) Watch(ctx context.Context, fn func(engine.State)) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	changes := engine.NewChanges()
	s.mu.Lock()
	s.watchers[changes] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.watchers, changes)
		s.mu.Unlock()
	}()
	if err := changes.Follow(ctx, fn); err != nil {
		return cancelled(ctx)
	}
	return closed()
}
