package engine

import (
	"context"

	"slipway/backend/session"
)

// Reservations are containers that run before a session needs them. Their guests wait, and no other method sees them.
type Reservations interface {
	// Reserve makes and starts a container for a session to come, with a small memory limit. [Containers.Create] of a
	// container with the same name takes it if it differs in nothing but CPUs, memory, processes, the guest's
	// configuration, and the labels of grants and name; else it replaces it. Fails with engine_create_unsupported
	// where no container can wait, for one with devices, and for one of a cluster.
	Reserve(ctx context.Context, c Container) error
	// Release removes a container that waits. One that was taken or removed is no error.
	Release(ctx context.Context, name string) error
}

// NoReservations are the [Reservations] of an engine in which no container waits.
type NoReservations struct{}

func (NoReservations) Reserve(context.Context, Container) error {
	return session.NewError(session.CodeEngineUnsupported, "Containers cannot wait for sessions here.", "")
}

func (NoReservations) Release(context.Context, string) error { return nil }
