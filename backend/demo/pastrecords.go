package demo

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"slipway/backend/agent/launch"
	"slipway/backend/agent/ledger"
	"slipway/backend/agent/logs"
	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
)

// record writes the course of one session that has ended as its agent would
// have written it: the same plan, the same changes of its record, in order.
type record struct {
	tx  *store.Tx
	now time.Time
	one endedSession
	s   session.Session
}

// write writes the record, the history and the log of a session that had the
// machine for itself.
func (h history) write(tx *store.Tx, one endedSession) (session.Session, error) {
	r := &record{tx: tx, now: one.At.UTC(), one: one, s: records.NewSession(one.Launch, one.ID, h.Agent, one.At.UTC())}
	if err := records.Create(tx, &r.s, one.Launch.Key); err != nil {
		return r.s, err
	}
	grants, err := h.plan(r.s)
	if err != nil {
		return r.s, err
	}
	level := ledger.Level(gpu.Enforcement{Guard: true}, h.Devices, grants.Total())
	if err := r.change(queueTime, func(d *records.Draft) error { return d.Place(grants, level) }); err != nil {
		return r.s, err
	}
	if err := r.start(); err != nil {
		return r.s, err
	}
	dir := filepath.Join(h.Dir, "logs")
	if err := logs.Write(dir, r.s.ID, session.MainKernel, logs.DefaultCap, r.log()); err != nil {
		return r.s, err
	}
	return r.s, r.end()
}

// queueTime is what it takes to plan and to store a placement.
const queueTime = 9 * time.Millisecond

// plan is what the scheduler gives a session that is alone on the machine.
func (h history) plan(s session.Session) (scheduler.Placement, error) {
	machine := scheduler.Machine{Memory: h.Memory, Devices: h.Devices}
	for cpu := range h.CPUs {
		machine.CPUs = append(machine.CPUs, cpu)
	}
	queue := []scheduler.Request{scheduler.RequestOf(s)}
	plan := scheduler.Plan(scheduler.Snapshot{Machine: machine, Queue: queue}, s.CreatedAt)
	if decision := plan.Decisions[0]; decision.Place != nil {
		return *decision.Place, nil
	}
	return scheduler.Placement{}, fmt.Errorf("%s does not fit on %s", s.Name, h.Agent)
}

// change makes one change of the record after a while.
func (r *record) change(after time.Duration, fn func(*records.Draft) error) error {
	r.now = r.now.Add(after)
	now := r.now
	d := records.NewDraft(r.tx, r.s, now, func(session.ID) time.Time { return now })
	if err := fn(d); err != nil {
		return err
	}
	err := d.Save()
	r.s = d.Session
	return err
}

// steps are those of a phase, one after the other, from now on.
func (r *record) steps(names ...string) (steps []session.Step, all time.Duration) {
	for _, name := range names {
		took, result := r.one.Took(name), session.OutcomeSuccess
		if name == launch.StepPull && took == 0 {
			result = session.OutcomeSkipped
		}
		from := r.now.Add(all)
		all += took
		to := r.now.Add(all)
		steps = append(steps, session.Step{Step: name, Result: result, StartedAt: from, EndedAt: &to})
	}
	return steps, all
}

// start prepares and starts a session that is placed.
func (r *record) start() error {
	steps, all := r.steps(launch.StepImage, launch.StepPull)
	if pull := r.one.Took(launch.StepPull); pull > 0 {
		all = pull
		err := r.change(r.one.Took(launch.StepImage), func(d *records.Draft) error { return d.To(session.Pulling) })
		if err != nil {
			return err
		}
	}
	if err := r.change(all, func(d *records.Draft) error { return d.Prepared(steps, r.one.Pinned) }); err != nil {
		return err
	}
	steps, all = r.steps(launch.StepNetwork, launch.StepCreate, launch.StepStart, launch.StepGuest)
	return r.change(all, func(d *records.Draft) error { return d.Started(steps, []string{r.one.Container}) })
}

// end ends a session that runs.
func (r *record) end() error {
	state := engine.State{ExitCode: r.one.ExitCode, OOMKilled: r.one.OOM}
	err := r.change(r.one.Ran, func(d *records.Draft) error {
		if r.one.Asked != "" {
			return d.AskEnd(r.one.Asked, false)
		}
		return d.EndBy(records.Judge(d.Session, 0, &state, r.one.OOM), 0, &state)
	})
	if err != nil {
		return err
	}
	steps, all := r.steps(launch.StepStop, launch.StepLogs, launch.StepRemove, launch.StepNetwork)
	return r.change(all, func(d *records.Draft) error {
		if err := d.End(session.PhaseTerminate, session.OutcomeSuccess, steps, nil); err != nil {
			return err
		}
		return d.Over(map[string]int{session.MainKernel: r.one.ExitCode})
	})
}

// log is what the session wrote, with times.
func (r *record) log() io.Reader {
	var text strings.Builder
	for _, line := range r.one.Log(*r.s.StartedAt) {
		text.WriteString(r.s.StartedAt.Add(line.After).Format(time.RFC3339Nano) + " " + line.Text + "\n")
	}
	return strings.NewReader(text.String())
}
