package demo

import (
	"cmp"
	"context"
	"fmt"

	"slipway/backend/session"
)

// Launcher takes launches; an agent is one.
type Launcher interface {
	Launch(ctx context.Context, req session.LaunchRequest) (session.Session, error)
}

// Play launches what a story has, one after the other. Each has a key, so that
// nothing is launched again in a demonstration that was kept.
func Play(ctx context.Context, on Launcher, acts []Act) error {
	for i, act := range acts {
		req := session.LaunchRequest{Key: fmt.Sprintf("demo-%d-%s", i, act.Spec.Name), Owner: cmp.Or(act.Owner, Person), Spec: act.Spec}
		if _, err := on.Launch(ctx, req); err != nil {
			return fmt.Errorf("launch %s: %w", act.Spec.Name, err)
		}
	}
	return nil
}
