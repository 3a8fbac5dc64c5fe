package launch

import (
	"context"
	"errors"
	"slices"
	"time"

	"slipway/backend/agent/guests"
	"slipway/backend/agent/host"
	"slipway/backend/agent/images"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
)

// step is one step of a launch. do may be repeated after a crash. undo removes what do may have left, if anything.
type step struct {
	name   string
	reason session.Reason // of the end, if the step fails for good
	limit  time.Duration
	do     func(*launch, context.Context) error
	undo   func(*launch, context.Context) error
}

type stage struct {
	phase session.PhaseName
	limit time.Duration // of all attempts together
	steps []step
	done  func(*launch, *records.Draft) error // moves the session to the next status
}

func stageOf(status session.Status, l host.Limits) stage {
	if status == session.Prepared || status == session.Creating {
		return stage{phase: session.PhaseStart, limit: l.Launch, done: (*launch).started, steps: []step{
			{"network", session.ReasonCreateFailed, l.Call, (*launch).createNetwork, (*launch).undoNetwork},
			{"create", session.ReasonCreateFailed, l.Create, (*launch).createContainers, (*launch).removeContainers},
			{"start", session.ReasonStartFailed, l.Start, (*launch).startContainers, nil},
			{"guest", session.ReasonStartFailed, l.Guest, (*launch).greetGuests, (*launch).dismissGuests},
		}}
	}
	return stage{phase: session.PhasePrepare, limit: l.Prepare, done: (*launch).prepared, steps: []step{
		{"image", session.ReasonPullFailed, l.Call, (*launch).findImage, nil},
		{"pull", session.ReasonPullFailed, l.Pull, (*launch).pullImage, nil},
	}}
}

type launch struct {
	runner     *Runner
	course     *course
	stage      stage
	session    session.Session
	containers []string // engine's ids in the order of kernels, once created
	missing    bool     // the image is not on this machine
	pinned     string   // the image by its digest
	steps      []session.Step
}

var errSkipped = errors.New("nothing to do") // returned by a step

