package hubtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func (a *Agent) devices(context.Context) (session.DeviceBoard, error) {
	if a.board == nil {
		return session.DeviceBoard{Source: "none", Text: "This machine has no devices."}, nil
	}
	return *a.board, nil
}

// deviceHistory has one point a second after since.
func (a *Agent) deviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	board, _ := a.devices(ctx) // it never fails
	for _, d := range board.Devices {
		if d.Device.UUID == device {
			return []session.DevicePoint{{At: since.Add(time.Second), Util: d.Util, MemoryUsed: d.MemoryUsed,
				Power: d.Power, Temperature: d.Temperature}}, nil
		}
	}
	return nil, failed("accelerator_read_not-found", fmt.Sprintf("There is no device %q.", device))
}

func (a *Agent) accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	a.span = span
	return a.rows, nil
}

// doctor finds that everything is well.
func (a *Agent) doctor(ctx context.Context) ([]session.Check, error) {
	if a.Probe != nil {
		a.mu.Unlock()
		err := a.Probe(ctx)
		a.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	return []session.Check{{ID: "engine", Title: "Container engine", Result: session.CheckOK,
		Text: a.Name + " answers."}}, nil
}

// listDirectories knows /data alone.
func (a *Agent) listDirectories(_ context.Context, path string) (session.DirectoryListing, error) {
	switch path {
	case "/":
		return session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{{Name: "data", Writable: true}}},
			nil
	case "", "/data":
		return session.DirectoryListing{Path: "/data", Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	return session.DirectoryListing{}, failed("directory_read_not-found", "There is no directory "+path+".")
}

func (a *Agent) listImages(context.Context) ([]session.Image, error) {
	return slices.Clone(a.images), nil
}

func (a *Agent) removeImage(_ context.Context, ref string) error {
	at := slices.IndexFunc(a.images, func(i session.Image) bool { return i.ID == ref || slices.Contains(i.Refs, ref) })
	switch {
	case at < 0:
		return failed("engine_image_not-found", "The image "+ref+" is not on this machine.")
	case len(a.images[at].UsedBy) > 0:
		return failed("image_remove_conflict", "A session uses the image "+ref+".")
	}
	a.images = slices.Delete(slices.Clone(a.images), at, at+1)
	return nil
}

// imageDisk has images that share nothing.
func (a *Agent) imageDisk(context.Context) (disk session.ImageDisk, err error) {
	for _, i := range a.images {
		disk.Total += i.Size
		disk.Images = append(disk.Images, session.ImageRoom{Image: i, Alone: i.Size})
	}
	return disk, nil
}

func (a *Agent) pullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	return a.beginWork(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner})
}

func (a *Agent) commitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := a.get(ctx, id)
	if err != nil {
		return session.ImageWork{}, err
	}
	return a.beginWork(session.ImageWork{Kind: session.WorkCommit, Ref: session.CommitRef(s.Owner, req.Name),
		Owner: s.Owner, Session: id})
}

// beginWork begins what a test moves.
func (a *Agent) beginWork(w session.ImageWork) (session.ImageWork, error) {
	w.ID, w.State, w.Revision, w.StartedAt = fmt.Sprintf("work-%d", len(a.works)+1), session.WorkRunning, 1, time.Now()
	a.works = append(a.works, w)
	a.wake()
	return w, nil
}

// work is a piece of work.
func (a *Agent) work(id string) (*session.ImageWork, error) {
	for i := range a.works {
		if a.works[i].ID == id {
			return &a.works[i], nil
		}
	}
	return &session.ImageWork{}, failed("image_work_not-found", "There is no such work.")
}

func (a *Agent) awaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	for {
		w, err := a.work(id)
		if err == nil && a.down {
			err = a.unavailable()
		}
		if err != nil || w.Revision > after || w.State != session.WorkRunning {
			return *w, err
		}
		if err := a.wait(ctx, a.changed); err != nil {
			return *w, err
		}
	}
}

func (a *Agent) cancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	w, err := a.work(id)
	if err == nil {
		w.State, w.Revision = session.WorkCancelled, w.Revision+1
		a.wake()
	}
	return *w, err
}
