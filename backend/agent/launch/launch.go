package launch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"slipway/backend/agent/guests"
	"slipway/backend/agent/images"
	"slipway/backend/agent/others"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/offlimits"
	"slipway/backend/session"
)

// step is one step of a launch. do may be repeated after a crash; undo removes
// what do may have left, whether it succeeded or not, and is nil where do
// leaves nothing.
type step struct {
	name   string
	reason session.Reason // of the end, if the step fails for good
	limit  func(Limits) time.Duration
	do     func(*Runner, context.Context, *launch) error
	undo   func(*Runner, context.Context, *launch) error
}

// The names of steps: of a preparation, of a start, and of an end.
const (
	StepImage   = "image"
	StepPull    = "pull"
	StepNetwork = "network"
	StepCreate  = "create"
	StepStart   = "start"
	StepGuest   = "guest"
	StepStop    = "stop"
	StepLogs    = "logs"
	StepRemove  = "remove"
)

// stage is a phase of a launch with its steps.
type stage struct {
	phase session.PhaseName
	limit func(Limits) time.Duration // of all attempts together
	steps []step
	done  func(*Runner, *launch) (session.Session, error) // stores the way into the next status
}

var (
	prepareStage = stage{
		phase: session.PhasePrepare, limit: func(l Limits) time.Duration { return l.Prepare }, done: (*Runner).prepared,
		steps: []step{
			{name: StepImage, reason: session.ReasonPullFailed, limit: func(l Limits) time.Duration { return l.Call },
				do: (*Runner).findImage},
			{name: StepPull, reason: session.ReasonPullFailed, limit: func(l Limits) time.Duration { return l.Pull },
				do: (*Runner).pullImage},
		},
	}
	startStage = stage{
		phase: session.PhaseStart, limit: func(l Limits) time.Duration { return l.Launch }, done: (*Runner).started,
		steps: []step{
			{name: StepNetwork, reason: session.ReasonCreateFailed,
				limit: func(l Limits) time.Duration { return l.Call }, do: (*Runner).createNetwork,
				undo: (*Runner).undoNetwork},
			{name: StepCreate, reason: session.ReasonCreateFailed,
				limit: func(l Limits) time.Duration { return l.Create }, do: (*Runner).createContainers,
				undo: (*Runner).removeContainers},
			{name: StepStart, reason: session.ReasonStartFailed, limit: func(l Limits) time.Duration { return l.Start },
				do: (*Runner).startContainers},
			{name: StepGuest, reason: session.ReasonStartFailed, limit: func(l Limits) time.Duration { return l.Guest },
				do: (*Runner).greetGuests, undo: (*Runner).dismissGuests},
		},
	}
)

// launch is one attempt at a stage.
type launch struct {
	course     *course
	session    session.Session
	containers []string // engine's ids in the order of kernels, once created
	missing    bool     // the image is not on this machine
	pinned     string   // the image by its digest
	steps      []session.Step
}

// errSkipped is returned by a step that has nothing to do.
var errSkipped = errors.New("nothing to do")

// stepError is the failure of one step for good or for now.
type stepError struct {
	step  step
	cause *session.Error
}

func (e *stepError) Error() string { return e.step.name + ": " + e.cause.Error() }
func (e *stepError) Unwrap() error { return e.cause }

