package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// worksKept is how many pieces of work on images are remembered; those that go
// on are never let go.
const worksKept = 50

// imageWorks are the pieces of work on images. They end with the agent.
type imageWorks struct {
	mu      sync.Mutex    // guards everything below, and each work in all
	changed chan struct{} // closed and replaced by every change
	all     []*imageWork
	clock   *pace.Clock
	life    func() context.Context
	stop    context.CancelFunc
}

// imageWork is one piece of work.
type imageWork struct {
	session.ImageWork
	cancel  context.CancelFunc
	dropped bool // its end was asked for
}

func newImageWorks(clock *pace.Clock) *imageWorks {
	ctx, stop := context.WithCancel(context.Background())
	return &imageWorks{clock: clock, changed: make(chan struct{}), life: func() context.Context { return ctx },
		stop: stop}
}

// change applies fn to a piece of work and tells those who wait.
func (w *imageWorks) change(one *imageWork, fn func(*imageWork)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn(one)
	one.Revision++
	w.tell()
}

// tell needs mu.
func (w *imageWorks) tell() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// begin registers work unless refuse finds one that goes on and is in its way.
// The caller does the work and ends it.
func (w *imageWorks) begin(start session.ImageWork,
	refuse func(session.ImageWork) error) (*imageWork, context.Context, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.all {
		if other.State == session.WorkRunning {
			if err := refuse(other.ImageWork); err != nil {
				return nil, nil, err
			}
		}
	}
	ctx, cancel := context.WithCancel(w.life())
	start.ID, start.State, start.StartedAt, start.Revision = string(session.NewID()), session.WorkRunning,
		w.clock.Now().UTC(), 1
	one := &imageWork{ImageWork: start, cancel: cancel}
	excess := len(w.all) + 1 - worksKept
	w.all = slices.DeleteFunc(w.all, func(old *imageWork) bool {
		if excess <= 0 || old.State == session.WorkRunning {
			return false
		}
		excess--
		return true
	})
	w.all = append(w.all, one)
	w.tell()
	return one, ctx, nil
}

// end records how work ended.
func (w *imageWorks) end(one *imageWork, err error) {
	defer one.cancel()
	w.change(one, func(one *imageWork) {
		now := w.clock.Now().UTC()
		one.EndedAt, one.State = &now, session.WorkDone
		switch {
		case err == nil:
		case one.dropped || w.life().Err() != nil:
			one.State = session.WorkCancelled
		default:
			one.State, one.Error = session.WorkFailed, session.CauseOf(err, "image_work_failed")
		}
	})
}

// find needs mu.
func (w *imageWorks) find(id string) (*imageWork, error) {
	for _, one := range w.all {
		if one.ID == id {
			return one, nil
		}
	}
	return nil, &session.Error{Code: "image_work_not-found",
		Message: "The agent knows nothing of that work on an image; it may have been started anew.",
		Hint:    "List the images, and begin again if it is not there."}
}

// of returns the commit of a session that goes on, nil if there is none.
func (w *imageWorks) of(id session.ID) *imageWork {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.all {
		if one.Kind == session.WorkCommit && one.Session == id && one.State == session.WorkRunning {
			return one
		}
	}
	return nil
}

// await waits until a piece of work is beyond a revision or has ended.
func (w *imageWorks) await(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	for {
		w.mu.Lock()
		one, err := w.find(id)
		if err != nil {
			w.mu.Unlock()
			return session.ImageWork{}, err
		}
		view, changed := one.ImageWork, w.changed
		w.mu.Unlock()
		if view.Revision > after || view.State != session.WorkRunning {
			return view, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return view, context.Cause(ctx)
		}
	}
}

func (a *Agent) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	waiting, cancel := context.WithTimeout(ctx, session.ImageWorkWait)
	defer cancel()
	view, err := a.works.await(waiting, id, after)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = nil // there is no news
	}
	return view, err
}

func (a *Agent) CancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	a.works.mu.Lock()
	defer a.works.mu.Unlock()
	one, err := a.works.find(id)
	if err != nil {
		return session.ImageWork{}, err
	}
	one.dropped = true
	one.cancel()
	return one.ImageWork, nil
}

