package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

func (m *Images) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := m.config.Records.Get(id)
	if err != nil {
		return session.ImageWork{}, err
	}
	if slices.Contains(m.config.Health.State().Info.Lacks, session.FeatureCommit) {
		return session.ImageWork{}, session.Refused(session.CodeEngineUnsupported, session.FeatureCommit.Fault("name"))
	}
	if wrong := session.CommitNames.Check(req.Name); wrong != nil {
		return session.ImageWork{}, session.Refused(session.CodeImageInvalid, *wrong)
	}
	if !s.KeepsContainer() && (s.Spec.Type != session.Interactive || s.Status != session.Running) {
		return session.ImageWork{}, session.NewError(session.CodeImageConflict,
			"Only an interactive session that runs is made an image.", "Wait until it runs.")
	}
	ref := session.CommitRef(s.Owner, req.Name)
	if err := m.mayCommit(ctx, ref, req.Name); err != nil {
		return session.ImageWork{}, err
	}
	one, working, err := m.jobs.begin(session.ImageWork{Kind: session.WorkCommit, Ref: ref, Owner: s.Owner,
		Session: id}, func(other session.ImageWork) error {
		switch {
		case other.Kind != session.WorkCommit:
		case other.Session == id:
			return session.NewError(session.CodeImageConflict,
				fmt.Sprintf("The session %s is being made an image already.", s.Name),
				"Wait until that has ended, or cancel it.")
		case other.Ref == ref:
			return nameTaken(req.Name)
		}
		return nil
	})
	if err != nil {
		return session.ImageWork{}, err
	}
	make := m.commitAndRecord
	if s.KeepsContainer() {
		make = m.commitKept
	}
	m.tasks.Go(func() { m.jobs.end(one, make(working, one, s, session.ImageOrigin{Name: req.Name})) })
	return m.jobs.await(working, one.ID, 0)
}

func (m *Images) mayCommit(ctx context.Context, ref, name string) error {
	_, err := m.image(ctx, ref)
	switch {
	case err == nil:
		return nameTaken(name)
	case session.CodeOf(err) == session.CodeNoImage:
		return nil
	}
	return m.config.Health.Heed(err)
}

func nameTaken(name string) error {
	return session.Refused(session.CodeImageExists, session.FieldError{Field: "name", Kind: session.KindDuplicate,
		Message: fmt.Sprintf("There is a customized image named %s already.", name),
		Hint:    "Choose another name, or remove that image."})
}

// commitAndRecord makes an image of a session and adds that to the session's history.
func (m *Images) commitAndRecord(ctx context.Context, one *job, s session.Session, origin session.ImageOrigin) error {
	began := m.config.Clock.Now().UTC()
	if err := m.config.WriteKept(ctx, s.ID); err != nil {
		m.config.Log.Warn("an image lacks what notebooks have printed", "session", s.ID, "error", err)
	}
	err := m.config.Health.Heed(m.Commit(ctx, s, origin, func(size gpu.Bytes) {
		m.jobs.change(one, func(one *job) { one.Size = size })
	}))
	m.noteCommit(s, origin.Name, began, err, one)
	return err
}

// Commit makes an image of the main kernel of a session. tell is called before with the size of what is copied.
func (m *Images) Commit(ctx context.Context, s session.Session, origin session.ImageOrigin,
	tell func(gpu.Bytes)) error {
	return engine.Within(ctx, m.config.Limits.Commit, "commit", func(ctx context.Context) error {
		container := s.Container()
		changed, err := m.config.Engine.Changed(ctx, container)
		if err != nil {
			return err
		}
		tell(changed)
		origin.Owner, origin.Instance = s.Owner, m.config.Records.Instance()
		origin.Session, origin.SessionName, origin.Base = s.ID, s.Name, s.Spec.Image
		if base, err := m.config.Engine.Image(ctx, s.Spec.Image); err == nil {
			if base = m.book.tell(base); base.Origin != nil {
				origin.Base = base.Origin.Base
			}
		}
		return m.commitClaimed(ctx, container, origin)
	})
}

// commitClaimed makes an image and records that. After a crash in between, the claim leads to the image.
func (m *Images) commitClaimed(ctx context.Context, container string, origin session.ImageOrigin) error {
	ref := session.CommitRef(origin.Owner, origin.Name)
	if err := m.config.Records.Update(func(tx *store.Tx) error { return tx.PutImageClaim(ref, origin) }); err != nil {
		return err
	}
	made, err := m.config.Engine.Commit(ctx, container, engine.Commit{Ref: ref, Origin: origin})
	if err == nil {
		return m.book.made(made, ref, origin)
	}
	if session.CodeOf(err) == session.CodeImageExists {
		err = nameTaken(origin.Name)
	}
	return errors.Join(err, m.config.Records.Update(func(tx *store.Tx) error { return tx.DropImageClaim(ref) }))
}

