package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"slipway/backend/agent/records"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// Check reports what is wrong with a spec on this machine: what the machine lacks, its devices, and the sum of its
// kernels.
func (q *Queue) Check(ctx context.Context, spec session.Spec, info engine.Info) []session.FieldError {
	wrong := spec.CheckLacks(info.Lacks)
	if q.config.Planner != nil {
		return append(wrong, q.config.Planner.Check(ctx, spec)...)
	}
	if spec.Slurm != nil {
		wrong = append(wrong, session.Fault("slurm", session.KindConflict, session.Say("slurmNone")))
	}
	refuse := func(each, all, has, hint string) {
		wrong = append(wrong, session.FieldError{Field: "cluster", Kind: session.KindRange, Hint: hint,
			Message: fmt.Sprintf("%d kernels of %s are %s, more than the %s that the machine has.", spec.Cluster, each,
				all, has)})
	}
	if kernels, r := spec.Cluster, spec.Resources; kernels > 1 && kernels <= session.MaxCluster {
		if info.CPUs > 0 && r.CPU <= info.CPUs && r.CPU*kernels > info.CPUs {
			refuse(session.CPUs(r.CPU), session.CPUs(r.CPU*kernels), strconv.Itoa(info.CPUs),
				"Ask for fewer kernels, or fewer CPUs for each.")
		}
		if all := r.Memory * gpu.Bytes(kernels); info.Memory > 0 && r.Memory <= info.Memory && all > info.Memory {
			refuse(r.Memory.String(), all.String()+" of memory", info.Memory.String(),
				"Ask for fewer kernels, or less memory for each.")
		}
	}
	if spec.Accelerator.IsZero() || spec.Accelerator.Validate() != nil {
		return wrong
	}
	book := q.config.Devices.Now()
	if len(book.Devices) == 0 && book.Unlisted {
		return wrong // it waits, because they may be found later
	}
	others := func(d gpu.Device) bool { return d.Vendor != gpu.NVIDIA }
	if slices.Contains(info.Lacks, session.FeatureNVIDIA) && len(book.Devices) > 0 &&
		!slices.ContainsFunc(book.Devices, others) {
		return append(wrong, session.FeatureNVIDIA.Fault("accelerator"))
	}
	return append(wrong, q.checkDevices(spec, book.Devices)...)
}

// checkDevices reports a request that the machine's devices can never satisfy.
func (q *Queue) checkDevices(spec session.Spec, devices []gpu.Device) []session.FieldError {
	refuse := func(kind session.Kind, message, hint string) []session.FieldError {
		return []session.FieldError{{Field: "accelerator", Kind: kind, Message: message, Hint: hint}}
	}
	// A lost device may come back, so the session waits for it.
	ledger, err := gpu.NewLedger(gpu.Mended(devices), q.config.Giving)
	for kernel := 0; err == nil && kernel < max(1, spec.Cluster); kernel++ {
		var proposal gpu.Proposal
		if proposal, err = ledger.Propose(spec.Accelerator); err != nil {
			break
		}
		if r := proposal.Rounded; r != nil && r.Less {
			return refuse(session.KindRounded, r.Why,
				fmt.Sprintf("Ask for %s, which is what would be given, or for more.", r.Given))
		}
		err = ledger.Hold(session.KernelName(kernel), proposal.Grants)
	}
	var e *gpu.Error
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &e):
		return refuse(session.KindRange, err.Error(), "")
	case e.Code == gpu.CodeRequestQuantum:
		return refuse(session.KindRounded, e.Message, e.Hint)
	case spec.Cluster > 1 && gpu.Waits(err):
		return refuse(session.KindRange,
			fmt.Sprintf("The devices of this machine do not suffice for %d kernels with %s each.", spec.Cluster,
				spec.Accelerator), "Ask for fewer kernels, or less for each.")
	}
	if said := tooMuch(spec.Accelerator, devices); said.Say != "" {
		return []session.FieldError{session.Fault("accelerator", session.KindRange, said)}
	}
	return refuse(session.KindRange, e.Message, e.Hint)
}

// tooMuch says which amount for one kernel is more than the devices have; empty if each amount alone is possible.
func tooMuch(r gpu.Request, devices []gpu.Device) session.Phrase {
	instances, most := 0, gpu.Bytes(0)
	for _, d := range devices {
		if len(d.Instances) == 0 {
			most = max(most, d.Usable())
		}
		for _, i := range d.Instances {
			if i.Profile == r.Profile {
				instances++
			}
		}
	}
	switch count := len(devices); {
	case count == 0:
		return session.Say("gpuNone")
	case r.Devices > count || r.Shares > gpu.Share(count)*gpu.WholeDevice:
		return session.Phrase{Say: "gpuMax", Count: count}
	case r.Profile != "" && instances == 0:
		return session.Say("migNone", session.Fill("profile", r.Profile))
	case r.Count > instances:
		return session.Phrase{Say: "migMax", Count: instances,
			With: []session.Phrase{session.Fill("profile", r.Profile)}}
	case r.Memory > most:
		return session.Say("vramMax", session.Fill("amount", most.String()))
	}
	return session.Phrase{}
}

