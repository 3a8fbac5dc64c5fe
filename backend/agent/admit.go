package agent

import (
	"context"
	"errors"
	"fmt"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// checkQueue returns what is wrong with what a spec asks of this machine's
// devices and of all of its kernels together.
func (a *Agent) checkQueue(spec session.Spec, info engine.Info) []session.FieldError {
	var wrong []session.FieldError
	kernels := max(1, spec.Cluster)
	if cpus, memory := spec.Resources.CPU*kernels, spec.Resources.Memory*gpu.Bytes(kernels); kernels > 1 &&
		kernels <= session.MaxCluster {
		if info.CPUs > 0 && spec.Resources.CPU <= info.CPUs && cpus > info.CPUs {
			wrong = append(wrong, session.FieldError{Field: "cluster", Code: session.CodeTooManyCPUs,
				Message: fmt.Sprintf("%d kernels of %d CPUs are %d CPUs, more than the %d that the machine has.",
					kernels, spec.Resources.CPU, cpus, info.CPUs),
				Hint: "Ask for fewer kernels, or fewer CPUs for each."})
		}
		if info.Memory > 0 && spec.Resources.Memory <= info.Memory && memory > info.Memory {
			wrong = append(wrong, session.FieldError{Field: "cluster", Code: session.CodeTooMuchMemory,
				Message: fmt.Sprintf("%d kernels of %s are %s of memory, more than the %s that the machine has.",
					kernels, spec.Resources.Memory, memory, info.Memory),
				Hint: "Ask for fewer kernels, or less memory for each."})
		}
	}
	if spec.Accelerator.IsZero() || spec.Accelerator.Validate() != nil {
		return wrong
	}
	book := a.devices.Now()
	if len(book.Devices) == 0 && book.Unlisted {
		return wrong // they may be found later: it waits and says so
	}
	return append(wrong, a.checkDevices(spec, book.Devices)...)
}

// checkDevices says why the machine's devices can never give what is asked.
func (a *Agent) checkDevices(spec session.Spec, devices []gpu.Device) []session.FieldError {
	refuse := func(code session.Code, message, hint string) []session.FieldError {
		return []session.FieldError{{Field: "accelerator", Code: code, Message: message, Hint: hint}}
	}
	// one that is lost may come back: it waits and says so
	ledger, err := gpu.NewLedger(gpu.Mended(devices), a.config.Giving)
	for kernel := 0; err == nil && kernel < max(1, spec.Cluster); kernel++ {
		var proposal gpu.Proposal
		if proposal, err = ledger.Propose(spec.Accelerator); err != nil {
			break
		}
		if r := proposal.Rounded; r != nil && r.Less {
			return refuse(session.CodeRoundedAccelerator, r.Why,
				fmt.Sprintf("Ask for %s, which is what would be given, or for more.", r.Given))
		}
		err = ledger.Hold(session.KernelName(kernel), proposal.Grants)
	}
	var e *gpu.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return refuse(session.CodeTooManyDevices, err.Error(), "")
	case e.Code == gpu.CodeRequestQuantum:
		return refuse(session.CodeRoundedAccelerator, e.Message, e.Hint)
	case spec.Cluster > 1 && gpu.Waits(err):
		return refuse(session.CodeTooManyDevices,
			fmt.Sprintf("The devices of this machine do not suffice for %d kernels with %s each.", spec.Cluster,
				spec.Accelerator), "Ask for fewer kernels, or less for each.")
	}
	return refuse(session.CodeTooManyDevices, e.Message, e.Hint)
}