// launch takes a placed session through the stage of its status. It returns nil when the record has moved on.
func (r *Runner) launch(ctx context.Context, c *course, s session.Session) error {
	st := stageOf(s.Status, r.config.Limits)
	l := &launch{runner: r, course: c, stage: st, session: s}
	var err error
	if l.session, err = l.change(func(d *records.Draft) error { return d.Enter(st.phase) }); err != nil {
		return err
	}
	defer c.setSteps(nil)
	failed := l.attempt(ctx)
	if failed == nil {
		_, err := l.change(func(d *records.Draft) error { return st.done(l, d) })
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return l.failed(ctx, failed)
}

// change changes the session that is launched. It fails with errInterrupted if the record has moved on.
func (l *launch) change(fn func(*records.Draft) error) (session.Session, error) {
	return l.runner.config.Records.Change(l.session.ID, func(d *records.Draft) error {
		ran := l.session.Status == session.Running
		if d.Attempt != l.session.Attempt || !d.Status.HoldsResources() || d.Status == session.Running != ran ||
			d.Status == session.Terminating {
			return errInterrupted
		}
		return fn(d)
	})
}

// attempt runs the steps of a stage in order and records each.
func (l *launch) attempt(ctx context.Context) *session.Error {
	for _, s := range l.stage.steps {
		record, err := l.runner.step(ctx, l.course, l.steps, s.name, s.limit,
			func(ctx context.Context) error { return s.do(l, ctx) })
		var failed *session.Error
		if err != nil {
			failed = session.AsError(err, record.Code)
			if failed.Code.Detail() == session.DetailTimeout {
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

// failed decides what follows a failure: the queue if the engine is down, a retry if the reason may pass, else the end.
func (l *launch) failed(ctx context.Context, failed *session.Error) error {
	cause := session.CauseOf(failed, failed.Code)
	if engine.Unavailable(l.runner.config.Health.Heed(failed)) {
		return l.requeue(cause)
	}
	if failed.Code == session.CodeDevicesTaken {
		return l.standBack(ctx, cause)
	}
	if !host.Lasting(failed.Code) {
		retry, err := l.prepareRetry(cause)
		if err != nil {
			return err
		}
		if retry > 0 {
			return l.retry(ctx, retry)
		}
	}
	_, err := l.change(func(d *records.Draft) error {
		last := len(l.steps) - 1 // the step that failed
		outcome := l.steps[last].Result
		if p, found, err := d.Phase(l.stage.phase); err != nil {
			return err
		} else if found && p.Attempts >= session.MaxAttempts {
			outcome = session.OutcomeGiveUp
		}
		if err := d.End(l.stage.phase, outcome, l.steps, cause); err != nil {
			return err
		}
		d.Error, d.Stopping, d.Result = cause, l.stage.steps[last].reason, session.ResultFailure
		return d.BeginEnd()
	})
	return err
}

// prepareRetry stores that another attempt follows and returns the number of attempts so far, 0 if none follows.
func (l *launch) prepareRetry(cause *session.Cause) (attempts int, err error) {
	_, err = l.change(func(d *records.Draft) error {
		attempts = 0
		p, found, err := d.Phase(l.stage.phase)
		if err != nil || !found || p.Attempts >= session.MaxAttempts || d.Now.Sub(p.CreatedAt) > l.stage.limit {
			return err
		}
		attempts = p.Attempts
		d.Error = cause
		return d.End(l.stage.phase, session.OutcomeNeedRetry, l.steps, cause)
	})
	return attempts, err
}

// retry undoes an attempt and waits before the next, which the course begins.
func (l *launch) retry(ctx context.Context, attempts int) error {
	if err := l.undo(ctx); err != nil {
		if engine.Unavailable(l.runner.config.Health.Heed(err)) {
			return l.requeue(session.CauseOf(err, session.CodeEngineUnavailable))
		}
		l.runner.config.Log.Warn("a failed attempt could not be undone", "session", l.session.ID, "err", err)
	}
	return l.runner.config.Clock.Pause(ctx, l.runner.config.Limits.Pause(attempts))
}

func (l *launch) undo(ctx context.Context) error {
	for i := len(l.steps) - 1; i >= 0; i-- {
		if l.stage.steps[i].undo == nil {
			continue
		}
		if err := engine.Within(ctx, l.runner.config.Limits.Call, "undo",
			func(ctx context.Context) error { return l.stage.steps[i].undo(l, ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// requeue ends a placement because the engine does not answer, or its devices are in use. Reconcile removes the rest.
func (l *launch) requeue(cause *session.Cause) error {
	l.course.links.Drop()
	_, err := l.change(func(d *records.Draft) error {
		if err := d.InterruptPhases(cause.Message, cause.Said...); err != nil {
			return err
		}
		d.Grants, d.Kernels, d.Enforcement, d.Error = session.Grants{}, nil, "", cause
		if err := d.To(session.Pending); err != nil {
			return err
		}
		return d.Begin(session.PhaseSchedule, session.Scheduled)
	})
	l.runner.config.PlanAgain()
	return err
}

// waitAgain puts a RUNNING session back in the queue, because another scheduler has taken what it had for now.
func (l *launch) waitAgain(ctx context.Context, cause *session.Cause) error {
	if err := engine.Within(ctx, l.runner.config.Limits.Call, "remove", l.removeContainers); err != nil {
		return err
	}
	return l.requeue(cause)
}

// standBack undoes an attempt whose devices another agent uses, and puts the session back in the queue.
func (l *launch) standBack(ctx context.Context, cause *session.Cause) error {
	config := l.runner.config
	if err := l.undo(ctx); err != nil {
		_ = config.Health.Heed(err)
		config.Log.Warn("a placement that was given up could not be undone", "session", l.session.ID, "err", err)
	}
	if err := config.Clock.Pause(ctx, config.Limits.Pause(1)); err != nil {
		return err
	}
	return l.requeue(cause)
}

func (l *launch) prepared(d *records.Draft) error { return d.Prepared(l.steps, l.pinned) }

func (l *launch) started(d *records.Draft) error {
	d.WarnOfTrouble(l.course.trouble.Load())
	return d.Started(l.steps, l.containers)
}

func (l *launch) findImage(ctx context.Context) error {
	found, err := l.runner.config.Engine.Image(ctx, l.session.Spec.Image)
	if err == nil {
		l.pinned = session.PinImage(l.session.Spec.Image, found)
		err = l.runner.config.Images.MayUse(l.session, found)
	}
	if session.CodeOf(err) == session.CodeNoImage {
		l.missing = true
		return nil
	}
	return err
}

func (l *launch) pullImage(ctx context.Context) error {
	if !l.missing {
		return errSkipped
	}
	if err := images.NoRegistry(l.session.Spec.Image); err != nil {
		return err
	}
	asked, err := l.runner.pullRequest(l.session)
	if err != nil {
		return err
	}
	s, err := l.change(func(d *records.Draft) error { return d.To(session.Pulling) })
	if err != nil {
		return err
	}
	l.session = s
	err = l.runner.config.Images.Fetch(ctx, asked, func(p session.Pull) { l.runner.showPull(s, &p) })
	l.runner.showPull(s, nil)
	if err != nil {
		return err
	}
	return l.findImage(ctx)
}

// createContainers creates a container for each kernel, with devices such that no other agent uses the same.
func (l *launch) createContainers(ctx context.Context) error {
	if len(l.session.Grants.GPUs) > 0 {
		return l.runner.config.Others.Create(ctx, l.session, l.createAll)
	}
	_, err := l.createAll(ctx)
	return err
}

func (l *launch) createAll(ctx context.Context) ([]string, error) {
	l.containers = nil
	if l.session.Spec.KeepsHome() {
		s, err := l.change(l.runner.config.Folders.AddHome)
		if err != nil {
			return nil, err
		}
		l.session = s
	}
	containers, err := l.runner.containers(l.session)
	if err != nil {
		return nil, err
	}
	for number, c := range containers {
		id, err := l.runner.config.Engine.Create(ctx, c)
		if err != nil {
			return nil, ofKernel(err, l.session, number)
		}
		l.containers = append(l.containers, id)
	}
	return l.containers, nil
}

// startContainers starts the kernels, the main one last, so that the others run when its command begins.
func (l *launch) startContainers(ctx context.Context) error {
	for number := len(l.containers) - 1; number >= 0; number-- {
		if err := l.runner.config.Engine.Start(ctx, l.containers[number]); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

// ofKernel adds the name of the kernel to an error if there are several.
func ofKernel(err error, s session.Session, number int) error {
	var known *session.Error
	if err == nil || len(s.Kernels) < 2 || !errors.As(err, &known) || engine.Unavailable(err) {
		return err
	}
	named := *known
	named.Message = s.Kernels[number].Name + ": " + named.Message
	return &named
}

func (l *launch) createNetwork(ctx context.Context) error {
	return l.runner.networks.create(ctx, l.session)
}

func (l *launch) undoNetwork(ctx context.Context) error {
	return l.runner.networks.leave(ctx, l.runner.networks.of(l.session).Name, l.session.ID)
}

// removeContainers undoes createContainers: it removes every container of the session.
func (l *launch) removeContainers(ctx context.Context) error {
	states, err := l.runner.config.Engine.List(ctx)
	if err != nil {
		return err
	}
	for _, state := range states {
		if state.Labels[engine.LabelSession] == string(l.session.ID) {
			err = errors.Join(err, l.runner.config.Engine.Remove(ctx, state.ID))
		}
	}
	return err
}

// greetGuests waits until every guest is set up. A batch command may have ended before that, which is a success too.
func (l *launch) greetGuests(ctx context.Context) error {
	links := make([]*guests.Link, len(l.containers))
	for number, id := range l.containers {
		links[number] = l.course.links.Ensure(l.session.Kernels[number].Name, id)
	}
	for number, g := range links {
		if err := l.greetGuest(ctx, number, g); err != nil {
			return ofKernel(err, l.session, number)
		}
	}
	return nil
}

func (l *launch) greetGuest(ctx context.Context, number int, g *guests.Link) error {
	err := g.AwaitReady(ctx)
	if err == nil || number > 0 || !l.session.Spec.RunsCommand() ||
		session.CodeOf(err) != session.CodeGuestExited {
		return err
	}
	state, inspectErr := l.runner.config.Engine.Inspect(ctx, l.containers[number])
	if inspectErr == nil && !state.Running && !state.StartedAt.IsZero() && state.Error == "" {
		return nil
	}
	return err
}

func (l *launch) dismissGuests(_ context.Context) error {
	l.course.links.Drop()
	return nil
}
