package enginetest

import (
	"context"
	"sync"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/guest/link"
)

// Attended returns an engine whose batch containers have an agent from their start, as they have in a session: the real
// guest holds the command back until somebody listens to its events.
func Attended(t *testing.T, e engine.Engine) engine.Engine {
	a := &attended{Containers: e.Containers, ctx: t.Context(), batch: map[string]bool{}}
	e.Containers = a
	return e
}

type attended struct {
	engine.Containers
	ctx context.Context //nolint:containedctx // the test's

	mu    sync.Mutex // guards batch
	batch map[string]bool
}

func (a *attended) Create(ctx context.Context, c engine.Container) (string, error) {
	id, err := a.Containers.Create(ctx, c)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.batch[id] = c.Guest.Command != ""
	return id, err
}

func (a *attended) Start(ctx context.Context, id string) error {
	err := a.Containers.Start(ctx, id)
	a.mu.Lock()
	attend := a.batch[id] && err == nil
	a.mu.Unlock()
	if attend {
		go a.listen(id)
	}
	return err
}

func (a *attended) listen(id string) {
	conn, err := a.Guest(a.ctx, id)
	if err != nil {
		return // the container has ended, or the test
	}
	client, err := link.Connect(a.ctx, conn)
	if err != nil {
		return
	}
	defer client.Close()                                        //nolint:errcheck // nothing to lose
	client.Events(a.ctx, func(link.Event) error { return nil }) //nolint:errcheck // ends with the container
}
