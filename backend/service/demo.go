package service

import (
	"context"
	"log/slog"

	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/server"
)

// Demo is what a demonstration adds to a control plane.
type Demo interface {
	// Start starts what belongs to it outside the control plane, once the folder is
	// locked.
	Start(ctx context.Context, log *slog.Logger) (stop func() error, err error)
	// Play plays the beginning of the story.
	Play(ctx context.Context, h *hub.Hub, machine *local.Machine) error
	// Continue plays the rest of it until ctx ends.
	Continue(ctx context.Context, machine *local.Machine, log *slog.Logger)
	// Shown is what the user interface shows of it. nudge has every connection
	// looked at.
	Shown(nudge func()) server.Demo
}

// noDemo is the [Demo] of a control plane that is real.
type noDemo struct{}

func (noDemo) Start(context.Context, *slog.Logger) (func() error, error) {
	return func() error { return nil }, nil
}
func (noDemo) Play(context.Context, *hub.Hub, *local.Machine) error   { return nil }
func (noDemo) Continue(context.Context, *local.Machine, *slog.Logger) {}
func (noDemo) Shown(func()) server.Demo                               { return nil }
