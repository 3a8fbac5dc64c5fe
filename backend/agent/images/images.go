// Package images lists, pulls, makes, removes and receives the images of a machine, and records what it knows of them.
package images

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/layers"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

// People says what each person may have.
type People interface {
	Allowance(owner string) session.Allowance
}

// Config says how images are kept.
type Config struct {
	host.Host
	Dir    string // for incoming images
	Free   func(dir string) (gpu.Bytes, error)
	Quota  layers.Quota
	People People
	// WriteKept writes to a session's files what is kept for them elsewhere in it.
	WriteKept func(ctx context.Context, id session.ID) error
	// TakeHome copies the home of a parked session out of the container that it has kept.
	TakeHome func(ctx context.Context, s session.Session, tell func(gpu.Bytes)) error
	// Unreserve removes the containers that wait for sessions, which use images. None is made before done is called.
	Unreserve func(ctx context.Context) (done func())
}

// Images are the images of a machine.
type Images struct {
	session.ImageArrivals // of the agent's own person

	config     Config
	book       *book
	jobs       *jobs
	depot      *layers.Depot // incoming images
	installing sync.Mutex    // held while an image is passed to the engine: one at a time
	tasks      sync.WaitGroup
	closed     chan struct{}
	once       sync.Once
}

// Open returns the images of a machine. Pulls and commits continue until Stop or Close.
func Open(config Config) (*Images, error) {
	depot, err := layers.Open(layers.Config{Dir: config.Dir, Free: config.Free, Quota: config.Quota})
	if err != nil {
		return nil, session.WrapError(err, session.CodeAgentInternal,
			"The folder for incoming images cannot be created.",
			"Check the permissions of "+filepath.Dir(config.Dir)+".")
	}
	book, err := openBook(config.Records, config.Engine)
	if err != nil {
		return nil, err
	}
	m := &Images{config: config, book: book, jobs: newJobs(config.Clock), depot: depot, closed: make(chan struct{})}
	m.ImageArrivals = m.Arrivals(config.Owner)
	return m, nil
}

func (m *Images) Stop() {
	m.jobs.stop()
	m.tasks.Wait()
}

// Close also ends incoming transfers.
func (m *Images) Close() {
	m.Stop()
	m.once.Do(func() { close(m.closed) })
}

// Committing returns the job that makes an image of a session now, empty if there is none.
func (m *Images) Committing(id session.ID) (job string) {
	m.jobs.mu.Lock()
	defer m.jobs.mu.Unlock()
	for _, one := range m.jobs.all {
		if one.Kind == session.WorkCommit && one.Session == id && one.State == session.WorkRunning {
			return one.ID
		}
	}
	return ""
}

func (m *Images) AwaitEnd(ctx context.Context, job string) error {
	_, err := m.jobs.await(ctx, job, math.MaxUint64)
	return err
}

func (m *Images) AwaitImageWork(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	waiting, cancel := context.WithTimeout(ctx, session.ImageWorkWait)
	defer cancel()
	view, err := m.jobs.await(waiting, id, after)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		err = nil // there is no news
	}
	return view, err
}

func (m *Images) CancelImageWork(_ context.Context, id string) (session.ImageWork, error) {
	m.jobs.mu.Lock()
	defer m.jobs.mu.Unlock()
	one, err := m.jobs.find(id)
	if err != nil {
		return session.ImageWork{}, err
	}
	one.dropped = true
	one.cancel()
	return one.ImageWork, nil
}

func (m *Images) ListImages(ctx context.Context) ([]session.Image, error) {
	var images []session.Image
	err := engine.Within(ctx, m.config.Limits.Call, "images", func(ctx context.Context) (err error) {
		if err = m.book.settle(ctx); err != nil {
			return err
		}
		if images, err = m.config.Engine.Images(ctx); err != nil {
			return err
		}
		users, err := m.imageUsers(ctx)
		for i := range images {
			images[i] = m.book.tell(images[i])
			images[i].UsedBy = users[images[i].ID]
		}
		return err
	})
	return images, m.config.Health.Heed(err)
}

// FindImage returns a local image by any of its references, or fails with engine_image_not-found.
func (m *Images) FindImage(ctx context.Context, ref string) (session.Image, error) {
	image, err := m.image(ctx, ref)
	return m.book.tell(image), m.config.Health.Heed(err)
}

func (m *Images) image(ctx context.Context, ref string) (session.Image, error) {
	return engine.Ask(ctx, m.config.Limits.Call, "image",
		func(ctx context.Context) (session.Image, error) { return m.config.Engine.Image(ctx, ref) })
}

