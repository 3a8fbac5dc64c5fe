package launch

import (
	"context"
	"fmt"
	"slices"

	"slipway/backend/agent/images"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
)

// awaitCommit waits until an image of the session is complete, and cancels it if the end is forced.
func (t *teardown) awaitCommit(ctx context.Context, work string) error {
	if t.session.Forced {
		if _, err := t.runner.config.Images.CancelImageWork(ctx, work); err != nil {
			return err
		}
	}
	return t.runner.config.Images.AwaitEnd(ctx, work)
}

// makeImage makes the image that the session asks for at its end, or keeps the container. A retry may avoid its errors.
// The home of a parked session is kept first.
func (t *teardown) makeImage(ctx context.Context) error {
	s := t.session
	if !s.EndsInImage() {
		return nil
	}
	var err error
	if s.TakesHome() {
		err = t.step(ctx, "home", t.runner.config.Limits.Commit, t.takeHome)
	}
	if err == nil {
		err = t.step(ctx, "image", t.runner.config.Limits.Commit, t.commitMain)
	}
	switch {
	case err == nil:
		t.image.State, t.image.Error = session.WorkDone, nil
		if s.Parked {
			return nil
		}
		// A failure is in the history and does not hold up the end.
		_ = t.step(ctx, "older-images", t.runner.config.Limits.Remove, func(ctx context.Context) error {
			said, err := t.runner.config.Images.DropOlder(ctx, s)
			t.say(said)
			return err
		})
		return ctx.Err()
	case ctx.Err() != nil || engine.Unavailable(err):
		return err
	}
	main := t.main()
	t.image.State, t.image.Error = session.WorkFailed, session.CauseOf(err, session.CodeOperationFailed)
	t.image.Kept = main != nil && !main.Created
	return nil
}

// main is the state of the main kernel's container, nil if it was not found.
func (t *teardown) main() *engine.State {
	i := slices.IndexFunc(t.states, func(state engine.State) bool { return kernelOf(state) == session.MainKernel })
	if i < 0 {
		return nil
	}
	return &t.states[i]
}

// commitMain makes the image, or finds the one that an earlier attempt has made.
func (t *teardown) commitMain(ctx context.Context) error {
	r, s := t.runner, t.session
	if s.Parked {
		return t.commitParked(ctx)
	}
	series, err := r.config.Images.Series(ctx, s)
	if err != nil {
		return err
	}
	for _, image := range series {
		if image.Origin.Session == s.ID {
			t.image.Name, t.image.Ref = image.Origin.Name, session.CommitRef(s.Owner, image.Origin.Name)
			return nil
		}
	}
	if main := t.main(); main == nil || main.Created {
		return goneWithChanges()
	}
	for number := images.NextNumber(series); ; number++ {
		origin := session.ImageOrigin{Name: session.SeriesName(s.Name, number), Series: s.Name}
		t.image.Name, t.image.Ref, t.image.State = origin.Name, session.CommitRef(s.Owner, origin.Name),
			session.WorkRunning
		t.storeImage()
		err := r.config.Images.Commit(ctx, s, origin, t.tellSize)
		if session.CodeOf(err) != session.CodeImageExists {
			return err
		}
	}
}

func goneWithChanges() error {
	return session.NewError(session.CodeNoImage,
		"The session's container no longer exists, and neither do its changes.", "Launch the session again.")
}

func (t *teardown) tellSize(size gpu.Bytes) {
	t.image.Size = size
	t.say(fmt.Sprintf("%s: %s of changes", t.image.Name, size))
	t.storeImage()
}

// storeImage stores the state of the image. After a crash the image is made again.
func (t *teardown) storeImage() {
	_, err := t.runner.config.Records.Change(t.session.ID, func(d *records.Draft) error {
		if d.Status == session.Terminating {
			d.EndImage = new(t.image)
		}
		return nil
	})
	if err != nil {
		t.runner.config.Log.Warn("the image that is made at a session's end is not shown", "session", t.session.ID,
			"err", err)
	}
}

func (t *teardown) say(message string) {
	t.said = message
	steps := slices.Clone(t.course.currentSteps())
	if len(steps) > 0 {
		steps[len(steps)-1].Message = message
		t.course.setSteps(steps)
	}
}

// concludeImage stores what became of the image. A failed end without one keeps the container; a forced end has none.
func (t *teardown) concludeImage(d *records.Draft, failure error) {
	switch {
	case failure != nil && d.EndsInImage() && t.image.State != session.WorkDone:
		t.image.State, t.image.Kept, t.image.Error = session.WorkFailed, true,
			session.CauseOf(failure, session.CodeStepFailed)
	case t.image.State == session.WorkRunning:
		t.image.State = session.WorkCancelled
	}
	if t.image.State != "" {
		d.EndImage = new(t.image)
	}
}
