package hubtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

type machine struct {
	*base
	// Probe fails if the machine cannot be checked.
	Probe func(context.Context) error

	board  *session.DeviceBoard // guarded by mu, like the fields below
	rows   []session.Account
	served []session.ServiceAccount
	span   session.AccountSpan
	images []session.Image
	works  []session.ImageWork
}

// SetBoard sets what Devices returns and sends an event.
func (a *machine) SetBoard(board session.DeviceBoard) {
	a.do(func() {
		a.board = &board
		a.tell(session.Event{Devices: &board})
	})
}

// SetAccounts sets what Accounts returns for every span.
func (a *machine) SetAccounts(rows ...session.Account) { a.do(func() { a.rows = rows }) }

// SetServiceAccounts sets what ServiceAccounts returns for every span.
func (a *machine) SetServiceAccounts(rows ...session.ServiceAccount) {
	a.do(func() { a.served = rows })
}

// Span returns the last span passed to Accounts or ServiceAccounts.
func (a *machine) Span() session.AccountSpan { return read(a.base, &a.span) }

func (a *machine) devices(context.Context) (session.DeviceBoard, error) {
	if a.board == nil {
		return session.DeviceBoard{Source: "none", Text: "This machine has no devices."}, nil
	}
	return *a.board, nil
}

// deviceHistory has one sample, a second after since.
func (a *machine) deviceHistory(ctx context.Context, device gpu.UUID, since time.Time) ([]session.DevicePoint, error) {
	board, _ := a.devices(ctx) // it never fails
	for _, d := range board.Devices {
		if d.Device.UUID == device {
			return []session.DevicePoint{{At: since.Add(time.Second), Util: d.Util, MemoryUsed: d.MemoryUsed,
				Power: d.Power, Temperature: d.Temperature}}, nil
		}
	}
	return nil, failed(session.CodeDeviceNotFound, fmt.Sprintf("There is no device %q.", device))
}

func (a *machine) accounts(_ context.Context, span session.AccountSpan) ([]session.Account, error) {
	a.span = span
	return a.rows, nil
}

func (a *machine) serviceAccounts(_ context.Context, span session.AccountSpan) ([]session.ServiceAccount, error) {
	a.span = span
	return slices.Clone(a.served), nil
}

// doctor finds no problems.
func (a *machine) doctor(ctx context.Context) ([]session.Check, error) {
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

// listDirectories knows only /data.
func (a *machine) listDirectories(_ context.Context, path string) (session.DirectoryListing, error) {
	switch path {
	case "/":
		return session.DirectoryListing{Path: "/", Entries: []session.DirectoryEntry{{Name: "data", Writable: true}}},
			nil
	case "", "/data":
		return session.DirectoryListing{Path: "/data", Parent: "/", Entries: []session.DirectoryEntry{}}, nil
	}
	return session.DirectoryListing{}, failed(session.CodeFileNotFound, "There is no directory "+path+".")
}

// SetImages sets what ListImages returns.
func (a *machine) SetImages(images ...session.Image) { a.do(func() { a.images = images }) }

// MoveWork changes the newest work on an image.
func (a *machine) MoveWork(change func(*session.ImageWork)) {
	a.do(func() {
		last := &a.works[len(a.works)-1]
		change(last)
		last.Revision++
		a.wake()
	})
}

// Works returns all work on images, oldest first.
func (a *machine) Works() (all []session.ImageWork) {
	a.do(func() { all = slices.Clone(a.works) })
	return all
}

func (a *machine) listImages(context.Context) ([]session.Image, error) {
	return slices.Clone(a.images), nil
}

func (a *machine) removeImage(_ context.Context, ref string) error {
	at := slices.IndexFunc(a.images, func(i session.Image) bool { return i.ID == ref || slices.Contains(i.Refs, ref) })
	switch {
	case at < 0:
		return failed(session.CodeNoImage, "The image "+ref+" is not on this machine.")
	case len(a.images[at].UsedBy) > 0:
		return failed(session.CodeImageConflict, "A session uses the image "+ref+".")
	}
	a.images = slices.Delete(slices.Clone(a.images), at, at+1)
	return nil
}

// imageDisk assumes that images share nothing.
func (a *machine) imageDisk(context.Context) (disk session.ImageDisk, err error) {
	for _, i := range a.images {
		disk.Total += i.Size
		disk.Images = append(disk.Images, session.ImageRoom{Image: i, Alone: i.Size})
	}
	return disk, nil
}

func (a *machine) pullImage(_ context.Context, req session.PullRequest) (session.ImageWork, error) {
	return a.beginWork(session.ImageWork{Kind: session.WorkPull, Ref: req.Ref, Owner: req.Owner})
}

// beginWork starts work, which a test continues.
func (a *machine) beginWork(w session.ImageWork) (session.ImageWork, error) {
	w.ID, w.State, w.Revision, w.StartedAt = fmt.Sprintf("work-%d", len(a.works)+1), session.WorkRunning, 1, time.Now()
	a.works = append(a.works, w)
	a.wake()
	return w, nil
}

// work returns the work with an id, which must exist.
func (a *machine) work(id string) *session.ImageWork {
	return &a.works[slices.IndexFunc(a.works, func(w session.ImageWork) bool { return w.ID == id })]
}

func (a *machine) awaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
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

func (a *machine) cancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	w := a.work(id)
	w.State, w.Revision = session.WorkCancelled, w.Revision+1
	a.wake()
	return *w, nil
}