// imageUsers are the live sessions by the ids of the images that they use or wait for.
func (m *Images) imageUsers(ctx context.Context) (map[string][]session.ImageUser, error) {
	live, _, err := m.config.Records.Live()
	if err != nil {
		return nil, err
	}
	users, ids := map[string][]session.ImageUser{}, map[string]string{}
	for _, s := range live {
		id, known := ids[s.Spec.Image]
		if !known {
			switch image, err := m.config.Engine.Image(ctx, s.Spec.Image); {
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

func (m *Images) RemoveImage(ctx context.Context, ref string) error {
	image, err := m.FindImage(ctx, ref)
	if err != nil {
		return err
	}
	err = engine.Within(ctx, m.config.Limits.Remove, "image", func(ctx context.Context) error {
		users, err := m.imageUsers(ctx)
		if err != nil {
			return err
		}
		if used := users[image.ID]; len(used) > 0 {
			return imageInUse(ref, used)
		}
		defer m.config.Unreserve(ctx)()
		return m.config.Engine.RemoveImage(ctx, image.ID)
	})
	if err == nil {
		err = m.book.drop(image.ID)
	}
	return m.config.Health.Heed(err)
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
	return session.NewError(session.CodeImageConflict, fmt.Sprintf("%s the image %s.", who, ref), "End them first.")
}

func (m *Images) ImageDisk(ctx context.Context) (session.ImageDisk, error) {
	var disk session.ImageDisk
	err := engine.Within(ctx, m.config.Limits.Remove, "images", func(ctx context.Context) (err error) {
		if err = m.book.settle(ctx); err != nil {
			return err
		}
		if disk, err = m.config.Engine.DiskUse(ctx); err != nil {
			return err
		}
		users, err := m.imageUsers(ctx)
		for i := range disk.Images {
			disk.Images[i].Image = m.book.tell(disk.Images[i].Image)
			disk.Images[i].UsedBy = users[disk.Images[i].ID]
		}
		return err
	})
	return disk, m.config.Health.Heed(err)
}

// maxJobs is the number of jobs that are listed; running ones always are.
const maxJobs = 50

// jobs are the pulls and commits of images. They end with the agent.
type jobs struct {
	mu      sync.Mutex    // guards everything below, and each work in all
	changed chan struct{} // closed and replaced by every change
	all     []*job
	clock   *pace.Clock
	life    func() context.Context
	stop    context.CancelFunc
}

type job struct {
	session.ImageWork
	cancel  context.CancelFunc
	dropped bool // its end was asked for
}

func newJobs(clock *pace.Clock) *jobs {
	ctx, stop := context.WithCancel(context.Background())
	return &jobs{clock: clock, changed: make(chan struct{}), life: func() context.Context { return ctx },
		stop: stop}
}

func (j *jobs) change(one *job, fn func(*job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fn(one)
	one.Revision++
	j.tell()
}

// tell wakes those who wait. The caller holds mu.
func (j *jobs) tell() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// begin registers work unless refuse refuses it because of running work. The caller does the work and ends it.
func (j *jobs) begin(start session.ImageWork, refuse func(session.ImageWork) error) (*job, context.Context, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, other := range j.all {
		if other.State == session.WorkRunning {
			if err := refuse(other.ImageWork); err != nil {
				return nil, nil, err
			}
		}
	}
	ctx, cancel := context.WithCancel(j.life())
	start.ID, start.State, start.StartedAt, start.Revision = string(session.NewID()), session.WorkRunning,
		j.clock.Now().UTC(), 1
	one := &job{ImageWork: start, cancel: cancel}
	excess := len(j.all) + 1 - maxJobs
	j.all = slices.DeleteFunc(j.all, func(old *job) bool {
		if excess <= 0 || old.State == session.WorkRunning {
			return false
		}
		excess--
		return true
	})
	j.all = append(j.all, one)
	j.tell()
	return one, ctx, nil
}

// join is begin for work that one caller begins and all others with the same one join: they get what runs, and no job.
func (j *jobs) join(start session.ImageWork) (one *job, ctx context.Context, joined session.ImageWork) {
	one, ctx, _ = j.begin(start, func(other session.ImageWork) error {
		if other.Kind == start.Kind && other.Ref == start.Ref && other.Owner == start.Owner {
			joined = other
			return errJoined
		}
		return nil
	})
	return one, ctx, joined
}

var errJoined = errors.New("images: the work runs already")

func (j *jobs) end(one *job, err error) {
	defer one.cancel()
	j.change(one, func(one *job) {
		now := j.clock.Now().UTC()
		one.EndedAt, one.State = &now, session.WorkDone
		switch {
		case err == nil:
		case one.dropped || j.life().Err() != nil:
			one.State = session.WorkCancelled
		default:
			one.State, one.Error = session.WorkFailed, session.CauseOf(err, session.CodeOperationFailed)
		}
	})
}

// find finds a job. The caller holds mu.
func (j *jobs) find(id string) (*job, error) {
	for _, one := range j.all {
		if one.ID == id {
			return one, nil
		}
	}
	return nil, session.NewError(session.CodeOperationNotFound,
		"The agent does not know that work on an image. It may have been restarted.",
		"List the images, and start again if it is not there.")
}

// await waits until a job is beyond a revision or has ended.
func (j *jobs) await(ctx context.Context, id string, after uint64) (session.ImageWork, error) {
	for {
		j.mu.Lock()
		one, err := j.find(id)
		if err != nil {
			j.mu.Unlock()
			return session.ImageWork{}, err
		}
		view, changed := one.ImageWork, j.changed
		j.mu.Unlock()
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