// dependencies finds the sessions that a launch names to run after: a live one
// of the owner by its id or name, else the newest ended one.
func (a *Agent) dependencies(owner string, after []string) ([]session.ID, []session.FieldError) {
	if len(after) == 0 {
		return nil, nil
	}
	const lately = 1000 // ended sessions of theirs that are looked through
	live, _, err := a.store.Live()
	ended, endedErr := a.store.List(session.Filter{Finished: true, Owner: owner, Limit: lately})
	if err = errors.Join(err, endedErr); err != nil {
		return nil, []session.FieldError{{Field: "after", Code: session.CodeUnknownDependency,
			Message: "The sessions to wait for cannot be looked up.", Hint: "Try again."}}
	}
	var ids []session.ID
	var wrong []session.FieldError
	for i, ref := range after {
		s, found := named(append(live, ended...), owner, ref)
		if !found && session.ValidID(ref) {
			other, err := a.store.Get(session.ID(ref))
			s, found = other, err == nil && other.Owner == owner
		}
		e := session.FieldError{Field: fmt.Sprintf("after[%d]", i), Code: session.CodeUnknownDependency}
		switch {
		case !found:
			e.Message, e.Hint = fmt.Sprintf("There is no session %s to wait for.", ref),
				"Write the id or the name of one of your sessions."
		case s.Spec.Type != session.Batch:
			e.Message, e.Hint = fmt.Sprintf("%s is interactive and never ends in success.", s.Name),
				"Wait for batch sessions only."
		case s.Status.Terminal() && s.Result != session.ResultSuccess:
			e.Message, e.Hint = fmt.Sprintf("%s has ended without success (%s).", s.Name, s.Reason),
				"Launch it again first."
		default:
			ids = append(ids, s.ID)
			continue
		}
		wrong = append(wrong, e)
	}
	return ids, wrong
}

// named finds a session by its id or name: the first of list.
func named(list []session.Session, owner, ref string) (session.Session, bool) {
	for _, s := range list {
		if s.Owner == owner && (string(s.ID) == ref || s.Name == ref) {
			return s, true
		}
	}
	return session.Session{}, false
}

// plannable reports whether a spec asks for amounts that there can be at all.
// What is wrong with the others is told; there is no telling what they wait for.
func plannable(spec session.Spec) bool {
	return spec.Resources.CPU >= 0 && spec.Resources.Memory >= 0 && spec.Resources.Shm >= 0 &&
		spec.Cluster >= 0 && spec.Cluster <= session.MaxCluster && spec.Accelerator.Validate() == nil
}

// previewPlan says where a spec would land now, or what it would wait for.
func (a *Agent) previewPlan(p *session.Preview, owner string, depends []session.ID, live []session.Session,
	books uint64) error {
	would := a.newSession(session.LaunchRequest{Owner: owner, Spec: p.Spec})
	would.Name, would.DependsOn = "this session", depends
	snapshot, err := a.snapshot(append(live, would), books)
	if err != nil {
		return err
	}
	plan := scheduler.Plan(snapshot, a.clock.Now().UTC()).Decisions
	last := plan[len(plan)-1]
	p.Wait = last.Wait
	if last.Place == nil {
		return nil
	}
	total := last.Place.Total()
	p.GPUs, p.Enforcement = total.GPUs, a.enforcement(would, snapshot.Machine.Devices, total)
	if ledger, err := gpu.NewLedger(snapshot.Machine.Devices, a.config.Giving); err == nil &&
		!p.Spec.Accelerator.IsZero() {
		if proposal, err := ledger.Propose(p.Spec.Accelerator); err == nil {
			p.Rounded = proposal.Rounded
		}
	}
	return nil
}

func (a *Agent) SetPriority(_ context.Context, id session.ID, priority int) (session.Session, error) {
	if wrong := session.ValidatePriority(priority); wrong != nil {
		return session.Session{}, &session.Error{Code: "session_update_invalid", Message: wrong.Message,
			Hint: wrong.Hint, Fields: []session.FieldError{*wrong}}
	}
	s, err := a.records.Change(id, func(d *records.Draft) error {
		if d.Status != session.Pending {
			return &session.Error{Code: "session_update_conflict", Message: "The session is " + string(d.Status) +
				" and does not wait any more.", Hint: "Only a session that waits has a priority to change."}
		}
		d.Priority = priority
		return nil
	})
	if err != nil {
		return session.Session{}, err
	}
	a.rouse()
	return s, nil
}
