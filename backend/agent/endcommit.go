package agent

import (
	"context"
	"math"
)

// awaitCommit waits until an image that is being made of the session is whole,
// and gives it up where the end is forced.
func (t *teardown) awaitCommit(ctx context.Context, work string) error {
	if t.session.Forced {
		if _, err := t.agent.CancelImageWork(ctx, work); err != nil {
			return err
		}
	}
	_, err := t.agent.works.await(ctx, work, math.MaxUint64)
	return err
}
