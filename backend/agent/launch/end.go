package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/session"
)

// takenAway returns a cause if a container did not end by itself: the machine was restarted, or the engine stopped. A
// batch command ended by itself if the guest reported its end or it succeeded. One on another computer outlives both.
func (r *Runner) takenAway(c *course, s session.Session, number int, state *engine.State) *session.Cause {
	if state == nil || r.config.Health.State().Info.Elsewhere || (number == 0 && c.over.Load()) ||
		(s.Spec.RunsCommand() && !slices.Contains([]int{137, 143, 255}, state.ExitCode)) {
		return nil
	}
	if boot, err := r.config.Boot(); err == nil && state.StartedAt.Before(boot) {
		return session.Because(session.CodeMachineRestarted, session.Say("machineRestarted"),
			session.Say("launchAgain"))
	}
	if r.config.Health.During(state.FinishedAt) {
		return session.Because(session.CodeEngineStopped, session.Say("engineStopped"),
			session.Say("engineStoppedHint"))
	}
	return nil
}

func neverBegan(trouble *session.Cause) bool {
	return trouble != nil && slices.Contains([]session.Code{session.CodeNoShell, session.CodeProcessNotFound,
		session.CodeProcessForbidden, session.CodeGuestInternal, session.CodeAppExited}, trouble.Code)
}

// ended stores that a container of a RUNNING session has ended, or vanished if state is nil.
func (r *Runner) ended(ctx context.Context, c *course, s session.Session, number int, state *engine.State) error {
	if state != nil {
		c.links.AwaitSilence(ctx, s.Kernels[number].Name)
		if t := state.Taken; t != nil && t.Again {
			l := &launch{runner: r, course: c, session: s}
			return l.waitAgain(ctx, t.Cause)
		}
	}
	trouble := c.trouble.Load()
	oom := c.kills.Load() > 0 || slices.ContainsFunc(s.Warnings,
		func(w session.Warning) bool { return w.Code == session.CodeOOM })
	v := records.Judge(s, number, state, oom)
	if cause := r.takenAway(c, s, number, state); cause != nil {
		v.Reason, v.Result, v.Cause = session.ReasonLost, records.LostResult(s), cause
	}
	if v.Reason == session.ReasonTaskFailed && neverBegan(trouble) {
		v.Reason, v.Cause = session.ReasonStartFailed, trouble
	}
	_, err := r.config.Records.Change(s.ID, func(d *records.Draft) error {
		if d.Status != session.Running {
			return nil // someone else ended it meanwhile
		}
		return d.EndBy(v, number, state)
	})
	return err
}

func (r *Runner) Terminate(id session.ID, reason session.Reason, forced bool) (session.Session, error) {
	s, err := r.config.Records.Change(id, func(d *records.Draft) error {
		switch {
		case d.Status.Terminal():
			return nil
		case d.Status == session.Pending:
			d.Stopping, d.Reason, d.Wait = "", reason, nil
			if err := d.InterruptPhases(records.EndedFor(reason)); err != nil {
				return err
			}
			return d.To(session.Cancelled)
		case d.Status == session.Terminating:
			if forced && !d.Forced {
				d.Forced = true
				if d.Stopping == session.ReasonUser {
					d.Stopping = session.ReasonForced
				}
			}
			return nil
		}
		return d.AskEnd(reason, forced)
	})
	if err == nil {
		r.Interrupt(id)
		r.config.PlanAgain()
		if s.Status == session.Cancelled && s.Attempt > 0 {
			r.config.Health.CompareSoon()
		}
	}
	return s, err
}