func (a *Agent) CommitSession(ctx context.Context, id session.ID,
	req session.CommitRequest) (session.ImageWork, error) {
	s, err := a.store.Get(id)
	if err != nil {
		return session.ImageWork{}, err
	}
	if wrong := session.ValidateCommitName(req.Name); wrong != nil {
		return session.ImageWork{}, &session.Error{Code: "image_commit_invalid", Message: wrong.Message,
			Hint: wrong.Hint, Fields: []session.FieldError{*wrong}}
	}
	if !s.KeepsContainer() && (s.Spec.Type != session.Interactive || s.Status != session.Running) {
		return session.ImageWork{}, &session.Error{Code: "image_commit_conflict",
			Message: "Only an interactive session that runs is made an image.", Hint: "Wait until it runs."}
	}
	ref := session.CommitRef(s.Owner, req.Name)
	if err := a.mayCommit(ctx, ref, req.Name); err != nil {
		return session.ImageWork{}, err
	}
	one, working, err := a.works.begin(session.ImageWork{Kind: session.WorkCommit, Ref: ref, Owner: s.Owner,
		Session: id}, func(other session.ImageWork) error {
		switch {
		case other.Kind != session.WorkCommit:
		case other.Session == id:
			return &session.Error{Code: "image_commit_conflict",
				Message: fmt.Sprintf("The session %s is being made an image already.", s.Name),
				Hint:    "Wait until that has ended, or cancel it."}
		case other.Ref == ref:
			return nameTaken(req.Name)
		}
		return nil
	})
	if err != nil {
		return session.ImageWork{}, err
	}
	make := a.commitNoted
	if s.KeepsContainer() {
		make = a.commitKept
	}
	a.tasks.Go(func() { a.works.end(one, make(working, one, s, session.ImageOrigin{Name: req.Name})) })
	return a.works.await(working, one.ID, 0)
}

func (a *Agent) mayCommit(ctx context.Context, ref, name string) error {
	err := engine.Within(ctx, a.limits.Call, "image", func(ctx context.Context) error {
		_, err := a.engine.Image(ctx, ref)
		return err
	})
	switch {
	case err == nil:
		return nameTaken(name)
	case session.CodeOf(err) == "engine_image_not-found":
		return nil
	}
	return a.heed(err)
}

func nameTaken(name string) error {
	e := session.FieldError{Field: "name", Code: "image_commit_already-exists",
		Message: fmt.Sprintf("There is a customized image named %s already.", name),
		Hint:    "Choose another name, or remove that image."}
	return &session.Error{Code: e.Code, Message: e.Message, Hint: e.Hint, Fields: []session.FieldError{e}}
}

// commitNoted makes an image of a session and writes it down in its history.
func (a *Agent) commitNoted(ctx context.Context, one *imageWork, s session.Session, origin session.ImageOrigin) error {
	began := a.clock.Now().UTC()
	err := a.heed(a.commit(ctx, s, origin, func(size gpu.Bytes) {
		a.works.change(one, func(one *imageWork) { one.Size = size })
	}))
	a.noteCommit(s, origin.Name, began, err, one)
	return err
}

// commit makes an image of the main kernel of a session. tell is told how much
// is copied, before it is.
func (a *Agent) commit(ctx context.Context, s session.Session, origin session.ImageOrigin, tell func(gpu.Bytes)) error {
	return engine.Within(ctx, a.limits.Commit, "commit", func(ctx context.Context) error {
		container := containerOf(s)
		changed, err := a.engine.Changed(ctx, container)
		if err != nil {
			return err
		}
		tell(changed)
		origin.Owner, origin.Instance, origin.Session, origin.SessionName, origin.Base = s.Owner, a.store.Instance(),
			s.ID, s.Name, s.Spec.Image
		if base, err := a.engine.Image(ctx, s.Spec.Image); err == nil {
			if base = a.images.tell(base); base.Origin != nil {
				origin.Base = base.Origin.Base
			}
		}
		return a.commitClaimed(ctx, container, origin)
	})
}

// commitClaimed makes an image and writes down that it did. What a crash in
// between leaves is found by the claim.
func (a *Agent) commitClaimed(ctx context.Context, container string, origin session.ImageOrigin) error {
	ref := session.CommitRef(origin.Owner, origin.Name)
	if err := a.records.Update(func(tx *store.Tx) error { return tx.PutImageClaim(ref, origin) }); err != nil {
		return err
	}
	made, err := a.engine.Commit(ctx, container, engine.Commit{Ref: ref, Origin: origin})
	if err == nil {
		return a.images.made(a, made, ref, origin)
	}
	if session.CodeOf(err) == "engine_commit_already-exists" {
		err = nameTaken(origin.Name)
	}
	return errors.Join(err, a.records.Update(func(tx *store.Tx) error { return tx.DropImageClaim(ref) }))
}

// noteCommit adds a commit to the history of its session.
func (a *Agent) noteCommit(s session.Session, name string, began time.Time, failed error, one *imageWork) {
	step := commitStep(name, began, a.clock.Now().UTC(), failed)
	a.works.mu.Lock()
	dropped := one.dropped
	a.works.mu.Unlock()
	if failed != nil && (dropped || a.works.life().Err() != nil) {
		step.Result, step.Code, step.Message = session.OutcomeStale, "", "cancelled"
	}
	_, err := a.records.Change(s.ID, func(d *records.Draft) error {
		return d.PutPhase(session.Phase{Session: d.ID, Phase: session.PhaseCommit, Result: step.Result, From: d.Status,
			To: d.Status, Attempts: 1,
			Code: step.Code, Message: step.Message, Steps: []session.Step{step}, CreatedAt: began,
			UpdatedAt: *step.EndedAt})
	})
	if err != nil {
		a.log.Warn("a commit is missing from the history of its session", "session", s.ID, "err", err)
	}
}

