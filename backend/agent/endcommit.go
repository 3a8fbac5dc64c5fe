package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/gpu"
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

// makeImage makes the image that the session asks for at its end, out of its
// stopped container. Where there can be none, the container is kept: only what
// another try may mend is an error.
func (t *teardown) makeImage(ctx context.Context) error {
	s := t.session
	if !s.EndsInImage() {
		return nil
	}
	err := t.step(ctx, "image", t.agent.limits.Commit, t.commitMain)
	switch {
	case err == nil:
		t.image.State, t.image.Error = session.WorkDone, nil
		// its failure is in the history, and the end goes on
		_ = t.step(ctx, "older-images", t.agent.limits.Remove, t.dropOlder)
		return ctx.Err()
	case ctx.Err() != nil || engine.Unavailable(err):
		return err
	}
	t.keepMain(err)
	return nil
}

// keepMain takes note that no image could be made, and that the container stays
// where there is one.
func (t *teardown) keepMain(err error) {
	main := t.main()
	t.image.State, t.image.Error = session.WorkFailed, session.CauseOf(err, "image_commit_failed")
	t.image.Kept = main != nil && !main.Created
}

// main is the state of the session's first container, nil where it was not found.
func (t *teardown) main() *engine.State {
	for i := range t.states {
		if kernelOf(t.states[i]) == session.MainKernel {
			return &t.states[i]
		}
	}
	return nil
}

// commitMain makes the image, or finds the one that an earlier try has made.
func (t *teardown) commitMain(ctx context.Context) error {
	a, s := t.agent, t.session
	series, err := a.series(ctx, s)
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
		return &session.Error{Code: "image_commit_not-found",
			Message: "The session's container is gone, and what it changed with it.", Hint: "Launch the session again."}
	}
	for number := nextNumber(series); ; number++ {
		origin := session.ImageOrigin{Name: session.SeriesName(s.Name, number), Series: s.Name}
		t.image.Name, t.image.Ref, t.image.State = origin.Name, session.CommitRef(s.Owner, origin.Name),
			session.WorkRunning
		t.storeImage()
		err := a.commit(ctx, s, origin, t.tellSize)
		if session.CodeOf(err) != "image_commit_already-exists" {
			return err
		}
	}
}

// tellSize shows how much is being copied.
func (t *teardown) tellSize(size gpu.Bytes) {
	t.image.Size = size
	t.say(fmt.Sprintf("%s: %s of changes", t.image.Name, size))
	t.storeImage()
}

// storeImage shows how far the image is. What a crash leaves of it is begun anew.
func (t *teardown) storeImage() {
	image := t.image
	_, err := t.agent.records.Change(t.session.ID, func(d *records.Draft) error {
		if d.Status == session.Terminating {
			d.EndImage = &image
		}
		return nil
	})
	if err != nil {
		t.agent.log.Warn("the image that is made at a session's end is not shown", "session", t.session.ID, "err", err)
	}
}

// say puts a message on the step under way.
func (t *teardown) say(message string) {
	t.said = message
	steps := slices.Clone(t.course.currentSteps())
	if len(steps) > 0 {
		steps[len(steps)-1].Message = message
		t.course.setSteps(steps)
	}
}

// concludeImage writes down what became of the image. An end that gave up before
// there was one keeps the container, and one that is forced has none.
func (t *teardown) concludeImage(d *records.Draft, failure error) {
	switch {
	case failure != nil && d.EndsInImage() && t.image.State != session.WorkDone:
		t.image.State, t.image.Kept, t.image.Error = session.WorkFailed, true,
			session.CauseOf(failure, "session_terminate_failed")
	case t.image.State == session.WorkRunning:
		t.image.State = session.WorkCancelled
	}
	if t.image.State != "" {
		image := t.image
		d.EndImage = &image
	}
}

