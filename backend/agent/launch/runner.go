// Package launch starts placed sessions, watches over them and ends them. Each has a goroutine, its course, which reads
// the record and does what the status requires.
//
// Two phases lead to RUNNING, each a list of steps with an undo: prepare (image, pull) and start (network, create,
// start, guest). A step that fails for a reason that may pass is undone and the phase tried again, at most five times
// with growing pauses; one that would fail again ends the session at once. Every end goes through TERMINATING, with the
// reason stored first.
//
// The record is written before an action, and every action can be repeated. So after a crash, reconciling only starts a
// course for every placed session and compares the engine's list with the records. While the engine does not answer,
// running sessions keep their status, and what is being launched returns to PENDING; only a forced end does not wait
// for the engine.
package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/agent/folders"
	"slipway/backend/agent/guests"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Config says how sessions are launched.
type Config struct {
	host.Host
	Images  *images.Images
	Folders *folders.Folders
	Guests  *guests.Guests
	// Confidential has what came with launches.
	Confidential interface {
		Get(s session.Session) (session.Confidential, error)
	}
	Logs    *logs.Logs
	Devices *devices.Devices
	Others  *ledger.Others
	Boot    func() (time.Time, error) // when the machine was started
	Ended   func(s session.Session)
}

// Runner launches, watches over and ends the sessions of a machine.
type Runner struct {
	config    Config
	networks  *networks
	leftovers *leftovers
	ahead     ahead
	tasks     sync.WaitGroup

	mu      sync.Mutex // guards everything below
	courses map[session.ID]*course
	pulls   map[session.ID]*session.Pull
}

// Open returns a runner without courses.
func Open(config Config) (*Runner, error) {
	networks, err := openNetworks(config.Host)
	return &Runner{config: config, networks: networks, courses: map[session.ID]*course{},
		pulls:     map[session.ID]*session.Pull{},
		ahead:     ahead{fetches: map[pull]*fetch{}, ready: map[session.ID]described{}},
		leftovers: &leftovers{host: config.Host, strays: map[string]time.Time{}, held: map[string]held{}}}, err
}

func (r *Runner) Wait() { r.tasks.Wait() }

func (r *Runner) Busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.courses)
}

// OutOfMemory warns of processes of a kernel that were killed for memory. count is their number so far.
func (r *Runner) OutOfMemory(id session.ID, kernel string, count int) {
	if c := r.courseOf(id); c != nil {
		c.OutOfMemory(kernel, count)
	}
}

// Pull is the progress of the pull of a session's image, nil if there is none.
func (r *Runner) Pull(id session.ID) *session.Pull {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pulls[id]
}

// showPull publishes the progress of a pull, nil once it is over.
func (r *Runner) showPull(s session.Session, progress *session.Pull) {
	r.mu.Lock()
	if progress == nil {
		delete(r.pulls, s.ID)
	} else {
		r.pulls[s.ID] = progress
	}
	r.mu.Unlock()
	if progress != nil {
		r.config.PublishSession(s)
	}
}

func (r *Runner) Steps(id session.ID) []session.Step {
	if c := r.courseOf(id); c != nil {
		return c.currentSteps()
	}
	return nil
}

// course takes one placed session to its end. Only its goroutine moves the session, and Terminate interrupts it.
type course struct {
	runner *Runner
	id     session.ID
	poke   chan struct{} // of capacity 1: look at the record and the container
	links  *guests.Links

	steps   atomic.Pointer[[]session.Step] // of the phase under way
	trouble atomic.Pointer[session.Cause]  // what a guest has reported, nil if nothing
	over    atomic.Bool                    // the guest has reported the end of the batch command
	kills   atomic.Int64                   // processes killed for memory in all kernels, as far as known

	mu        sync.Mutex // guards everything below
	interrupt context.CancelCauseFunc
	again     bool           // placed again while the goroutine was about to leave
	oom       map[string]int // kills by kernel
}

var errInterrupted = errors.New("the session's record changed")