// tearDown ends a TERMINATING session. The course retries a failure, up to five attempts. A forced end has one attempt,
// which reports what is left.
func (r *Runner) tearDown(ctx context.Context, c *course, s session.Session) error {
	if _, err := r.config.Records.Change(s.ID, func(d *records.Draft) error {
		if d.Status != session.Terminating {
			return errInterrupted
		}
		return d.Begin(session.PhaseTerminate, records.EndStatus(d.Session))
	}); err != nil {
		return err
	}
	t := &teardown{runner: r, course: c, session: s}
	if s.EndImage != nil {
		t.image = *s.EndImage
	}
	defer c.setSteps(nil)
	err := t.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		c.links.Drop()
		return r.finish(s, t, nil)
	}
	giveUp := s.Forced
	if !giveUp && !engine.Unavailable(err) {
		if _, changeErr := r.config.Records.Change(s.ID, func(d *records.Draft) error {
			p, found, err := d.Phase(session.PhaseTerminate)
			if err != nil || !found {
				return err
			}
			if giveUp = p.Attempts >= session.MaxAttempts; giveUp {
				return nil
			}
			return d.End(session.PhaseTerminate, session.OutcomeNeedRetry, t.steps,
				session.CauseOf(t.failure, session.CodeStepFailed))
		}); changeErr != nil {
			return changeErr
		}
	}
	if !giveUp {
		return err
	}
	r.config.Health.Heed(err) //nolint:errcheck // it is handled here
	c.links.Drop()
	return r.finish(s, t, err)
}

// teardown is one attempt at ending a session.
type teardown struct {
	runner  *Runner
	course  *course
	session session.Session
	states  []engine.State // of the containers to remove
	exits   map[string]int // exit codes by kernel
	blind   bool           // it is unknown which containers exist
	steps   []session.Step
	said    string           // message of the step under way
	image   session.EndImage // without a state if none is made
	failure error
	logLost error
	left    []string // names of containers that could not be removed
}

func (t *teardown) run(ctx context.Context) error {
	r := t.runner
	if work := r.config.Images.Committing(t.session.ID); work != "" {
		if err := t.step(ctx, "commit", r.config.Limits.Commit,
			func(ctx context.Context) error { return t.awaitCommit(ctx, work) }); err != nil {
			return err
		}
	}
	if err := t.step(ctx, "stop", r.config.Limits.Call+r.config.Limits.Grace, t.stop); err != nil {
		if !t.session.Forced {
			return err
		}
		t.blind = true
	}
	limit := r.config.Limits.Logs
	if t.session.Forced {
		limit = min(limit, 3*time.Second)
	}
	if err := t.step(ctx, "logs", limit, t.keepLogs); err != nil {
		if engine.Unavailable(err) && !t.session.Forced {
			return err
		}
		t.logLost = err // the end matters more than its log
	}
	if err := t.makeImage(ctx); err != nil {
		return err
	}
	if err := t.step(ctx, "remove", r.config.Limits.Call, t.remove); err != nil {
		return err
	}
	return t.step(ctx, "network", r.config.Limits.Call, func(ctx context.Context) error {
		return r.networks.leave(ctx, r.networks.of(t.session).Name, t.session.ID)
	})
}

func (t *teardown) step(ctx context.Context, name string, limit time.Duration, fn func(context.Context) error) error {
	t.said = ""
	step, err := t.runner.step(ctx, t.course, t.steps, name, limit, fn)
	if err != nil {
		t.failure = err
	} else {
		step.Message = t.said
	}
	t.steps = append(t.steps, step)
	t.course.setSteps(slices.Clone(t.steps))
	return err
}

// stop finds the session's containers and stops the running ones, all at once.
func (t *teardown) stop(ctx context.Context) error {
	if err := t.find(ctx); err != nil {
		return err
	}
	var all sync.WaitGroup
	failures := make([]error, len(t.states))
	for i := range t.states {
		if t.states[i].Running && !t.session.Forced {
			all.Go(func() { t.states[i], failures[i] = t.stopOne(ctx, t.states[i]) })
		}
	}
	all.Wait()
	for _, state := range t.states {
		if !state.Running && !state.Created {
			t.exits[kernelOf(state)] = state.ExitCode
		}
	}
	for _, err := range failures {
		if engine.Unavailable(err) {
			return err
		}
	}
	return errors.Join(failures...)
}

func (t *teardown) stopOne(ctx context.Context, state engine.State) (engine.State, error) {
	e := t.runner.config.Engine
	if err := e.Stop(ctx, state.ID, t.runner.config.Limits.Grace); err != nil {
		return state, err
	}
	if now, err := e.Inspect(ctx, state.ID); err == nil {
		return now, nil
	}
	return state, nil
}

