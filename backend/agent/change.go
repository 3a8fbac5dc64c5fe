package agent

import (
	"errors"
	"reflect"
	"slices"
	"time"

	"slipway/backend/session"
	"slipway/backend/store"
)

// draft is a session while one transaction changes it. Each status it moves to
// is stored and published as a version of its own.
type draft struct {
	session.Session
	tx       *store.Tx
	now      time.Time
	ending   func(session.ID) time.Time
	stored   session.Session
	versions []session.Session
	wrote    bool
}

// errNothing rolls back a transaction that has changed nothing: it would cost a
// sync of the disk all the same.
var errNothing = errors.New("nothing changed")

// change applies fn to a session in one transaction and publishes what came of
// it. Where fn fails, nothing is stored and its error is returned.
func (a *Agent) change(id session.ID, fn func(*draft) error) (session.Session, error) {
	var d *draft
	err := a.update(func(tx *store.Tx) error {
		s, err := tx.Get(id)
		if err != nil {
			return err
		}
		d = &draft{Session: s, tx: tx, now: a.clock.Now().UTC(), ending: a.accounts.Ending, stored: s}
		if err := fn(d); err != nil {
			return err
		}
		if err := d.save(); err != nil {
			return err
		}
		if !d.wrote {
			return errNothing
		}
		return nil
	})
	if err != nil && !errors.Is(err, errNothing) {
		return session.Session{}, err
	}
	a.publishVersions(d.versions)
	return a.dress(d.Session), nil
}

// update makes one change of the store. While changes fail for want of room or
// a sound disk, the machine carries a warning.
func (a *Agent) update(fn func(*store.Tx) error) error {
	err := a.store.Update(fn)
	var trouble *session.Error
	switch code := session.CodeOf(err); {
	case errors.Is(err, errNothing) || errors.Is(err, errInterrupted):
		return err // it was not tried
	case code == store.CodeNoSpace || code == store.CodeWrite:
		trouble = session.AsError(err, code)
	case err != nil:
		return err // refused for its content
	}
	a.mu.Lock()
	news := (a.trouble == nil) != (trouble == nil)
	if news {
		a.troubleAt = a.clock.Now().UTC()
	}
	a.trouble = trouble
	a.mu.Unlock()
	if news {
		a.publishMachine()
	}
	return err
}

// storeWarning is the standing trouble with the store, if there is one.
func (a *Agent) storeWarning() (session.Warning, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.trouble == nil {
		return session.Warning{}, false
	}
	return session.Warning{Code: a.trouble.Code, Title: "Changes cannot be stored",
		Text: a.trouble.Message + " " + a.trouble.Hint, At: a.troubleAt}, true
}

func (a *Agent) publishVersions(versions []session.Session) {
	for _, v := range versions {
		if v.Status.Terminal() {
			a.noteDown(v.ID, func(n *note) { *n = note{} })
		}
		if v.Status == session.Running && v.StartedAt != nil {
			a.accounts.Begin(a.devices.moment(), v) // it may end before the next sample
		}
		if v.Status == session.Running || v.Status == session.Terminating || v.Status.Terminal() {
			signal(a.devices.changed)
		}
		if v.Status == session.Terminating {
			signal(a.meter.changed) // its last seconds count
		}
		if v.Status == session.Running || v.Status.Terminal() {
			a.changedFolders(v)
		}
		v = a.dress(v)
		a.stream.publish(session.Event{Session: &v})
	}
}

// save stores the draft if it differs from what is stored.
func (d *draft) save() error {
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

// to moves the session to a status and stamps the times that belong to it.
func (d *draft) to(status session.Status) error {
	d.Status = status
	switch status {
	case session.Scheduled:
		d.ScheduledAt = &d.now
	case session.Running:
		d.StartedAt = &d.now
	case session.Pending:
		d.ScheduledAt = nil
	}
	if status.Terminal() {
		at := d.ending(d.ID)
		d.TerminatedAt = &at
	}
	return d.save()
}

// phase returns the newest row of a phase.
func (d *draft) phase(name session.PhaseName) (session.Phase, bool, error) {
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

func (d *draft) putPhase(p session.Phase) error {
	d.wrote = true
	return d.tx.PutPhase(&p)
}

// begin opens a row for a phase. One that waits for another attempt goes on
// with its count raised, one that runs already is left as it is.
func (d *draft) begin(name session.PhaseName, to session.Status) error {
	p, found, err := d.phase(name)
	if err != nil {
		return err
	}
	switch {
	case found && p.Result == session.OutcomeRunning:
		return nil
	case found && p.Result == session.OutcomeNeedRetry:
		p.Attempts++
		p.Result, p.Steps, p.UpdatedAt = session.OutcomeRunning, nil, d.now
	default:
		p = session.Phase{Session: d.ID, Phase: name, Result: session.OutcomeRunning, From: d.Status, To: to,
			Attempts: 1, CreatedAt: d.now, UpdatedAt: d.now}
	}
	return d.putPhase(p)
}

// end closes the open row of a phase with its outcome, the steps of its last
// attempt and, where it failed, the cause.
func (d *draft) end(name session.PhaseName, outcome session.Outcome, steps []session.Step, cause *session.Cause) error {
	p, found, err := d.phase(name)
	if err != nil || !found {
		return err
	}
	p.Result, p.Steps, p.UpdatedAt = outcome, steps, d.now
	p.Code, p.Message, p.Said = "", "", nil
	if cause != nil {
		p.Code, p.Message, p.Said = cause.Code, cause.Message, cause.Said
	}
	return d.putPhase(p)
}

// interruptPhases closes every open row as STALE: something else has decided.
func (d *draft) interruptPhases(message string, said ...session.Phrase) error {
	phases, err := d.tx.Phases(d.ID)
	if err != nil {
		return err
	}
	for _, p := range phases {
		if p.Result != session.OutcomeRunning && p.Result != session.OutcomeNeedRetry {
			continue
		}
		p.Result, p.Message, p.Said, p.UpdatedAt = session.OutcomeStale, message, said, d.now
		if err := d.putPhase(p); err != nil {
			return err
		}
	}
	return nil
}

// warn adds a standing warning or brings one of the same code, on the same
// device, up to date.
func (d *draft) warn(w session.Warning) {
	w.At = d.now
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

// causeOf writes an error the way it is kept with a session.
func causeOf(err error, code session.Code) *session.Cause {
	return session.AsError(err, code).Cause()
}
