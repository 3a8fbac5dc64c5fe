package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/guests"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// course is the way of one placed session to its end: one goroutine, which alone moves it, apart from Terminate, which
// stores the wish and interrupts.
type course struct {
	runner *Runner
	id     session.ID
	poke   chan struct{} // of capacity 1: look at the record and the container
	links  *guests.Links

	mu        sync.Mutex // guards everything below
	interrupt context.CancelCauseFunc
	again     bool           // placed again while the goroutine was about to leave
	steps     []session.Step // of the phase under way
	oom       map[string]int // processes killed for memory by kernel, as far as known
	trouble   *session.Cause // what the guest has told of, nil if nothing
	told      bool           // the guest has told of the end of the batch command
}

var errInterrupted = errors.New("the session's record changed")

// Start does what a placed session needs from now on, unless that is done already.
func (r *Runner) Start(ctx context.Context, id session.ID) {
	r.mu.Lock()
	c, exists := r.courses[id]
	if !exists {
		c = &course{runner: r, id: id, poke: make(chan struct{}, 1)}
		c.links = r.config.Guests.Follow(id, c)
		r.courses[id] = c
	}
	r.mu.Unlock()
	if exists {
		c.mu.Lock()
		c.again = true
		c.mu.Unlock()
		pace.Signal(c.poke)
		return
	}
	r.tasks.Go(func() { r.follow(ctx, c) })
}

func (r *Runner) courseOf(id session.ID) *course {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.courses[id]
}

// Interrupt has a session looked at whose record has changed.
func (r *Runner) Interrupt(id session.ID) {
	c := r.courseOf(id)
	if c == nil {
		return
	}
	c.mu.Lock()
	interrupt := c.interrupt
	c.mu.Unlock()
	if interrupt != nil {
		interrupt(errInterrupted)
	}
	pace.Signal(c.poke)
}

// leave takes the course off the list unless its session was placed again.
func (r *Runner) leave(c *course) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.again {
		c.again = false
		return false
	}
	delete(r.courses, c.id)
	return true
}

// follow does what the status of the session calls for until it has ended, is back in the queue, or ctx ends.
func (r *Runner) follow(ctx context.Context, c *course) {
	defer c.links.Close()
	failures := 0
	for ctx.Err() == nil {
		done, err := r.stretch(ctx, c)
		switch {
		case errors.Is(err, errInterrupted):
		case err != nil && ctx.Err() == nil:
			failures++
			r.config.Log.Warn("a session's course is held up", "session", c.id, "err", err)
			if err := r.holdUp(ctx, c, err, failures); err != nil {
				return
			}
		case done && r.leave(c):
			return
		default:
			failures = 0
		}
	}
}

// holdUp waits before the course goes on after a failure: for the engine if that does not answer, else for a while. A
// changed record ends it early.
func (r *Runner) holdUp(ctx context.Context, c *course, err error, failures int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, over := engine.Unavailable(r.config.Health.Heed(err)), make(chan struct{})
	go func() {
		defer close(over)
		if down {
			_ = r.config.Health.Await(ctx) // fails only when nobody waits any more
		} else {
			_ = r.config.Clock.Pause(ctx, r.config.Limits.Pause(failures)) // as above
		}
	}()
	select {
	case <-over:
	case <-c.poke:
	}
	return context.Cause(ctx)
}

// stretch does one stretch of the course: what the status calls for now. It reports true where nothing remains to be
// done.
func (r *Runner) stretch(ctx context.Context, c *course) (done bool, err error) {
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	c.mu.Lock()
	c.interrupt, c.again = interrupt, false
	c.mu.Unlock()
	// Read only now: whoever changes the record after this can interrupt.
	s, err := r.config.Records.Get(c.id)
	if err != nil {
		return session.CodeOf(err) == session.CodeSessionNotFound, err
	}
	switch {
	case s.Status.Terminal() || s.Status == session.Pending:
		c.links.Drop()
		return true, nil
	case s.Status == session.Terminating:
		err = r.tearDown(ctx, c, s)
	case s.Status == session.Running:
		err = r.supervise(ctx, c, s)
	default:
		err = r.launch(ctx, c, s)
	}
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		return false, errInterrupted
	}
	return false, err
}