// Start starts the course of a placed session, or has the running one look again.
func (r *Runner) Start(ctx context.Context, id session.ID) {
	r.mu.Lock()
	c, exists := r.courses[id]
	if !exists {
		c = &course{runner: r, id: id, poke: make(chan struct{}, 1), oom: map[string]int{}}
		c.links = r.config.Guests.Follow(id, c)
		r.courses[id] = c
	}
	if exists { // with r.mu held, so that the course cannot leave in between
		c.mu.Lock()
		c.again = true
		c.mu.Unlock()
	}
	r.mu.Unlock()
	if exists {
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

// Interrupt has the course of a session look at its changed record.
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

// leave removes the course unless its session was placed again.
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

// follow does what the status of the session requires until it has ended, is back in the queue, or ctx ends.
func (r *Runner) follow(ctx context.Context, c *course) {
	defer c.links.Close()
	failures := 0
	for ctx.Err() == nil {
		done, err := r.stretch(ctx, c)
		switch {
		case errors.Is(err, errInterrupted):
		case err != nil && ctx.Err() == nil:
			failures++
			r.config.Log.Warn("a session's launch is delayed", "session", c.id, "err", err)
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

// holdUp waits after a failure: for the engine if that does not answer, else for a while, or until the record changes.
func (r *Runner) holdUp(ctx context.Context, c *course, err error, failures int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, over := engine.Unavailable(r.config.Health.Heed(err)), make(chan struct{})
	go func() {
		defer close(over)
		if down {
			_ = r.config.Health.Await(ctx) // fails only with ctx
		} else {
			_ = r.config.Clock.Pause(ctx, r.config.Limits.Pause(failures)) // fails only with ctx
		}
	}()
	select {
	case <-over:
	case <-c.poke:
	}
	return context.Cause(ctx)
}

// stretch does what the status requires now. It reports true if nothing remains to be done.
func (r *Runner) stretch(ctx context.Context, c *course) (done bool, err error) {
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	c.mu.Lock()
	c.interrupt, c.again = interrupt, false
	c.mu.Unlock()
	// Only now, because whoever changes the record after this can interrupt.
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

// supervise keeps a RUNNING session's links and timeout until its record changes. A kernel that ends takes it along.
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

// firstEnded finds the first kernel whose container does not run, -1 if all do, and its state, nil if it has vanished.
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

// setSteps sets the steps of the phase under way, for the history.
func (c *course) setSteps(steps []session.Step) { c.steps.Store(&steps) }

// step runs one step of a phase, shows it after those that ended, and returns it for the history.
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
	if steps := c.steps.Load(); steps != nil {
		return *steps
	}
	return nil
}

// Ended, Changed, OutOfMemory and Trouble implement [guests.Listener].
func (c *course) Ended() { c.over.Store(true) }

func (c *course) Changed() { pace.Signal(c.poke) }

// OutOfMemory warns of processes killed for memory. count is their number in one kernel so far.
func (c *course) OutOfMemory(kernel string, count int) {
	c.mu.Lock()
	more := count - c.oom[kernel]
	c.oom[kernel] = max(c.oom[kernel], count)
	c.mu.Unlock()
	if more <= 0 {
		return
	}
	total := c.kills.Add(int64(more))
	c.runner.config.Records.Warn(c.runner.config.Log, c.id, func(d *records.Draft) {
		what := "A process was killed"
		if total > 1 {
			what = fmt.Sprintf("%d processes were killed", total)
		}
		d.Warn(session.Warning{Code: session.CodeOOM, Title: "oom-killed",
			Text: fmt.Sprintf("%s in %s because it used up its %s of memory. Launch it with more memory.", what, d.Name,
				d.Spec.Resources.Memory)})
	})
}

// Trouble keeps trouble that a guest reports. While the session runs, it is a warning too.
func (c *course) Trouble(cause session.Cause) {
	c.trouble.Store(&cause)
	c.runner.config.Records.Warn(c.runner.config.Log, c.id, func(d *records.Draft) { d.WarnOfTrouble(&cause) })
}
