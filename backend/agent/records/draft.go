package records

import (
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Draft is a session that one transaction changes. Each status that it enters is stored and published as a version.
type Draft struct {
	session.Session
	Now      time.Time
	tx       *store.Tx
	ended    func(session.ID) time.Time
	peak     func(session.ID) gpu.Bytes
	stored   session.Session
	versions []session.Session
	wrote    bool
}

// save stores the draft if it differs from what is stored.
func (d *Draft) save() error {
	if reflect.DeepEqual(d.Session, d.stored) {
		return nil
	}
	d.Kernels = slices.Clone(d.Kernels)
	for i := range d.Kernels {
		d.Kernels[i].Status = d.Status
		if d.Kernels[i].ExitCode != nil && d.Status == session.Terminating {
			d.Kernels[i].Status = session.Terminated // it took the session along
		}
	}
	if err := d.tx.Put(&d.Session); err != nil {
		return err
	}
	d.stored, d.wrote = d.Session, true
	d.versions = append(d.versions, d.Session)
	return nil
}

// To moves the session to a status and sets its timestamp.
func (d *Draft) To(status session.Status) error {
	d.Status = status
	switch status {
	case session.Scheduled:
		d.ScheduledAt = &d.Now
	case session.Running:
		d.StartedAt = &d.Now
	case session.Pending:
		d.ScheduledAt, d.StartedAt = nil, nil
	}
	if status.Terminal() {
		d.TerminatedAt = new(d.ended(d.ID))
		if d.peak != nil {
			d.PeakMemory = d.peak(d.ID)
		}
	}
	return d.save()
}

// Phase returns the newest row of a phase.
func (d *Draft) Phase(name session.PhaseName) (session.Phase, bool, error) {
	phases, err := d.tx.Phases(d.ID)
	if err != nil {
		return session.Phase{}, false, err
	}
	for _, p := range slices.Backward(phases) {
		if p.Phase == name {
			return p, true, nil
		}
	}
	return session.Phase{}, false, nil
}

func (d *Draft) PutPhase(p session.Phase) error {
	d.wrote = true
	return d.tx.PutPhase(&p)
}

// ListFolders returns all folders of the machine, in the transaction of the draft.
func (d *Draft) ListFolders() ([]session.Folder, error) { return d.tx.Folders() }

func (d *Draft) Folder(id session.FolderID) (session.Folder, error) { return d.tx.Folder(id) }

// PutFolder stores a folder together with the draft.
func (d *Draft) PutFolder(f session.Folder) error { return d.tx.PutFolder(f) }

// Begin opens a row for a phase. A row that waits for another attempt is reopened with a raised count.
func (d *Draft) Begin(name session.PhaseName, to session.Status) error {
	p, found, err := d.Phase(name)
	if err != nil {
		return err
	}
	switch {
	case found && p.Result == session.OutcomeRunning:
		return nil
	case found && p.Result == session.OutcomeNeedRetry:
		p.Attempts++
		p.Result, p.Steps, p.UpdatedAt = session.OutcomeRunning, nil, d.Now
	default:
		p = session.Phase{Session: d.ID, Phase: name, Result: session.OutcomeRunning, From: d.Status, To: to,
			Attempts: 1, CreatedAt: d.Now, UpdatedAt: d.Now}
	}
	return d.PutPhase(p)
}

// End closes the open row of a phase with its outcome, the steps of its last attempt and the cause of a failure.
func (d *Draft) End(name session.PhaseName, outcome session.Outcome, steps []session.Step, cause *session.Cause) error {
	p, found, err := d.Phase(name)
	if err != nil || !found {
		return err
	}
	p.Result, p.Steps, p.UpdatedAt = outcome, steps, d.Now
	p.Code, p.Message, p.Said = "", "", nil
	if cause != nil {
		p.Code, p.Message, p.Said = cause.Code, cause.Message, cause.Said
	}
	return d.PutPhase(p)
}

// InterruptPhases closes every open row as STALE.
func (d *Draft) InterruptPhases(message string, said ...session.Phrase) error {
	phases, err := d.tx.Phases(d.ID)
	if err != nil {
		return err
	}
	for _, p := range phases {
		if p.Result != session.OutcomeRunning && p.Result != session.OutcomeNeedRetry {
			continue
		}
		p.Result, p.Message, p.Said, p.UpdatedAt = session.OutcomeStale, message, said, d.Now
		if err := d.PutPhase(p); err != nil {
			return err
		}
	}
	return nil
}

// Warn adds a warning, or updates the one with the same code and device.
func (d *Draft) Warn(w session.Warning) {
	w.At = d.Now
	d.Warnings = slices.Clone(d.Warnings)
	i := slices.IndexFunc(d.Warnings,
		func(old session.Warning) bool { return old.Code == w.Code && old.Device == w.Device })
	switch {
	case i < 0:
		d.Warnings = append(d.Warnings, w)
	case d.Warnings[i].Text != w.Text:
		d.Warnings[i] = w
	}
}

// Unwarn removes a warning; device is empty unless it is about one.
func (d *Draft) Unwarn(code session.Code, device gpu.UUID) {
	d.Warnings = slices.DeleteFunc(slices.Clone(d.Warnings),
		func(w session.Warning) bool { return w.Code == code && w.Device == device })
}

// Warn changes the warnings of a session while it runs, and reports whether they are stored. A failure is only logged.
func (r *Records) Warn(log *slog.Logger, id session.ID, change func(*Draft)) bool {
	_, err := r.Change(id, func(d *Draft) error {
		if d.Status == session.Running {
			change(d)
		}
		return nil
	})
	if err != nil {
		log.Warn("a warning could not be stored", "session", id, "err", err)
	}
	return err == nil
}

// Versions returns what was stored, one version for each status.
func (d *Draft) Versions() []session.Session { return d.versions }

// Enter moves a session into a phase and opens its row.
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

// Prepared moves a session whose image is present to CREATING.
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

// Started moves a session to RUNNING. containers are the engine's ids in the order of kernels.
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
		if i < len(p.Nodes) {
			d.Kernels[i].Node = p.Nodes[i]
		}
	}
	if err := d.To(session.Scheduled); err != nil {
		return err
	}
	return d.Enter(session.PhasePrepare)
}

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

