package queue

import (
	"context"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
)

// Planner decides which sessions start where another scheduler has the resources. What does not depend on them is
// decided before it is asked: start times, dependencies and limits of people.
type Planner interface {
	// Plan declares all sessions that are to start, in the order of their turns, and all live ones that hold resources.
	// The planner asks the other scheduler for those of wanted that it has not asked for, takes back what it has asked
	// for any other session or attempt, and returns one decision for each of wanted. It is called again and again, also
	// with nothing wanted, and after a crash with what it was called with before. No other session is planned meanwhile,
	// so it returns within seconds. After an error, everything stays as it is.
	Plan(ctx context.Context, wanted []Wanted, live []session.Session) (scheduler.Schedule, error)
	// Check returns why the other scheduler would refuse a spec with defaults, and nothing if it does not answer.
	Check(ctx context.Context, spec session.Spec) []session.FieldError
	// Changed receives when Plan would decide otherwise.
	Changed() <-chan struct{}
}

// Wanted is a session that may start now. Its image is on the machine.
type Wanted struct {
	// Session is in the record as PENDING, with the attempt before this one. Attempt is that of the containers.
	Session session.Session
	// Kernels is what the engine will be asked to create, complete but for CPUs, devices, grants and their labels, which
	// are those of the placement.
	Kernels []engine.Container
}
