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
// returns engine_read_not-found for one of which nobody knows what became.
func (e *Engine) stateOf(ctx context.Context, r *run, k kernel, v view) (engine.State, error) {
	now := r.now()
	s := engine.State{ID: k.Name, Name: k.Name, Labels: k.Labels, CreatedAt: k.Created}
	exit, err := node.ReadExit(r.dir, k.Kernel)
	if err == nil {
		s.ExitCode, s.OOMKilled = exit.Code, exit.OOMKilled
		s.StartedAt, s.FinishedAt = exit.Started, exit.Ended
		switch why, known := e.jobs.why(r, exit, v); {
		case exit.Why == node.Restarted:
			s.Taken = taken(session.ReasonLost, session.CodeContainerLost, session.Say("slurmRestarted"))
		case !known: // Slurm says soon
			s = engine.State{ID: s.ID, Name: s.Name, Labels: s.Labels, CreatedAt: s.CreatedAt, StartedAt: s.StartedAt,
				Running: true}
		default:
			s.Taken = r.taken(why)
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
	// The meeting is no sign: it goes a little before the exit record comes.
	begun, err := node.ReadBegun(r.dir, k.Kernel)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fileFailure("the files of "+k.Name, err)
	}
	began := err == nil
	s.StartedAt = begun.At
	end := e.jobs.endOf(ctx, r, v)
	switch {
	case !end.sure:
		s.Running, s.Created = began, !began
	case end.lost:
		return s, session.NewError(session.CodeNoContainer, "The container "+k.Name+" was lost with its node.",
			"Launch again.")
	default:
		s.ExitCode, s.OOMKilled, s.FinishedAt = end.exit, end.state == slurm.OutOfMemory, end.at
		s.Taken = r.taken(end.state)
	}
	return s, nil
}

// takenBy says why Slurm ended a job, nil if it did not.
func takenBy(state slurm.State) *engine.Taken {
	switch state {
	case slurm.Timeout, slurm.Deadline:
		return taken(session.ReasonTaskTimeout, session.CodeRunTimeout, state.Words())
	case slurm.Cancelled:
		return taken(session.ReasonForced, session.CodeRunFailed, state.Words())
	case slurm.Preempted, slurm.NodeFail, slurm.BootFail, slurm.LaunchFailed:
		return taken(session.ReasonLost, session.CodeContainerLost, state.Words())
	}
	return nil
}

func taken(reason session.Reason, code session.Code, said session.Phrase) *engine.Taken {
	return &engine.Taken{Reason: reason, Cause: session.Because(code, said, session.Say("launchAgain"))}
}
