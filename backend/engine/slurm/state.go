package slurm

import (
	"context"
	"errors"
	"io/fs"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// stateOf is the state of a kernel's container: its exit record counts first, then what Slurm says, then accounting. It
// returns engine_read_not-found for one that was lost with its node.
func (e *Engine) stateOf(ctx context.Context, r *run, k kernel, v view) (engine.State, error) {
	now := r.now()
	s := engine.State{ID: k.Name, Name: k.Name, Labels: k.Labels, CreatedAt: k.Created}
	exit, err := node.ReadExit(r.dir, k.Kernel)
	if err == nil {
		s.ExitCode, s.OOMKilled = exit.Code, exit.OOMKilled
		s.StartedAt, s.FinishedAt = exit.Started, exit.Ended
		if exit.Why == node.Restarted {
			s.Error = "Slurm started the job again, and its command was not run twice."
		}
		return s, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return s, fileFailure("the files of "+k.Name, err)
	}
	if now.Submitted.IsZero() {
		s.Created = true
		return s, nil
	}
	meeting, err := node.ReadMeeting(r.dir, k.Kernel)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fileFailure("the files of "+k.Name, err)
	}
	met := err == nil
	s.StartedAt = meeting.Started
	end := e.jobs.endOf(ctx, r, v)
	switch {
	case !end.sure:
		s.Running, s.Created = met, !met
	case end.lost:
		return s, session.NewError(session.CodeNoContainer, "The container "+k.Name+" was lost with its node.",
			"Launch again.")
	default:
		s.ExitCode, s.OOMKilled, s.FinishedAt = end.exit, end.state == slurm.OutOfMemory, end.at
		s.Error = endWords[end.state]
	}
	return s, nil
}

// endWords say why Slurm ended a job.
var endWords = map[slurm.State]string{
	slurm.Timeout:   "Slurm ended the job at its time limit.",
	slurm.Cancelled: "The job was cancelled in Slurm.",
	slurm.Preempted: "Slurm ended the job in favor of another one.",
	slurm.Deadline:  "Slurm ended the job at its deadline.",
}
