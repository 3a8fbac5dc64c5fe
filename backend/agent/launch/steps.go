package launch

import (
	"context"
	"errors"

	"slipway/backend/agent/guests"
	"slipway/backend/agent/images"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
)

// findImage looks whether the image is on this machine and may be used.
func (l *launch) findImage(ctx context.Context) error {
	found, err := l.runner.config.Engine.Image(ctx, l.session.Spec.Image)
	if err == nil {
		l.pinned = session.PinImage(l.session.Spec.Image, found)
		err = l.runner.config.Images.MayUse(l.session, found)
	}
	if session.CodeOf(err) == session.CodeNoImage {
		l.missing = true
		return nil
	}
	return err
}

// pullImage pulls the image if it is missing.
func (l *launch) pullImage(ctx context.Context) error {
	if !l.missing {
		return errSkipped
	}
	if err := images.NoRegistry(l.session.Spec.Image); err != nil {
		return err
	}
	s, err := l.change(func(d *records.Draft) error { return d.To(session.Pulling) })
	if err != nil {
		return err
	}
	l.session = s
	err = l.runner.config.Images.Fetch(ctx, s.Spec.Image, l.runner.config.Images.MayLogin(s.Owner, s.ByAdmin),
		func(p session.Pull) { l.runner.showPull(s, &p) })
	l.runner.showPull(s, nil)
	if err != nil {
		return err
	}
	return l.findImage(ctx)
}

// createContainers makes a container for each kernel, one after the other.
// Those with devices are made such that no other agent gives the same.
func (l *launch) createContainers(ctx context.Context) error {
	create := func(ctx context.Context) ([]string, error) {
		err := l.createAll(ctx)
		return l.containers, err
	}
	if len(l.session.Grants.GPUs) > 0 {
		return l.runner.config.Others.Create(ctx, l.session, create)
	}
	_, err := create(ctx)
	return err
}

func (l *launch) createAll(ctx context.Context) error {
	l.containers = nil
	mounts, err := l.runner.config.Folders.Mounts(l.session)
	if err != nil {
		return err
	}
	for number := range l.session.Kernels {
		c := l.runner.container(l.session, number)
		c.Mounts, c.Hidden, c.Guest.Pins = mounts.List, mounts.Hidden, mounts.Pins
		id, err := l.runner.config.Engine.Create(ctx, c)
		if err != nil {
			return ofKernel(err, l.session, number)
		}
		l.containers = append(l.containers, id)
	}
	return nil
}

// startContainers starts the kernels, the main one last, so that the others are
// there when its command begins.
func (l *launch) startContainers(ctx context.Context) error {
	for number := len(l.containers) - 1; number >= 0; number-- {
		if err := l.runner.config.Engine.Start(ctx, l.containers[number]); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

// ofKernel says which kernel of several an error is about.
func ofKernel(err error, s session.Session, number int) error {
	var known *session.Error
	if err == nil || len(s.Kernels) < 2 || !errors.As(err, &known) || engine.Unavailable(err) {
		return err
	}
	named := *known
	named.Message = s.Kernels[number].Name + ": " + named.Message
	return &named
}

func (l *launch) createNetwork(ctx context.Context) error {
	return l.runner.networks.create(ctx, l.session)
}

func (l *launch) undoNetwork(ctx context.Context) error {
	return l.runner.networks.leave(ctx, l.runner.networks.of(l.session).Name, l.session.ID)
}

// removeContainers undoes create: it removes every container of the session.
func (l *launch) removeContainers(ctx context.Context) error {
	states, err := l.runner.config.Engine.List(ctx)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Labels[engine.LabelSession] == string(l.session.ID) {
			err = errors.Join(err, l.runner.config.Engine.Remove(ctx, state.ID))
		}
	}
	return err
}

// greetGuests waits until every guest is set up. A batch command may have ended
// before anybody greeted its guest: it has run all the same.
func (l *launch) greetGuests(ctx context.Context) error {
	links := make([]*guests.Link, len(l.containers))
	for number, id := range l.containers {
		links[number] = l.course.links.Ensure(l.session.Kernels[number].Name, id)
	}
	for number, g := range links {
		if err := l.greetGuest(ctx, number, g); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

func (l *launch) greetGuest(ctx context.Context, number int, g *guests.Link) error {
	err := g.AwaitReady(ctx)
	if err == nil || number > 0 || l.session.Spec.Type != session.Batch ||
		session.CodeOf(err) != session.CodeGuestExited {
		return err
	}
	state, inspectErr := l.runner.config.Engine.Inspect(ctx, l.containers[number])
	if inspectErr == nil && !state.Running && !state.StartedAt.IsZero() && state.Error == "" {
		return nil
	}
	return err
}

func (l *launch) dismissGuests(_ context.Context) error {
	l.course.links.Drop()
	return nil
}
