package records

import (
	"slices"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// Enter moves a session into a stage and opens its row.
func (d *Draft) Enter(phase session.PhaseName) error {
	before, within, after := session.Scheduled, session.Preparing, session.Prepared
	if phase == session.PhaseStart {
		before, within, after = session.Prepared, session.Creating, session.Running
	}
	if err := d.Begin(phase, after); err != nil || d.Status != before {
		return err
	}
	return d.To(within)
}

// Prepared moves a session whose image is there to CREATING.
func (d *Draft) Prepared(steps []session.Step, pinned string) error {
	if err := d.End(session.PhasePrepare, session.OutcomeSuccess, steps, nil); err != nil {
		return err
	}
	d.Error, d.Pinned = nil, pinned
	if err := d.To(session.Prepared); err != nil {
		return err
	}
	return d.Enter(session.PhaseStart)
}

// Started moves a session to RUNNING. containers are the engine's ids in the order
// of kernels.
func (d *Draft) Started(steps []session.Step, containers []string) error {
	if err := d.End(session.PhaseStart, session.OutcomeSuccess, steps, nil); err != nil {
		return err
	}
	d.Error = nil
	d.Kernels = slices.Clone(d.Kernels)
	for i := range d.Kernels {
		d.Kernels[i].Container = containers[i]
	}
	return d.To(session.Running)
}

// Place stores a placement: the grants, SCHEDULED and PREPARING.
func (d *Draft) Place(p scheduler.Placement, level gpu.Level) error {
	steps := make([]session.Step, len(p.Steps))
	for i, s := range p.Steps {
		steps[i] = session.Step{Step: s.Name, Result: session.OutcomeSuccess, Message: s.Message, StartedAt: d.Now,
			EndedAt: &d.Now}
	}
	if err := d.End(session.PhaseSchedule, session.OutcomeSuccess, steps, nil); err != nil {
		return err
	}
	d.Grants, d.Enforcement, d.Error = p.Total(), level, nil
	d.Attempt++
	d.Kernels = make([]session.Kernel, len(p.Kernels))
	for i, grants := range p.Kernels {
		name := session.KernelName(i)
		d.Kernels[i] = session.Kernel{Name: name, Hostname: name, Grants: grants}
	}
	if err := d.To(session.Scheduled); err != nil {
		return err
	}
	return d.Enter(session.PhasePrepare)
}

// EndPending ends a session that never ran.
func (d *Draft) EndPending(end scheduler.End) error {
	outcome := session.OutcomeFailure
	if end.Reason == session.ReasonPendingTimeout {
		outcome = session.OutcomeExpired
	}
	step := session.Step{Step: scheduler.StepValidate, Result: outcome, Code: end.Cause.Code,
		Message: end.Cause.Message, Said: end.Cause.Said, StartedAt: d.Now, EndedAt: &d.Now}
	if err := d.End(session.PhaseSchedule, outcome, []session.Step{step}, &end.Cause); err != nil {
		return err
	}
	d.Stopping, d.Reason, d.Wait, d.Error = "", end.Reason, nil, &end.Cause
	return d.To(session.Cancelled)
}

// EndBy moves a RUNNING session to TERMINATING because one of its containers has
// ended, or vanished where state is nil.
func (d *Draft) EndBy(v Verdict, number int, state *engine.State) error {
	d.Stopping, d.Result, d.ExitCode, d.Error = v.Reason, v.Result, v.ExitCode, v.Cause
	if state != nil {
		d.Kernels = slices.Clone(d.Kernels)
		d.Kernels[number].ExitCode = &state.ExitCode
	}
	return d.BeginEnd()
}

// EndedFor says why what went on before an end did not go on.
func EndedFor(reason session.Reason) (string, session.Phrase) {
	said := session.Say("endedFor", session.Fill("reason", string(reason)))
	return said.English(), said
}

// BeginEnd moves a placed session to TERMINATING. Stopping holds the reason.
func (d *Draft) BeginEnd() error {
	if err := d.InterruptPhases(EndedFor(d.Stopping)); err != nil {
		return err
	}
	if err := d.Begin(session.PhaseTerminate, EndStatus(d.Session)); err != nil {
		return err
	}
	return d.To(session.Terminating)
}

// EndStatus is the terminal status that the reason for an end calls for.
func EndStatus(s session.Session) session.Status {
	switch s.Stopping {
	case session.ReasonCreateFailed, session.ReasonStartFailed, session.ReasonPullFailed, session.ReasonLost:
		return session.Failed
	}
	if s.StartedAt == nil {
		return session.Cancelled
	}
	return session.Terminated
}

// AskEnd moves a placed session to TERMINATING because an end is asked for.
func (d *Draft) AskEnd(reason session.Reason, forced bool) error {
	d.Stopping, d.Forced = reason, forced
	if reason == session.ReasonTaskTimeout {
		d.Result = session.ResultFailure
		d.Error = session.Because(session.CodeRunTimeout,
			session.Say("timedOut", session.Fill("timeout", d.Spec.Timeout.String())), session.Say("timedOutHint"))
	}
	return d.BeginEnd()
}

// Over moves a session to its terminal status. exits are the exit codes by kernel.
func (d *Draft) Over(exits map[string]int) error {
	d.Kernels = slices.Clone(d.Kernels)
	for i := range d.Kernels {
		if code, known := exits[d.Kernels[i].Name]; known && d.Kernels[i].ExitCode == nil {
			d.Kernels[i].ExitCode = &code
		}
	}
	if d.ExitCode == nil && d.StartedAt != nil && len(d.Kernels) > 0 {
		d.ExitCode = d.Kernels[0].ExitCode
	}
	status := EndStatus(d.Session)
	d.Reason, d.Stopping = d.Stopping, ""
	return d.To(status)
}

// WarnOfTrouble warns of what the guest has told of, nil if nothing.
func (d *Draft) WarnOfTrouble(cause *session.Cause) {
	if cause != nil {
		d.Warn(session.Warning{Code: cause.Code, Title: "The session reports trouble",
			Text: cause.Message + " " + cause.Hint})
	}
}