// series are the images that this agent kept of sessions of the same name and
// owner, newest first.
func (a *Agent) series(ctx context.Context, s session.Session) ([]session.Image, error) {
	if err := a.images.settle(ctx, a); err != nil {
		return nil, err
	}
	images, err := a.engine.Images(ctx)
	if err != nil {
		return nil, err
	}
	for i := range images {
		images[i] = a.images.tell(images[i])
	}
	images = slices.DeleteFunc(images, func(i session.Image) bool {
		return i.Origin == nil || i.Origin.Series != s.Name || i.Origin.Owner != s.Owner ||
			i.Origin.Instance != a.store.Instance()
	})
	slices.SortStableFunc(images, func(x, y session.Image) int {
		if order := y.CreatedAt.Compare(x.CreatedAt); order != 0 {
			return order
		}
		return numberOf(y) - numberOf(x) // of the same second
	})
	return images, nil
}

// numberOf is the number at the end of the name of an image of a series.
func numberOf(i session.Image) int {
	var number int
	if _, err := fmt.Sscanf(i.Origin.Name[strings.LastIndexByte(i.Origin.Name, '-')+1:], "%d", &number); err != nil {
		return 0
	}
	return number
}

// nextNumber is above those of all images of the series.
func nextNumber(series []session.Image) int {
	highest := 0
	for _, image := range series {
		highest = max(highest, numberOf(image))
	}
	return highest + 1
}

// dropOlder removes the images of the series beyond the newest that the session
// asks for. What is used stays.
func (t *teardown) dropOlder(ctx context.Context) error {
	series, err := t.agent.series(ctx, t.session)
	if err != nil {
		return err
	}
	var gone, used []string
	var failure error
	for i, image := range series {
		if i < t.session.Spec.CommitOnEnd || image.Origin.Session == t.session.ID {
			continue
		}
		switch err := t.agent.RemoveImage(ctx, image.ID); session.CodeOf(err) {
		case "":
			gone = append(gone, image.Origin.Name)
		case "image_remove_conflict":
			used = append(used, image.Origin.Name)
		case "engine_image_not-found":
		default:
			failure = errors.Join(failure, err)
		}
	}
	var said []string
	if len(gone) > 0 {
		said = append(said, "removed "+strings.Join(gone, ", "))
	}
	if len(used) > 0 {
		said = append(said, "used, so kept: "+strings.Join(used, ", "))
	}
	t.say(strings.Join(said, "; "))
	return failure
}

// commitKept makes an image of the container that an ended session has kept, and
// lets the container go then.
func (a *Agent) commitKept(ctx context.Context, one *imageWork, s session.Session, origin session.ImageOrigin) error {
	if origin.Name == s.EndImage.Name {
		origin.Series = s.Name
	}
	err := a.commitNoted(ctx, one, s, origin)
	if err := a.noteKept(s.ID, origin.Name, one, err); err != nil {
		return err
	}
	_, err = a.dropKept(ctx, s.ID)
	return err
}

// noteKept writes down what became of another try to make the image, and returns
// why it failed.
func (a *Agent) noteKept(id session.ID, name string, one *imageWork, failed error) error {
	_, err := a.records.Change(id, func(d *records.Draft) error {
		if !d.KeepsContainer() {
			return nil
		}
		image := *d.EndImage
		switch {
		case failed == nil:
			image = session.EndImage{State: session.WorkDone, Name: name, Ref: one.Ref, Size: one.Size, Kept: true}
		case session.CodeOf(failed) == "engine_read_not-found":
			image.Kept, image.Error = false, session.CauseOf(failed, "image_commit_failed")
		}
		d.EndImage = &image
		return nil
	})
	return cmp.Or(failed, err)
}

// dropKept removes the container that an ended session has kept.
func (a *Agent) dropKept(ctx context.Context, id session.ID) (session.Session, error) {
	s, err := a.store.Get(id)
	if err != nil || !s.KeepsContainer() {
		return a.dress(s), err
	}
	if err := engine.Within(ctx, a.limits.Remove, "remove",
		func(ctx context.Context) error { return a.engine.Remove(ctx, containerOf(s)) }); err != nil {
		return session.Session{}, a.heed(err)
	}
	return a.records.Change(id, func(d *records.Draft) error {
		if !d.KeepsContainer() {
			return nil
		}
		image := *d.EndImage
		image.Kept = false
		if image.State == session.WorkFailed {
			image.State = session.WorkCancelled
		}
		d.EndImage = &image
		return nil
	})
}