// find finds the session's containers: those in its record, or all with its label if the record does not have each.
func (t *teardown) find(ctx context.Context) error {
	r, s := t.runner, t.session
	t.states, t.exits = nil, map[string]int{}
	if ids := s.Containers(); len(ids) > 0 && len(ids) == len(s.Kernels) {
		for i, id := range ids {
			state, err := r.config.Engine.Inspect(ctx, id)
			switch {
			case session.CodeOf(err) == session.CodeNoContainer:
				// It is gone, but removing it also removes what it left behind.
				state = engine.State{ID: id, Name: id, Created: true,
					Labels: map[string]string{engine.LabelKernel: s.Kernels[i].Name}}
			case err != nil:
				return err
			}
			t.states = append(t.states, state)
		}
		return nil
	}
	states, err := r.config.Engine.List(ctx)
	if err != nil {
		return err
	}
	t.states = slices.DeleteFunc(states,
		func(state engine.State) bool { return state.Labels[engine.LabelSession] != string(s.ID) })
	return nil
}

func (t *teardown) keepLogs(ctx context.Context) error {
	for _, state := range t.states {
		if state.Created {
			continue
		}
		if err := t.runner.config.Logs.Copy(ctx, t.session.ID, kernelOf(state), state.ID); err != nil {
			return err
		}
	}
	return nil
}

// remove removes what stop has found, or, if it could not look, the containers that the record names.
func (t *teardown) remove(ctx context.Context) error {
	states := t.states
	if t.blind && len(states) == 0 {
		for _, id := range t.session.Containers() {
			states = append(states, engine.State{ID: id, Name: id})
		}
		if len(states) == 0 {
			return t.failure
		}
	}
	var failure error
	t.left = nil
	for _, state := range states {
		if t.image.Kept && kernelOf(state) == session.MainKernel {
			continue
		}
		if err := t.runner.config.Engine.Remove(ctx, state.ID); err != nil {
			t.left = append(t.left, state.Name)
			failure = errors.Join(failure, err)
		}
	}
	return failure
}

func kernelOf(state engine.State) string {
	return cmp.Or(state.Labels[engine.LabelKernel], session.MainKernel)
}

// finish stores the end of a session. failure is why something may be left.
func (r *Runner) finish(s session.Session, t *teardown, failure error) error {
	if failure != nil {
		r.leftovers.leaveBehind(s) // before its grants are free
	}
	ended, err := r.config.Records.Change(s.ID, func(d *records.Draft) error {
		outcome, cause := session.OutcomeSuccess, (*session.Cause)(nil)
		if failure != nil {
			outcome, cause = session.OutcomeGiveUp, session.CauseOf(failure, session.CodeStepFailed)
			d.Warn(session.Warning{Code: session.CodeLeftBehind, Title: "Something was left behind",
				Text: leftText(t, cause)})
		}
		if t.logLost != nil {
			d.Warn(session.Warning{Code: session.CodeLogLost, Title: "The log is incomplete",
				Text: session.CauseOf(t.logLost, session.CodeStepFailed).Message})
		}
		t.concludeImage(d, failure)
		if err := d.End(session.PhaseTerminate, outcome, t.steps, cause); err != nil {
			return err
		}
		return d.Over(t.exits)
	})
	if err != nil {
		return err
	}
	r.config.Ended(ended)
	r.config.PublishMachine()
	r.config.PlanAgain()
	return nil
}

func leftText(t *teardown, cause *session.Cause) string {
	what := "The session's containers"
	if names := cmp.Or(strings.Join(t.left, ", "), strings.Join(t.session.Containers(), ", ")); names != "" {
		what = "The container " + names
	}
	return fmt.Sprintf("%s could not be removed: %s Slipway keeps trying while it runs.", what, cause.Message)
}

func (r *Runner) EndSession(id session.ID, ending host.Ending) (session.Session, error) {
	s, err := r.config.Records.Change(id, func(d *records.Draft) error {
		if d.Status != session.Running || ending.Still != nil && !ending.Still(d.Session) {
			return nil
		}
		if ending.Park && d.Parkable() && !r.config.noImages() {
			if err := park(d); err != nil {
				return err
			}
		}
		d.Stopping, d.Error = ending.Reason, ending.Cause
		if d.Spec.RunsCommand() {
			d.Result = session.ResultFailure
		}
		return d.BeginEnd()
	})
	if err == nil {
		r.Interrupt(id)
		r.config.PlanAgain()
	}
	return s, err
}
