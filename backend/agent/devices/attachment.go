package devices

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/engine"
)

// Attachment knows how the engine hands devices to containers.
type Attachment struct {
	Engine  engine.Host
	Devices *Devices
	Log     *slog.Logger
	Call    time.Duration // limit of a question to the engine

	mu   sync.Mutex // guards last
	last engine.Attachment
}

// Now is how devices are handed to containers, as far as the engine has told.
func (a *Attachment) Now() engine.Attachment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// Ask asks the engine, where there are devices.
func (a *Attachment) Ask(ctx context.Context) error {
	if !a.Devices.Any() {
		return nil
	}
	return engine.Within(ctx, a.Call, "attachment", func(ctx context.Context) error {
		attach, err := a.Engine.Attachment(ctx, false)
		if err != nil {
			if engine.Unavailable(err) {
				return err
			}
			a.Log.Warn("it is not known how devices are handed to containers", "err", err)
			return nil
		}
		a.mu.Lock()
		a.last = attach
		a.mu.Unlock()
		return nil
	})
}
