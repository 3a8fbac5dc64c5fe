package records

import (
	"log/slog"
	"reflect"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// Draft is a session while one transaction changes it. Each status it moves to
// is stored and told as a version of its own.
type Draft struct {
	session.Session
	Now      time.Time
	tx       *store.Tx
	ended    func(session.ID) time.Time
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

// To moves the session to a status and stamps the times that belong to it.
func (d *Draft) To(status session.Status) error {
	d.Status = status
	switch status {
	case session.Scheduled:
		d.ScheduledAt = &d.Now
	case session.Running:
		d.StartedAt = &d.Now
	case session.Pending:
		d.ScheduledAt = nil
	}
	if status.Terminal() {
		d.TerminatedAt = new(d.ended(d.ID))
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

// Begin opens a row for a phase. One that waits for another attempt goes on
// with its count raised, one that runs already is left as it is.
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

// End closes the open row of a phase with its outcome, the steps of its last
// attempt and, where it failed, the cause.
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

// InterruptPhases closes every open row as STALE: something else has decided.
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

// Warn adds a standing warning or brings one of the same code, on the same
// device, up to date.
func (d *Draft) Warn(w session.Warning) {
	w.At = d.Now
	warnings := slices.Clone(d.Warnings)
	for i := range warnings {
		if warnings[i].Code == w.Code && warnings[i].Device == w.Device {
			if warnings[i].Text != w.Text {
				warnings[i] = w
			}
			d.Warnings = warnings
			return
		}
	}
	d.Warnings = append(warnings, w)
}

// Unwarn takes a standing warning back.
func (d *Draft) Unwarn(code session.Code) { d.UnwarnDevice(code, "") }

// UnwarnDevice takes back a standing warning about a device.
func (d *Draft) UnwarnDevice(code session.Code, device gpu.UUID) {
	it := func(w session.Warning) bool { return w.Code == code && w.Device == device }
	if slices.ContainsFunc(d.Warnings, it) {
		d.Warnings = slices.DeleteFunc(slices.Clone(d.Warnings), it)
	}
}

// Warn changes the warnings of a session while it runs, and reports whether they
// are stored: a failure is logged, and the session goes on without.
func Warn(sessions interface {
	Change(id session.ID, change func(*Draft) error) (session.Session, error)
}, log *slog.Logger, id session.ID, change func(*Draft)) bool {
	_, err := sessions.Change(id, func(d *Draft) error {
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

// Versions are what Save has stored, one for each status.
func (d *Draft) Versions() []session.Session { return d.versions }
