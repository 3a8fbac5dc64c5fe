package slurm

import (
	"context"
	"time"

	"slipway/backend/session"
	"slipway/backend/slurm"
)

// Until is when Slurm ends the job of a running session; zero: unknown, or never.
func (p *Planner) Until(s session.Session) time.Time {
	job, ok := p.running(s)
	if !ok || job.TimeLimit == slurm.Unlimited {
		return time.Time{}
	}
	return job.End
}

// running returns the job of a session, if it runs.
func (p *Planner) running(s session.Session) (job slurm.Job, ok bool) {
	r := p.engine.runs.named(slurm.NameOf(s.ID, s.Attempt))
	if r == nil {
		return job, false
	}
	job, ok = p.engine.jobs.view().jobs[r.now().key()]
	return job, ok && job.State == slurm.Running
}

// Extend asks Slurm to end the job of a running session at a time or up to a minute later. Most sites let only their
// admins extend a job: the error has Slurm's own words then.
func (p *Planner) Extend(ctx context.Context, s session.Session, until time.Time) error {
	job, ok := p.running(s)
	if !ok {
		return nil
	}
	if err := p.engine.config.Commands.Extend(ctx, job.ID, until.Sub(job.Start)); err != nil {
		said := session.AsError(failure(ctx, err), session.CodeEngineUnavailable)
		return session.WrapError(err, said.Code, "The time limit ends the session at "+
			job.End.UTC().Format("15:04")+" UTC and is not extended. "+said.Message,
			"Most sites let only their admins extend it: ask them, or keep the session for a shorter time.")
	}
	_, err := p.engine.jobs.poller.Fresh(ctx)
	return failure(ctx, err)
}