// launch brings a placed session through the stage that its status is in. It
// returns nil when the record has moved on.
func (r *Runner) launch(ctx context.Context, c *course, s session.Session) error {
	st := prepareStage
	if s.Status == session.Prepared || s.Status == session.Creating {
		st = startStage
	}
	s, err := r.changeLaunch(s, func(d *records.Draft) error { return d.Enter(st.phase) })
	if err != nil {
		return err
	}
	l := &launch{course: c, session: s}
	defer c.setSteps(nil)
	failed := r.attempt(ctx, st, l)
	if failed == nil {
		_, err := st.done(r, l)
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return r.failed(ctx, st, l, failed)
}

// changeLaunch changes a session that is being launched as s, and fails with
// errInterrupted where the record says something else by now: its end was
// asked for, or it is another placement.
func (r *Runner) changeLaunch(s session.Session, fn func(*records.Draft) error) (session.Session, error) {
	return r.config.Records.Change(s.ID, func(d *records.Draft) error {
		if d.Attempt != s.Attempt || !d.Status.HoldsResources() || d.Status == session.Running ||
			d.Status == session.Terminating {
			return errInterrupted
		}
		return fn(d)
	})
}

// attempt runs the steps of a stage in order and records each.
func (r *Runner) attempt(ctx context.Context, st stage, l *launch) *stepError {
	for _, s := range st.steps {
		record := session.Step{Step: s.name, Result: session.OutcomeRunning, StartedAt: r.config.Clock.Now().UTC()}
		l.course.setSteps(append(slices.Clone(l.steps), record))
		err := engine.Within(ctx, s.limit(r.config.Limits), s.name,
			func(ctx context.Context) error { return s.do(r, ctx, l) })
		ended := r.config.Clock.Now().UTC()
		record.EndedAt, record.Result = &ended, session.OutcomeSuccess
		var failed *stepError
		switch {
		case errors.Is(err, errSkipped):
			record.Result = session.OutcomeSkipped
		case err != nil:
			failed = &stepError{step: s, cause: session.AsError(err, session.Code("session_"+s.name+"_failed"))}
			record.Result, record.Code, record.Message, record.Said = session.OutcomeFailure, failed.cause.Code,
				failed.cause.Message, failed.cause.Said
			if failed.cause.Code.Detail() == session.DetailTimeout {
				record.Result = session.OutcomeExpired
			}
		}
		l.steps = append(l.steps, record)
		l.course.setSteps(slices.Clone(l.steps))
		if failed != nil {
			return failed
		}
	}
	return nil
}

// failed decides what follows a failed attempt: the queue if the engine does
// not answer, another attempt if the reason may pass, else the end.
func (r *Runner) failed(ctx context.Context, st stage, l *launch, failed *stepError) error {
	cause := session.CauseOf(failed.cause, failed.cause.Code)
	if engine.Unavailable(r.config.Health.Heed(failed.cause)) {
		return r.requeue(l, cause)
	}
	if failed.cause.Code == others.CodeTaken {
		return r.standBack(ctx, st, l, cause)
	}
	if !Lasting(failed.cause.Code) {
		retry, err := r.prepareRetry(st, l, cause)
		if err != nil {
			return err
		}
		if retry > 0 {
			return r.retry(ctx, st, l, retry)
		}
	}
	_, err := r.changeLaunch(l.session, func(d *records.Draft) error {
		outcome := session.OutcomeFailure
		if failed.cause.Code.Detail() == session.DetailTimeout {
			outcome = session.OutcomeExpired
		}
		if p, found, err := d.Phase(st.phase); err != nil {
			return err
		} else if found && p.Attempts >= session.MaxAttempts {
			outcome = session.OutcomeGiveUp
		}
		if err := d.End(st.phase, outcome, l.steps, cause); err != nil {
			return err
		}
		d.Error, d.Stopping, d.Result = cause, failed.step.reason, session.ResultFailure
		return d.BeginEnd()
	})
	return err
}

// prepareRetry stores that another attempt will follow and returns how many
// were made, or 0 where there will be no other.
func (r *Runner) prepareRetry(st stage, l *launch, cause *session.Cause) (attempts int, err error) {
	_, err = r.changeLaunch(l.session, func(d *records.Draft) error {
		attempts = 0
		p, found, err := d.Phase(st.phase)
		if err != nil || !found || p.Attempts >= session.MaxAttempts ||
			d.Now.Sub(p.CreatedAt) > st.limit(r.config.Limits) {
			return err
		}
		attempts = p.Attempts
		d.Error = cause
		return d.End(st.phase, session.OutcomeNeedRetry, l.steps, cause)
	})
	return attempts, err
}

// retry undoes an attempt and waits before the next, which the course begins.
func (r *Runner) retry(ctx context.Context, st stage, l *launch, attempts int) error {
	if err := r.undo(ctx, st, l); err != nil {
		if engine.Unavailable(r.config.Health.Heed(err)) {
			return r.requeue(l, session.CauseOf(err, engine.CodeUnavailable))
		}
		r.config.Log.Warn("a failed attempt could not be undone", "session", l.session.ID, "err", err)
	}
	return r.config.Clock.Pause(ctx, r.config.Limits.Pause(attempts))
}

// undo undoes the steps of an attempt in the reverse order.
func (r *Runner) undo(ctx context.Context, st stage, l *launch) error {
	for i := len(l.steps) - 1; i >= 0; i-- {
		if st.steps[i].undo == nil {
			continue
		}
		if err := engine.Within(ctx, r.config.Limits.Call, "undo",
			func(ctx context.Context) error { return st.steps[i].undo(r, ctx, l) }); err != nil {
			return err
		}
	}
	return nil
}

// requeue gives a placement up because the engine does not answer, or because
// its devices are taken. What it has left is removed when the engine is compared
// with the records again.
func (r *Runner) requeue(l *launch, cause *session.Cause) error {
	l.course.links.Drop()
	_, err := r.changeLaunch(l.session, func(d *records.Draft) error {
		if err := d.InterruptPhases(cause.Message, cause.Said...); err != nil {
			return err
		}
		d.Grants, d.Kernels, d.Enforcement, d.Error = session.Grants{}, nil, "", cause
		if err := d.To(session.Pending); err != nil {
			return err
		}
		return d.Begin(session.PhaseSchedule, session.Scheduled)
	})
	r.config.Machine.PlanAgain()
	return err
}

// standBack undoes an attempt whose devices are another's and puts the session
// back in line.
func (r *Runner) standBack(ctx context.Context, st stage, l *launch, cause *session.Cause) error {
	if err := r.undo(ctx, st, l); err != nil {
		_ = r.config.Health.Heed(err)
		r.config.Log.Warn("a placement that was given up could not be undone", "session", l.session.ID, "err", err)
	}
	if err := r.config.Clock.Pause(ctx, r.config.Limits.Pause(1)); err != nil {
		return err
	}
	return r.requeue(l, cause)
}

// Lasting reports whether a failure will be the same the next time.
func Lasting(code session.Code) bool {
	switch code {
	case "engine_pull_not-found", "engine_start_failed", "engine_guest_exited", "engine_guest_unsafe-image",
		"guest_connect_version", "folder_open_changed", offlimits.CodeForbidden:
		return true
	}
	if strings.HasPrefix(string(code), "engine_") {
		switch code.Detail() {
		case session.DetailInvalid, session.DetailForbidden, "no-space", "no-image", "no-guest", "mount-missing",
			"remote-engine", "wrong-platform", "rate-limited":
			return true
		}
	}
	return strings.HasPrefix(string(code), "session_start_")
}

// prepared stores that the image is there.
func (r *Runner) prepared(l *launch) (session.Session, error) {
	return r.changeLaunch(l.session, func(d *records.Draft) error {
		return d.Prepared(l.steps, l.pinned)
	})
}

// started stores that the session runs.
func (r *Runner) started(l *launch) (session.Session, error) {
	defer r.config.Machine.Started(l.session.ID)
	return r.changeLaunch(l.session, func(d *records.Draft) error {
		_, trouble := l.course.heard()
		d.WarnOfTrouble(trouble)
		return d.Started(l.steps, l.containers)
	})
}

func (r *Runner) findImage(ctx context.Context, l *launch) error {
	found, err := r.config.Engine.Image(ctx, l.session.Spec.Image)
	if err == nil {
		l.pinned = session.PinImage(l.session.Spec.Image, found)
		err = r.config.Images.MayUse(l.session, found)
	}
	if session.CodeOf(err) == "engine_image_not-found" {
		l.missing = true
		return nil
	}
	return err
}

// pullImage pulls the image if it is missing.
func (r *Runner) pullImage(ctx context.Context, l *launch) error {
	if !l.missing {
		return errSkipped
	}
	if err := images.NoRegistry(l.session.Spec.Image); err != nil {
		return err
	}
	s, err := r.changeLaunch(l.session, func(d *records.Draft) error { return d.To(session.Pulling) })
	if err != nil {
		return err
	}
	l.session = s
	err = r.config.Images.Fetch(ctx, s.Spec.Image, r.config.Images.MayLogin(s.Owner, s.ByAdmin),
		func(p session.Pull) { r.showPull(s, &p) })
	r.showPull(s, nil)
	if err != nil {
		return err
	}
	return r.findImage(ctx, l)
}

// showPull notes the progress of a pull, nil once it is over, and tells of it.
func (r *Runner) showPull(s session.Session, progress *session.Pull) {
	r.mu.Lock()
	if progress == nil {
		delete(r.pulls, s.ID)
	} else {
		r.pulls[s.ID] = progress
	}
	r.mu.Unlock()
	if progress != nil {
		r.config.Machine.Pulling(s)
	}
}

// createContainers makes a container for each kernel, one after the other.
// Those with devices are made such that no other agent gives the same.
func (r *Runner) createContainers(ctx context.Context, l *launch) error {
	create := func(ctx context.Context) ([]string, error) {
		err := r.createAll(ctx, l)
		return l.containers, err
	}
	if len(l.session.Grants.GPUs) > 0 {
		return r.config.Alone(ctx, l.session, create)
	}
	_, err := create(ctx)
	return err
}

func (r *Runner) createAll(ctx context.Context, l *launch) error {
	l.containers = nil
	mounts, err := r.config.Folders.Mounts(l.session)
	if err != nil {
		return err
	}
	for number := range l.session.Kernels {
		c := r.container(l.session, number)
		c.Mounts, c.Hidden, c.Guest.Pins = mounts.List, mounts.Hidden, mounts.Pins
		id, err := r.config.Engine.Create(ctx, c)
		if err != nil {
			return ofKernel(err, l.session, number)
		}
		l.containers = append(l.containers, id)
	}
	return nil
}

// startContainers starts the kernels, the main one last, so that the others are
// there when its command begins.
func (r *Runner) startContainers(ctx context.Context, l *launch) error {
	for number := len(l.containers) - 1; number >= 0; number-- {
		if err := r.config.Engine.Start(ctx, l.containers[number]); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

// ofKernel says which kernel of several an error is about.
func ofKernel(err error, s session.Session, number int) error {
	var known *session.Error
	if err == nil || len(s.Kernels) < 2 || !errors.As(err, &known) || engine.Unavailable(err) {
		return err
	}
	named := *known
	named.Message = s.Kernels[number].Name + ": " + named.Message
	return &named
}

// removeContainers undoes create: it removes whatever containers the session
// has.
func (r *Runner) removeContainers(ctx context.Context, l *launch) error {
	if len(l.containers) == len(l.session.Kernels) {
		var err error
		for _, id := range l.containers {
			err = errors.Join(err, r.config.Engine.Remove(ctx, id))
		}
		return err
	}
	return r.removeAll(ctx, l.session.ID)
}

func (r *Runner) createNetwork(ctx context.Context, l *launch) error {
	return r.config.Networks.Create(ctx, l.session)
}
func (r *Runner) undoNetwork(ctx context.Context, l *launch) error {
	return r.config.Networks.Leave(ctx, l.session)
}

// removeAll removes every container of a session.
func (r *Runner) removeAll(ctx context.Context, id session.ID) error {
	states, err := r.config.Engine.List(ctx)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Labels[engine.LabelSession] == string(id) {
			err = errors.Join(err, r.config.Engine.Remove(ctx, state.ID))
		}
	}
	return err
}

// greetGuests waits until every guest is set up. A batch command may have ended
// before anybody greeted its guest: it has run all the same.
func (r *Runner) greetGuests(ctx context.Context, l *launch) error {
	links := make([]*guests.Link, len(l.containers))
	for number, id := range l.containers {
		links[number] = l.course.links.Ensure(l.session.Kernels[number].Name, id)
	}
	for number, g := range links {
		if err := r.greetGuest(ctx, l, number, g); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

func (r *Runner) greetGuest(ctx context.Context, l *launch, number int, g *guests.Link) error {
	err := g.AwaitReady(ctx)
	if err == nil || number > 0 || l.session.Spec.Type != session.Batch ||
		session.CodeOf(err) != "engine_guest_exited" {
		return err
	}
	state, inspectErr := r.config.Engine.Inspect(ctx, l.containers[number])
	if inspectErr == nil && !state.Running && !state.StartedAt.IsZero() && state.Error == "" {
		return nil
	}
	return err
}

func (r *Runner) dismissGuests(_ context.Context, l *launch) error {
	l.course.links.Drop()
	return nil
}
