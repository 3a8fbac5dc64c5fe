package launch

import (
	"context"
	"errors"
	"slices"

	"slipway/backend/engine"
	"slipway/backend/session"
)

// Reservable reports whether a container can wait for a session: devices and homes cannot be added to it later.
func Reservable(s session.Session) bool {
	ofHome := func(m session.FolderMount) bool { return m.Target == session.Home }
	return (s.Spec.Type == session.Interactive || s.Spec.Type == session.Batch) && s.Spec.Cluster <= 1 &&
		!s.Spec.KeepsHome() && !slices.ContainsFunc(s.Folders, ofHome) && !s.Spec.MPS &&
		s.Spec.Accelerator.IsZero() && s.Spec.Slurm == nil
}

// Reserves are the containers that wait for sessions of a runner.
type Reserves struct{ Of *Runner }

// Reserve has a container wait for a session to come, which is not in the records yet: see [engine.Reservations].
func (r Reserves) Reserve(ctx context.Context, s session.Session) error {
	c, err := r.container(s)
	if err != nil {
		return err
	}
	if err := r.Of.networks.create(ctx, s); err != nil {
		return err
	}
	err = engine.Within(ctx, r.Of.config.Limits.Create, "reserve",
		func(ctx context.Context) error { return r.Of.config.Engine.Reserve(ctx, c) })
	if err != nil {
		err = errors.Join(err, r.Of.networks.leave(ctx, c.Network, ""))
	}
	return err
}

// Release removes the container that waits for a session, if no session has taken it.
func (r Reserves) Release(ctx context.Context, s session.Session) error {
	name := r.Of.container(first(s), 0).Name
	return engine.Within(ctx, r.Of.config.Limits.Call, "release", func(ctx context.Context) error {
		if err := r.Of.config.Engine.Release(ctx, name); err != nil {
			return err
		}
		return r.Of.networks.leave(ctx, r.Of.networks.of(s).Name, "")
	})
}

func (r Reserves) container(s session.Session) (engine.Container, error) {
	s = first(s)
	mounts, err := r.Of.config.Folders.Mounts(s)
	if err != nil {
		return engine.Container{}, err
	}
	c := r.Of.container(s, 0)
	c.Mounts, c.Hidden = mounts.List, mounts.Hidden
	return c, nil
}

// first returns a session as its first placement will make it.
func first(s session.Session) session.Session {
	s.Attempt = 0
	return placed(s)
}
