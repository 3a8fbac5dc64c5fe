package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
)

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

// commitKept makes an image of the container that an ended session has kept, and then removes the container.
func (m *Images) commitKept(ctx context.Context, one *job, s session.Session, origin session.ImageOrigin) error {
	if origin.Name == s.EndImage.Name {
		origin.Series = s.Name
	}
	err := m.commitAndRecord(ctx, one, s, origin)
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