// EndBy moves a RUNNING session to TERMINATING because one of its containers has ended, or vanished if state is nil.
func (d *Draft) EndBy(v Verdict, number int, state *engine.State) error {
	d.Stopping, d.Result, d.ExitCode, d.Error = v.Reason, v.Result, v.ExitCode, v.Cause
	if state != nil {
		d.Kernels = slices.Clone(d.Kernels)
		d.Kernels[number].ExitCode = &state.ExitCode
	}
	return d.BeginEnd()
}

// EndedFor says why a phase was interrupted by an end.
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

// EndStatus is the terminal status that follows from the reason for an end.
func EndStatus(s session.Session) session.Status {
	switch s.Stopping {
	case session.ReasonCreateFailed, session.ReasonStartFailed, session.ReasonPullFailed, session.ReasonLost,
		session.ReasonPreempted:
		return session.Failed
	}
	if s.StartedAt == nil {
		return session.Cancelled
	}
	return session.Terminated
}

// AskEnd moves a placed session to TERMINATING on request.
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

// WarnOfTrouble warns of the trouble that the guest reported, if any.
func (d *Draft) WarnOfTrouble(cause *session.Cause) {
	if cause != nil {
		d.Warn(session.Warning{Code: cause.Code, Title: "The session reports trouble",
			Text: cause.Message + " " + cause.Hint})
	}
}

// Verdict is how the end of a container counts.
type Verdict struct {
	Reason   session.Reason
	Result   session.Result
	ExitCode *int
	Cause    *session.Cause
}

// Judge judges the end of one of a session's containers that was not requested. state is nil if the container has
// vanished. oom reports that the kernel killed a process of the session for memory.
func Judge(s session.Session, number int, state *engine.State, oom bool) Verdict {
	if state == nil {
		lost := session.Say("containerLost")
		if number > 0 {
			lost = session.Say("kernelLost", session.Fill("name", s.Kernels[number].Name))
		}
		return Verdict{Reason: session.ReasonLost, Result: LostResult(s),
			Cause: session.Because(session.CodeContainerLost, lost, session.Say("containerLostHint"))}
	}
	oom = oom || state.OOMKilled
	code := state.ExitCode
	if t := state.Taken; t != nil {
		return Verdict{Reason: t.Reason, Result: LostResult(s), ExitCode: &code, Cause: t.Cause}
	}
	if number > 0 {
		return judgeOther(s, number, code, oom)
	}
	v := Verdict{ExitCode: &code}
	if s.Spec.RunsCommand() {
		switch {
		case code == 0:
			v.Reason, v.Result = session.ReasonFinished, session.ResultSuccess
		case oom:
			v.Reason, v.Result, v.Cause = session.ReasonOOM, session.ResultFailure, memoryCause(s)
		default:
			v.Reason, v.Result = session.ReasonTaskFailed, session.ResultFailure
			said := session.Say("taskFailed", exitCode(code))
			if s.Spec.Type == session.Inference {
				said = session.Say("serverEnded", exitCode(code))
			}
			v.Cause = session.Because(session.CodeTaskFailed, said, session.Say("readLog"))
		}
		return v
	}
	v.Reason, v.Result = session.ReasonSelf, session.ResultUndefined
	switch {
	case oom && code == 137:
		v.Reason, v.Cause = session.ReasonOOM, memoryCause(s)
	case code != 0:
		v.Cause = session.Because(session.CodeExited, session.Say("exited", exitCode(code)), session.Say("exitedHint"))
	}
	return v
}

// judgeOther judges the end of a kernel that is not the main one. The session cannot continue without it.
func judgeOther(s session.Session, number, code int, oom bool) Verdict {
	name := session.Fill("name", s.Kernels[number].Name)
	v := Verdict{Reason: session.ReasonSelf, Result: LostResult(s), Cause: session.Because(session.CodeKernelEnded,
		session.Say("kernelEnded", name, exitCode(code)), session.Say("kernelEndedHint"))}
	if s.Spec.RunsCommand() {
		v.Reason = session.ReasonTaskFailed
	}
	if oom && code == 137 {
		v.Reason, v.Cause = session.ReasonOOM, memoryCause(s)
	}
	return v
}

// LostResult is the result of a session that was lost.
func LostResult(s session.Session) session.Result {
	if s.Spec.RunsCommand() {
		return session.ResultFailure
	}
	return session.ResultUndefined
}

func memoryCause(s session.Session) *session.Cause {
	return session.Because(session.CodeOOM,
		session.Say("outOfMemory", session.Fill("memory", s.Spec.Resources.Memory.String())),
		session.Say("outOfMemoryHint"))
}

// signalNames are the names of signals by the exit codes that they cause.
var signalNames = map[int]string{129: "SIGHUP", 130: "SIGINT", 131: "SIGQUIT", 134: "SIGABRT", 135: "SIGBUS",
	136: "SIGFPE", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM"}

func exitCode(code int) session.Phrase {
	text := strconv.Itoa(code)
	if name, ok := signalNames[code]; ok {
		text += " (" + name + ")"
	}
	return session.Fill("code", text)
}
