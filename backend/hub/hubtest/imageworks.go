package hubtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
)

// works are the pieces of work on images of an agent. They go on until a test
// moves them.
type works struct {
	list []session.ImageWork
}

func (a *Agent) ListImages(context.Context) ([]session.Image, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, a.unavailable()
	}
	return slices.Clone(a.images), nil
}

func (a *Agent) PullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	return a.beginWork(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner})
}

func (a *Agent) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := a.Get(ctx, id)
	if err != nil {
		return session.ImageWork{}, err
	}
	return a.beginWork(session.ImageWork{Kind: session.WorkCommit, Ref: session.CommitRef(s.Owner, req.Name),
		Owner: s.Owner, Session: id})
}

func (a *Agent) beginWork(w session.ImageWork) (session.ImageWork, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return session.ImageWork{}, a.unavailable()
	}
	w.ID, w.State, w.Revision, w.StartedAt = fmt.Sprintf("work-%d", len(a.works.list)+1), session.WorkRunning, 1,
		time.Now()
	a.works.list = append(a.works.list, w)
	a.wake()
	return w, nil
}

// MoveWork changes the newest piece of work on images.
func (a *Agent) MoveWork(change func(*session.ImageWork)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := &a.works.list[len(a.works.list)-1]
	change(last)
	last.Revision++
	a.wake()
}

// Works returns the pieces of work on images, oldest first.
func (a *Agent) Works() []session.ImageWork {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.works.list)
}

func (a *Agent) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	for {
		a.mu.Lock()
		changed, down := a.changed, a.down
		at := slices.IndexFunc(a.works.list, func(w session.ImageWork) bool { return w.ID == id })
		var w session.ImageWork
		if at >= 0 {
			w = a.works.list[at]
		}
		a.mu.Unlock()
		switch {
		case down:
			return w, a.unavailable()
		case at < 0:
			return w, &session.Error{Code: "image_work_not-found", Message: "There is no such work.",
				Hint: "Begin again."}
		case w.Revision > after || w.State != session.WorkRunning:
			return w, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return w, ctx.Err()
		}
	}
}

func (a *Agent) CancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.works.list {
		if w := &a.works.list[i]; w.ID == id {
			w.State, w.Revision = session.WorkCancelled, w.Revision+1
			a.wake()
			return *w, nil
		}
	}
	return session.ImageWork{}, &session.Error{Code: "image_work_not-found", Message: "There is no such work."}
}

func (a *Agent) RemoveImage(_ context.Context, ref string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := slices.IndexFunc(a.images, func(i session.Image) bool { return i.ID == ref || slices.Contains(i.Refs, ref) })
	if at < 0 {
		return &session.Error{Code: "engine_image_not-found", Message: "The image " + ref + " is not on this machine.",
			Hint: "Pull it first."}
	}
	if len(a.images[at].UsedBy) > 0 {
		return &session.Error{Code: "image_remove_conflict", Message: "A session uses the image " + ref + ".",
			Hint: "End it first."}
	}
	a.images = slices.Delete(slices.Clone(a.images), at, at+1)
	return nil
}

// ImageDisk implements [session.Images]: no image shares anything.
func (a *Agent) ImageDisk(context.Context) (session.ImageDisk, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var disk session.ImageDisk
	for _, i := range a.images {
		disk.Total += i.Size
		disk.Images = append(disk.Images, session.ImageRoom{Image: i, Alone: i.Size})
	}
	return disk, nil
}
