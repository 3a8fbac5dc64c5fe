package slurm

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// stateOf is the state of a kernel's container: its exit record counts first, then what Slurm says, then accounting. If
// none of them knows its end, it has ended all the same, and its log is there.
func (e *Engine) stateOf(ctx context.Context, r *run, k kernel, v view) (engine.State, error) {
	now := r.now()
	s := engine.State{ID: k.Name, Name: k.Name, Labels: k.Labels, CreatedAt: k.Created}
	exit, err := node.ReadExit(r.dir, k.Kernel)
	if err == nil {
		s.ExitCode, s.OOMKilled = exit.Code, exit.OOMKilled
		s.StartedAt, s.FinishedAt = exit.Started, exit.Ended
		switch end, known := e.jobs.why(ctx, r, exit, v); {
		case exit.Why == node.Restarted:
			s.Taken = taken(session.ReasonLost, session.CodeContainerLost, session.Say("slurmRestarted"))
		case !known: // Slurm says soon
			s = engine.State{ID: s.ID, Name: s.Name, Labels: s.Labels, CreatedAt: s.CreatedAt, StartedAt: s.StartedAt,
				Running: true}
		default:
			s.Taken = r.taken(end)
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
	end := e.jobs.endOf(ctx, r, v, began)
	switch {
	case !end.sure:
		s.Running, s.Created = began, !began
	case end.lost:
		s.ExitCode = codeKill
		s.Taken = taken(session.ReasonLost, session.CodeContainerLost, session.Say("slurmForgotten"))
	default:
		s.ExitCode, s.OOMKilled, s.FinishedAt = end.exit, end.state == slurm.OutOfMemory, end.at
		s.Taken = r.taken(end)
	}
	return s, nil
}

// taken says why Slurm ended a job, nil if it did not.
func (end ending) taken(batch bool) *engine.Taken {
	switch end.state {
	case slurm.Timeout, slurm.Deadline:
		return taken(session.ReasonTaskTimeout, session.CodeRunTimeout, end.words())
	case slurm.Cancelled:
		return taken(session.ReasonForced, session.CodeRunFailed, end.words())
	case slurm.Preempted:
		return taken(session.ReasonPreempted, session.CodePreempted, end.words())
	case slurm.NodeFail, slurm.BootFail, slurm.LaunchFailed:
		return taken(session.ReasonLost, session.CodeContainerLost, end.words())
	case slurm.Requeued:
		hint := session.Say("slurmQueuedAgainHint")
		if batch {
			hint = session.Say("slurmNotTwice")
		}
		return &engine.Taken{Reason: session.ReasonLost, Again: !batch,
			Cause: session.Because(session.CodeContainerLost, end.words(), hint)}
	}
	return nil
}

func taken(reason session.Reason, code session.Code, said session.Phrase) *engine.Taken {
	return &engine.Taken{Reason: reason, Cause: session.Because(code, said, session.Say("launchAgain"))}
}

// words says how a job ended, with who or what ended it as far as that is known.
func (end ending) words() session.Phrase {
	switch {
	case end.state == slurm.Cancelled && end.by != "":
		return session.Say("slurmCancelledBy", session.Fill("user", end.by))
	case end.state == slurm.NodeFail && len(end.nodes) > 0:
		return session.Say("slurmNodeLost", session.Fill("node", strings.Join(end.nodes, ", ")))
	}
	return end.state.Words()
}