func (m *Images) noteCommit(s session.Session, name string, began time.Time, failed error, one *job) {
	step := session.Step{Step: "commit", Result: session.OutcomeSuccess, Message: name, StartedAt: began,
		EndedAt: new(m.config.Clock.Now().UTC())}
	m.jobs.mu.Lock()
	cancelled := one.dropped || m.jobs.life().Err() != nil
	m.jobs.mu.Unlock()
	switch {
	case failed != nil && cancelled:
		step.Result, step.Message = session.OutcomeStale, "cancelled"
	case failed != nil:
		cause := session.CauseOf(failed, session.CodeOperationFailed)
		step.Result, step.Code, step.Message = session.OutcomeFailure, cause.Code, cause.Message
	}
	_, err := m.config.Records.Change(s.ID, func(d *records.Draft) error {
		return d.PutPhase(session.Phase{Session: d.ID, Phase: session.PhaseCommit, Result: step.Result, From: d.Status,
			To: d.Status, Attempts: 1, Code: step.Code, Message: step.Message, Steps: []session.Step{step},
			CreatedAt: began, UpdatedAt: *step.EndedAt})
	})
	if err != nil {
		m.config.Log.Warn("a commit is missing from the history of its session", "session", s.ID, "err", err)
	}
}

// Made reports whether this agent has made the image of a session that has the name, also before a crash.
func (m *Images) Made(ctx context.Context, ref string, of session.ID) (bool, error) {
	if err := m.book.settle(ctx); err != nil {
		return false, err
	}
	image, err := m.FindImage(ctx, ref)
	if session.CodeOf(err) == session.CodeNoImage {
		return false, nil
	}
	return err == nil && image.Origin != nil && image.Origin.Session == of, err
}

// Series are the images that this agent made at the end of sessions of the same name and owner, newest first.
func (m *Images) Series(ctx context.Context, s session.Session) ([]session.Image, error) {
	if err := m.book.settle(ctx); err != nil {
		return nil, err
	}
	images, err := m.config.Engine.Images(ctx)
	if err != nil {
		return nil, err
	}
	for i := range images {
		images[i] = m.book.tell(images[i])
	}
	images = slices.DeleteFunc(images, func(i session.Image) bool {
		return i.Origin == nil || i.Origin.Series != s.Name || i.Origin.Owner != s.Owner ||
			i.Origin.Instance != m.config.Records.Instance()
	})
	slices.SortStableFunc(images, func(x, y session.Image) int {
		return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), numberOf(y)-numberOf(x)) // the time is in seconds
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

// NextNumber is above the numbers of all images of the series.
func NextNumber(series []session.Image) int {
	highest := 0
	for _, image := range series {
		highest = max(highest, numberOf(image))
	}
	return highest + 1
}

// DropOlder removes unused images of the series beyond the newest that the session keeps, and says which.
func (m *Images) DropOlder(ctx context.Context, s session.Session) (said string, err error) {
	series, err := m.Series(ctx, s)
	if err != nil {
		return "", err
	}
	var gone, used []string
	var failure error
	for i, image := range series {
		if i < s.Spec.CommitOnEnd || image.Origin.Session == s.ID {
			continue
		}
		switch err := m.RemoveImage(ctx, image.ID); session.CodeOf(err) {
		case "":
			gone = append(gone, image.Origin.Name)
		case session.CodeImageConflict:
			used = append(used, image.Origin.Name)
		case session.CodeNoImage:
		default:
			failure = errors.Join(failure, err)
		}
	}
	var parts []string
	if len(gone) > 0 {
		parts = append(parts, "removed "+strings.Join(gone, ", "))
	}
	if len(used) > 0 {
		parts = append(parts, "used, so kept: "+strings.Join(used, ", "))
	}
	return strings.Join(parts, "; "), failure
}

// commitKept makes an image of the container that an ended session has kept, and then removes the container. If it is
// parked, its home is kept first.
func (m *Images) commitKept(ctx context.Context, one *job, s session.Session, origin session.ImageOrigin) error {
	if origin.Name == s.EndImage.Name && !s.Parked {
		origin.Series = s.Name
	}
	var err error
	if s.TakesHome() {
		err = m.config.TakeHome(ctx, s, func(gpu.Bytes) {})
	}
	if err == nil {
		err = m.commitAndRecord(ctx, one, s, origin)
	}
	if err := m.noteKept(s.ID, origin.Name, one, err); err != nil {
		return err
	}
	_, err = m.DropKept(ctx, s.ID)
	return err
}

// noteKept records the result of another attempt to make the image, and returns its failure.
func (m *Images) noteKept(id session.ID, name string, one *job, failed error) error {
	_, err := m.config.Records.Change(id, func(d *records.Draft) error {
		if !d.KeepsContainer() {
			return nil
		}
		image := *d.EndImage
		switch {
		case failed == nil:
			image = session.EndImage{State: session.WorkDone, Name: name, Ref: one.Ref, Size: one.Size, Kept: true}
		case session.CodeOf(failed) == session.CodeNoContainer:
			image.Kept, image.Error = false, session.CauseOf(failed, session.CodeOperationFailed)
		}
		d.EndImage = &image
		return nil
	})
	return cmp.Or(failed, err)
}

// DropKept removes the container that an ended session has kept.
func (m *Images) DropKept(ctx context.Context, id session.ID) (session.Session, error) {
	s, err := m.config.Records.Get(id)
	if err != nil || !s.KeepsContainer() {
		return s, err
	}
	if err := engine.Within(ctx, m.config.Limits.Remove, "remove",
		func(ctx context.Context) error { return m.config.Engine.Remove(ctx, s.Container()) }); err != nil {
		return session.Session{}, m.config.Health.Heed(err)
	}
	return m.config.Records.Change(id, func(d *records.Draft) error {
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
