package hubtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
)

type images struct {
	*base
	all   []session.Image // guarded by mu, like the field below
	works []session.ImageWork
}

// SetImages sets what ListImages returns.
func (a *images) SetImages(images ...session.Image) { a.do(func() { a.all = images }) }

// MoveWork changes the newest work on an image.
func (a *images) MoveWork(change func(*session.ImageWork)) {
	a.do(func() {
		last := &a.works[len(a.works)-1]
		change(last)
		last.Revision++
		a.wake()
	})
}

// Works returns all work on images, oldest first.
func (a *images) Works() (all []session.ImageWork) {
	a.do(func() { all = slices.Clone(a.works) })
	return all
}

func (a *images) listImages(context.Context) ([]session.Image, error) {
	return slices.Clone(a.all), nil
}

func (a *images) removeImage(_ context.Context, ref string) error {
	at := slices.IndexFunc(a.all, func(i session.Image) bool { return i.ID == ref || slices.Contains(i.Refs, ref) })
	switch {
	case at < 0:
		return failed(session.CodeNoImage, "The image "+ref+" is not on this machine.")
	case len(a.all[at].UsedBy) > 0:
		return failed(session.CodeImageConflict, "A session uses the image "+ref+".")
	}
	a.all = slices.Delete(slices.Clone(a.all), at, at+1)
	return nil
}

// imageDisk assumes that images share nothing.
func (a *images) imageDisk(context.Context) (disk session.ImageDisk, err error) {
	for _, i := range a.all {
		disk.Total += i.Size
		disk.Images = append(disk.Images, session.ImageRoom{Image: i, Alone: i.Size})
	}
	return disk, nil
}

func (a *images) pullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	return a.beginWork(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner})
}

// beginWork starts work, which a test continues.
func (a *images) beginWork(w session.ImageWork) (session.ImageWork, error) {
	w.ID, w.State, w.Revision, w.StartedAt = fmt.Sprintf("work-%d", len(a.works)+1), session.WorkRunning, 1, time.Now()
	a.works = append(a.works, w)
	a.wake()
	return w, nil
}

// work returns the work with an id, which must exist.
func (a *images) work(id string) *session.ImageWork {
	return &a.works[slices.IndexFunc(a.works, func(w session.ImageWork) bool { return w.ID == id })]
}

func (a *images) awaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	for {
		w := a.work(id)
		if a.down {
			return *w, a.unavailable()
		}
		if w.Revision > after || w.State != session.WorkRunning {
			return *w, nil
		}
		if err := a.wait(ctx, a.changed); err != nil {
			return *w, err
		}
	}
}

func (a *images) cancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	w := a.work(id)
	w.State, w.Revision = session.WorkCancelled, w.Revision+1
	a.wake()
	return *w, nil
}