// supervise keeps a RUNNING session: its links, its timeout, an eye on its containers. It returns when the record says
// something else. One kernel that ends takes the session along.
func (r *Runner) supervise(ctx context.Context, c *course, s session.Session) error {
	for _, k := range s.Kernels {
		c.links.Ensure(k.Name, k.Container)
	}
	var timeout <-chan time.Time
	if s.Spec.Timeout > 0 && s.StartedAt != nil {
		timer := r.config.Clock.Timer(r.config.Clock.Until(s.StartedAt.Add(time.Duration(s.Spec.Timeout))))
		defer timer.Stop()
		timeout = timer.C
	}
	for {
		number, state, err := r.firstEnded(ctx, s)
		if err != nil {
			return err
		}
		if number >= 0 {
			return r.ended(ctx, c, s, number, state)
		}
		select {
		case <-c.poke:
		case <-timeout:
			_, err := r.Terminate(s.ID, session.ReasonTaskTimeout, false)
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// firstEnded finds the first kernel whose container does not run, and its state, nil where it has vanished. The number
// is -1 where all run.
func (r *Runner) firstEnded(ctx context.Context, s session.Session) (number int, state *engine.State, err error) {
	for number, k := range s.Kernels {
		state, err := engine.Ask(ctx, r.config.Limits.Call, "inspect",
			func(ctx context.Context) (engine.State, error) { return r.config.Engine.Inspect(ctx, k.Container) })
		switch {
		case session.CodeOf(err) == session.CodeNoContainer:
			return number, nil, nil
		case err != nil:
			return -1, nil, err
		case !state.Running && !state.Created:
			return number, &state, nil
		}
	}
	return -1, nil, nil
}

// setSteps shows the steps of the phase under way to whoever asks for history.
func (c *course) setSteps(steps []session.Step) {
	c.mu.Lock()
	c.steps = steps
	c.mu.Unlock()
}

// step runs one step of a phase, shows it after those that ended, and returns what becomes of it in the history.
func (r *Runner) step(ctx context.Context, c *course, ended []session.Step, name string, limit time.Duration,
	do func(context.Context) error) (session.Step, error) {
	step := session.Step{Step: name, Result: session.OutcomeRunning, StartedAt: r.config.Clock.Now().UTC()}
	c.setSteps(append(slices.Clone(ended), step))
	err := engine.Within(ctx, limit, name, do)
	step.EndedAt, step.Result = new(r.config.Clock.Now().UTC()), session.OutcomeSuccess
	switch {
	case errors.Is(err, errSkipped):
		step.Result, err = session.OutcomeSkipped, nil
	case err != nil:
		cause := session.CauseOf(err, session.Code("session_"+name+"_failed"))
		step.Result, step.Code, step.Message, step.Said = session.OutcomeFailure, cause.Code, cause.Message, cause.Said
	}
	return step, err
}

func (c *course) currentSteps() []session.Step {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps
}

// sawOOM takes note of how many processes of a kernel were killed for memory. It returns how many that makes in all
// kernels, and whether that is news.
func (c *course) sawOOM(kernel string, count int) (sum int, news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if news = count > c.oom[kernel]; news {
		if c.oom == nil {
			c.oom = map[string]int{}
		}
		c.oom[kernel] = count
	}
	return c.kills(), news
}

// kills counts the processes killed for memory. The caller holds the lock.
func (c *course) kills() (sum int) {
	for _, count := range c.oom {
		sum += count
	}
	return sum
}

// commandOver reports whether the guest has told of the end of the batch command.
func (c *course) commandOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// heard returns what the guest has told of.
func (c *course) heard() (oom int, trouble *session.Cause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kills(), c.trouble
}

// Ended, and what follows, are what the guests of the session tell.
func (c *course) Ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = true
}

func (c *course) Changed() { pace.Signal(c.poke) }

// OutOfMemory warns of processes that the kernel killed for memory while their session goes on. count is of all of them
// in one of its kernels so far.
func (c *course) OutOfMemory(kernel string, count int) {
	count, news := c.sawOOM(kernel, count)
	if !news {
		return
	}
	records.Warn(c.runner.config.Records, c.runner.config.Log, c.id, func(d *records.Draft) {
		what := "A process was killed"
		if count > 1 {
			what = fmt.Sprintf("%d processes were killed", count)
		}
		d.Warn(session.Warning{Code: session.CodeOOM, Title: "oom-killed",
			Text: fmt.Sprintf("%s in %s because it used up its %s of memory. Launch it with more memory.", what, d.Name,
				d.Spec.Resources.Memory)})
	})
}

// Trouble keeps trouble that the guest tells of. Once the session runs it is a warning too.
func (c *course) Trouble(cause session.Cause) {
	c.mu.Lock()
	c.trouble = &cause
	c.mu.Unlock()
	records.Warn(c.runner.config.Records, c.runner.config.Log, c.id, func(d *records.Draft) { d.WarnOfTrouble(&cause) })
}