// commitStep is what the history says of a commit.
func commitStep(name string, began, ended time.Time, failed error) session.Step {
	step := session.Step{Step: "commit", Result: session.OutcomeSuccess, Message: name, StartedAt: began,
		EndedAt: &ended}
	if failed != nil {
		cause := session.CauseOf(failed, "image_commit_failed")
		step.Result, step.Code, step.Message = session.OutcomeFailure, cause.Code, cause.Message
	}
	return step
}

func (a *Agent) ListImages(ctx context.Context) ([]session.Image, error) {
	var images []session.Image
	err := engine.Within(ctx, a.limits.Call, "images", func(ctx context.Context) (err error) {
		if err = a.images.settle(ctx, a); err != nil {
			return err
		}
		if images, err = a.engine.Images(ctx); err != nil {
			return err
		}
		users, err := a.imageUsers(ctx)
		for i := range images {
			images[i] = a.images.tell(images[i])
			images[i].UsedBy = users[images[i].ID]
		}
		return err
	})
	return images, a.heed(err)
}

// FindImage describes an image that is on this machine, by whatever it can be
// called; engine_image_not-found.
func (a *Agent) FindImage(ctx context.Context, ref string) (session.Image, error) {
	var image session.Image
	err := engine.Within(ctx, a.limits.Call, "image", func(ctx context.Context) (err error) {
		image, err = a.engine.Image(ctx, ref)
		return err
	})
	return a.images.tell(image), a.heed(err)
}

// imageUsers are the live sessions by the ids of the images that they use, or
// wait to use.
func (a *Agent) imageUsers(ctx context.Context) (map[string][]session.ImageUser, error) {
	live, _, err := a.store.Live()
	if err != nil {
		return nil, err
	}
	users, ids := map[string][]session.ImageUser{}, map[string]string{}
	for _, s := range live {
		id, known := ids[s.Spec.Image]
		if !known {
			switch image, err := a.engine.Image(ctx, s.Spec.Image); {
			case err == nil:
				id = image.ID
			case engine.Unavailable(err) || ctx.Err() != nil:
				return nil, err
			}
			ids[s.Spec.Image] = id
		}
		users[id] = append(users[id], session.ImageUser{Session: s.ID, Name: s.Name, Owner: s.Owner})
	}
	delete(users, "") // of sessions whose image is not here
	return users, nil
}

func (a *Agent) RemoveImage(ctx context.Context, ref string) error {
	image, err := a.FindImage(ctx, ref)
	if err != nil {
		return err
	}
	err = engine.Within(ctx, a.limits.Remove, "image", func(ctx context.Context) error {
		users, err := a.imageUsers(ctx)
		if err != nil {
			return err
		}
		if used := users[image.ID]; len(used) > 0 {
			return imageInUse(ref, used)
		}
		return a.engine.RemoveImage(ctx, image.ID)
	})
	if err == nil {
		err = a.images.drop(a, image.ID)
	}
	if session.CodeOf(err) == "engine_image_conflict" {
		e := session.AsError(err, "")
		err = &session.Error{Code: "image_remove_conflict", Message: e.Message, Hint: e.Hint, Err: err}
	}
	return a.heed(err)
}

func imageInUse(ref string, used []session.ImageUser) error {
	names := make([]string, len(used))
	for i, u := range used {
		names[i] = u.Name
	}
	slices.Sort(names)
	who := "The session " + names[0] + " uses"
	if len(names) > 1 {
		who = "The sessions " + strings.Join(names, ", ") + " use"
	}
	return &session.Error{Code: "image_remove_conflict", Message: fmt.Sprintf("%s the image %s.", who, ref),
		Hint: "End them first."}
}

func (a *Agent) ImageDisk(ctx context.Context) (session.ImageDisk, error) {
	var disk session.ImageDisk
	err := engine.Within(ctx, a.limits.Remove, "images", func(ctx context.Context) (err error) {
		if err = a.images.settle(ctx, a); err != nil {
			return err
		}
		if disk, err = a.engine.DiskUse(ctx); err != nil {
			return err
		}
		users, err := a.imageUsers(ctx)
		for i := range disk.Images {
			disk.Images[i].Image = a.images.tell(disk.Images[i].Image)
			disk.Images[i].UsedBy = users[disk.Images[i].ID]
		}
		return err
	})
	return disk, a.heed(err)
}