// Dependencies finds the sessions that a launch runs after, by id or name: the owner's live ones, else ended ones.
func (q *Queue) Dependencies(owner string, after []string) ([]session.ID, []session.FieldError) {
	if len(after) == 0 {
		return nil, nil
	}
	const lately = 1000 // of their ended sessions that are searched
	live, _, err := q.config.Records.Live()
	ended, endedErr := q.config.Records.List(session.Filter{Finished: true, Owner: owner, Limit: lately})
	if err = errors.Join(err, endedErr); err != nil {
		return nil, []session.FieldError{{Field: "after", Kind: session.KindNotFound,
			Message: "The sessions to wait for cannot be looked up.", Hint: "Try again."}}
	}
	all := append(live, ended...)
	var ids []session.ID
	var wrong []session.FieldError
	for i, ref := range after {
		var s session.Session
		var missing error
		at := slices.IndexFunc(all, func(s session.Session) bool {
			return s.Owner == owner && (string(s.ID) == ref || s.Name == ref)
		})
		if at >= 0 {
			s = all[at]
		} else if session.ValidID(ref) {
			s, missing = q.config.Records.Get(session.ID(ref))
		}
		e := session.FieldError{Field: fmt.Sprintf("after[%d]", i), Kind: session.KindNotFound}
		switch {
		case missing != nil || s.Owner != owner:
			e = session.Fault(e.Field, e.Kind, session.Say("afterGone", session.Fill("id", ref)))
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

// Plannable reports whether the amounts of a spec are valid, so that it can be planned.
func Plannable(spec session.Spec) bool {
	return spec.Resources.CPU >= 0 && spec.Resources.Memory >= 0 && spec.Resources.Shm >= 0 &&
		spec.Cluster >= 0 && spec.Cluster <= session.MaxCluster && spec.Accelerator.Validate() == nil
}

// Preview adds where the sessions of a launch would run now, or what they would wait for. They are alike but in name.
func (q *Queue) Preview(ctx context.Context, p *session.Preview, would, live []session.Session, books uint64) error {
	snapshot, err := q.snapshot(append(live, would...), books)
	if err != nil {
		return err
	}
	if q.config.Planner != nil {
		q.foresee(p, would, snapshot)
		p.Sbatch = q.config.Planner.Script(ctx, p.Spec)
		return nil
	}
	plan := scheduler.Plan(snapshot, q.config.Clock.Now().UTC()).Decisions
	plan = plan[len(plan)-len(would):]
	all := make([]session.Forecast, len(plan))
	for i, decision := range plan {
		all[i].Wait = decision.Wait
		if decision.Place != nil {
			all[i].GPUs = decision.Place.Total().GPUs
		}
	}
	p.Wait, p.GPUs, p.Further = all[0].Wait, all[0].GPUs, all[1:]
	if plan[0].Place == nil {
		return nil
	}
	p.Enforcement = q.enforcement(would[0], snapshot.Machine.Devices, plan[0].Place.Total())
	if ledger, err := gpu.NewLedger(snapshot.Machine.Devices, q.config.Giving); err == nil &&
		!p.Spec.Accelerator.IsZero() {
		if proposal, err := ledger.Propose(p.Spec.Accelerator); err == nil {
			p.Rounded = proposal.Rounded
		}
	}
	return nil
}

func (q *Queue) SetPriority(_ context.Context, id session.ID, priority int) (session.Session, error) {
	if wrong := session.ValidatePriority(priority); wrong != nil {
		return session.Session{}, session.Refused(session.CodeSessionInvalid, *wrong)
	}
	lacks := q.config.Health.State().Info.Lacks
	return q.changePending(id, "Only a session that waits has a priority to change.", func(d *records.Draft) error {
		if priority > d.Priority && slices.Contains(lacks, session.FeatureRaise) {
			return session.Refused(session.CodeSessionInvalid, session.FeatureRaise.Fault("priority"))
		}
		d.Priority = priority
		return nil
	})
}

func (q *Queue) SetAccelerator(ctx context.Context, id session.ID, asked gpu.Request) (session.Session, error) {
	const hint = "Only a session that waits can ask for other devices. Launch another one."
	return q.changePending(id, hint, func(d *records.Draft) error {
		spec := d.Spec
		spec.Accelerator = asked
		wrong := append(spec.AcceleratorFaults(), q.Check(ctx, spec, q.config.Health.State().Info)...)
		if len(wrong) > 0 {
			return session.Refused(session.CodeSessionInvalid, wrong...)
		}
		d.Spec = spec
		if q.config.Planner != nil {
			d.Attempt++ // what was asked for it is taken back
		}
		return nil
	})
}

// changePending changes a session that waits, and plans again.
func (q *Queue) changePending(id session.ID, hint string, change func(*records.Draft) error) (session.Session, error) {
	s, err := q.config.Records.Change(id, func(d *records.Draft) error {
		if d.Status != session.Pending {
			return session.NewError(session.CodeSessionConflict,
				"The session is "+string(d.Status)+" and does not wait any more.", hint)
		}
		return change(d)
	})
	if err == nil {
		q.Wake()
	}
	return s, err
}
