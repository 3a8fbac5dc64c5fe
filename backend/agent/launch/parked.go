package launch

import (
	"context"
	"slices"

	"slipway/backend/agent/folders"
	"slipway/backend/agent/records"
	"slipway/backend/session"
	"slipway/gpu"
)

// Parkings end sessions in such a way that they can be continued; see [session.Moves].
type Parkings struct{ Of *Runner }

func (p Parkings) Park(_ context.Context, id session.ID) (session.Session, error) {
	config := &p.Of.config
	s, err := config.Records.Change(id, func(d *records.Draft) error {
		switch {
		case d.Parked:
			return nil
		case !d.Parkable():
			return session.NewError(session.CodeSessionConflict,
				"Only an interactive session that runs, has one kernel and may have mounts can be continued.",
				"Commit it, or terminate it.")
		case config.noImages():
			return session.Refused(session.CodeEngineUnsupported, session.FeatureCommit.Fault("park"))
		}
		if err := park(d); err != nil {
			return err
		}
		return d.AskEnd(session.ReasonUser, false)
	})
	if err == nil {
		p.Of.Interrupt(id)
		config.PlanAgain()
	}
	return s, err
}

// park has a session that begins to end keep its home, and an image made of it.
func park(d *records.Draft) error {
	d.Parked = true
	return folders.KeepHome(d)
}

// noImages reports whether the engine makes no images of sessions.
func (c *Config) noImages() bool {
	return slices.Contains(c.Health.State().Info.Lacks, session.FeatureCommit)
}

// takeHome copies the home out of the container, unless an earlier attempt has removed that.
func (t *teardown) takeHome(ctx context.Context) error {
	if main := t.main(); main == nil || main.Created {
		return nil
	}
	return t.runner.config.Folders.TakeHome(ctx, t.session, func(size gpu.Bytes) { t.say(size.String()) })
}

// commitParked makes the image of a parked session, unless an earlier attempt has made it.
func (t *teardown) commitParked(ctx context.Context) error {
	r, s := t.runner, t.session
	t.image.Name = s.ParkedName()
	t.image.Ref, t.image.State = session.CommitRef(s.Owner, t.image.Name), session.WorkRunning
	if made, err := r.config.Images.Made(ctx, t.image.Ref, s.ID); made || err != nil {
		return err
	}
	if main := t.main(); main == nil || main.Created {
		return goneWithChanges()
	}
	t.storeImage()
	return r.config.Images.Commit(ctx, s, session.ImageOrigin{Name: t.image.Name}, t.tellSize)
}
