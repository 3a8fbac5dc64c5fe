package images

import (
	"context"
	"slices"
	"sync"

	"slipway/backend/pace"
	"slipway/backend/session"
)

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
