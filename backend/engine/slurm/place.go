package slurm

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
	"slipway/gpu"
)

// place places a session whose job has nodes. If Slurm does not say yet what the job got, it waits on.
func (p *Planner) place(ctx context.Context, d *scheduler.Decision, w engine.Wanted, name slurm.JobName, job slurm.Job,
	now record) {
	p.mu.Lock()
	known, ok := p.placed[name]
	p.mu.Unlock()
	if !ok {
		got, err := p.engine.config.Commands.Placement(ctx, now.named())
		switch {
		case session.CodeOf(err) == session.CodeNoContainer || err == nil && job.State.Ended():
			// It is over and forgotten, and its files say what became of it.
			known = placementOf(now, nil, w)
		case err != nil || len(got) < len(now.Kernels):
			d.Wait = waitFor(session.CodeWaitTurn, session.Say("slurmConfiguring"))
			p.mu.Lock()
			p.unplaced = true
			p.mu.Unlock()
			return
		default:
			known = placementOf(now, got, w)
		}
		p.mu.Lock()
		p.placed[name] = known
		p.mu.Unlock()
	}
	d.Place = &known
}

// placementOf is what the kernels of a run have, by what its job got. Without that it is what was asked for.
func placementOf(now record, got slurm.Placement, w engine.Wanted) scheduler.Placement {
	var p scheduler.Placement
	for i := range now.Kernels {
		part := slurm.Part{Memory: now.Request.Each.Memory}
		if i < len(got) {
			part = got[i]
			p.Nodes = append(p.Nodes, part.Node)
		}
		grants := session.Grants{CPUs: part.CPUs, Memory: part.Memory}
		if grants.Memory == 0 {
			grants.Memory = w.Session.Spec.Resources.Memory
		}
		for _, index := range part.GPUs {
			grants.GPUs = append(grants.GPUs, grantOf(part, index, w.Session.Spec.Accelerator))
		}
		p.Kernels = append(p.Kernels, grants)
	}
	p.Steps = []scheduler.Step{
		{Name: scheduler.StepOrder, Message: fmt.Sprintf("Slurm started job %s.", now.named())},
		{Name: scheduler.StepChoose, Message: "It runs on " + strings.Join(p.Nodes, ", ") + "."},
	}
	if len(p.Nodes) == 0 {
		p.Steps[1].Message = "It ran before Slipway looked again."
	}
	return p
}

// grantOf is what a job has of one device of a node. Slurm does not say which memory that has.
func grantOf(part slurm.Part, index int, asked gpu.Request) gpu.Grant {
	g := gpu.Grant{Device: gpu.UUID(fmt.Sprintf("%s/gpu%d", part.Node, index)), Share: gpu.WholeDevice, Whole: true}
	if part.Shards > 0 {
		g.Share, g.Whole = min(max(asked.Shares, 1), gpu.WholeDevice), false
	}
	return g
}

// niceStep is by how much one step of priority below the usual one lowers that of the job.
const niceStep = 100

// niceOf is by how much the priority of a session lowers that of its job. Only an admin of the site can raise it.
func niceOf(s session.Session) int { return max(0, session.DefaultPriority-s.Priority) * niceStep }

// lower lowers the priority of a job that waits, if that of its session is lower now.
func (p *Planner) lower(name slurm.JobName, r *run, s session.Session) {
	if niceOf(s) <= r.now().Request.Nice {
		return
	}
	p.end(string(name)+" nice", func(ctx context.Context) error {
		r, err := p.engine.runs.take(ctx, name)
		if err != nil {
			return err
		}
		defer p.engine.runs.give(r)
		now := r.now()
		if now.Job == 0 {
			return nil
		}
		now.Request.Nice = niceOf(s)
		if err := p.engine.config.Commands.Nice(ctx, now.named(), now.Request.Nice); err != nil {
			return failure(ctx, err)
		}
		return r.keep(now)
	})
}

// killTime is how much longer than the session's own timeout Slurm lets its job run, so that Slipway ends it first.
const killTime = 5 * time.Minute

// termsOf is what a session asks of Slurm besides the size of its kernels' memory and CPUs.
func (e *Engine) termsOf(ctx context.Context, spec session.Spec) (Terms, error) {
	terms := Terms{Each: slurm.Each{CPUs: max(1, spec.Resources.CPU), Memory: spec.Resources.Memory}}
	if s := spec.Slurm; s != nil {
		terms.Target = slurm.Target{Partition: s.Partition, Account: s.Account, QOS: s.QOS, Constraint: s.Constraint,
			Reservation: s.Reservation}
		terms.Time, terms.Extra = time.Duration(s.Time), s.Options
		terms.Each.GPUType = s.GPUType
	}
	if terms.Time == 0 && spec.Timeout > 0 {
		terms.Time = time.Duration(spec.Timeout) + killTime
	}
	site, err := e.Site(ctx)
	if err != nil && !spec.Accelerator.IsZero() {
		return terms, err
	}
	return terms, addDevices(&terms.Each, spec.Accelerator, perDevice(site, terms.Partition, terms.Each.GPUType))
}

// perDevice is the most shards that a device of a partition has, 0 if its devices are only given whole.
func perDevice(site slurm.Site, partition, gpuType string) (shards int) {
	for _, p := range site.Partitions {
		if p.Name != partition && (partition != "" || !p.Default) {
			continue
		}
		for _, shape := range p.Shapes {
			for _, g := range shape.GPUs {
				if g.Count > 0 && (gpuType == "" || g.Type == gpuType || g.Type == "") {
					shards = max(shards, g.Shards/g.Count)
				}
			}
		}
	}
	return shards
}

// addDevices asks for devices: whole ones, or shards of one.
func addDevices(each *slurm.Each, asked gpu.Request, shards int) error {
	unsupported := func(message, hint string) error {
		return session.NewError(session.CodeEngineUnsupported, message, hint)
	}
	switch {
	case asked.IsZero():
		each.GPUType = ""
	case asked.Devices > 0:
		each.GPUs = asked.Devices
	case asked.Shares > 0 && asked.Shares%gpu.WholeDevice == 0:
		each.GPUs = int(asked.Shares / gpu.WholeDevice)
	case asked.Shares > gpu.WholeDevice:
		return unsupported("Slurm gives whole devices, or a part of one.", "Ask for whole devices.")
	case asked.Shares > 0 && shards == 0:
		return unsupported("The devices of this partition are only given whole.",
			"Ask for whole devices, or choose another partition.")
	case asked.Shares > 0:
		each.Shards = int((asked.Shares*gpu.Share(shards) + gpu.WholeDevice - 1) / gpu.WholeDevice)
	default:
		return unsupported("Slurm does not give devices by their memory or by a profile.",
			"Ask for whole devices, of a type that has what you need.")
	}
	return nil
}
