package slurm

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// ending is what is found out about a job that is over, while its kernels have no exit record.
type ending struct {
	since time.Time // the first answer of Slurm that called it ended or did not have it
	asked time.Time // when accounting was asked last
	sure  bool
	lost  bool // nobody knows what became of it; set if sure
	state slurm.State
	exit  int
	at    time.Time // of the end; zero: unknown
}

const (
	settle   = 5 * time.Second  // until the file of an exit on a node is seen on the login node
	forget   = time.Minute      // between two answers without a job, after which it is lost
	askAgain = 30 * time.Second // between two questions to accounting
)

// view is what Slurm has last said of the jobs.
type view struct {
	at   time.Time
	jobs map[slurm.JobName]slurm.Job
}

func (e *Engine) view() view {
	said := e.poller.Snapshot()
	v := view{at: said.At, jobs: make(map[slurm.JobName]slurm.Job, len(said.Jobs))}
	for _, job := range said.Jobs {
		// Job numbers start again one day, so one that is over may have the name of one that is not.
		if other, ok := v.jobs[job.Name]; !ok || other.State.Ended() && other.ID < job.ID || !job.State.Ended() {
			v.jobs[job.Name] = job
		}
	}
	return v
}

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
	end := e.endOf(ctx, r, v)
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

// endOf finds out whether the job of a run is over, though its kernels have no exit record. One that Slurm does not know
// is lost when two answers at least a minute apart have not had it, and accounting does not know its end.
func (e *Engine) endOf(ctx context.Context, r *run, v view) ending {
	now := r.now()
	job, known := v.jobs[now.Request.Name]
	e.mu.Lock()
	end, seen := e.ends[r.name]
	e.mu.Unlock()
	switch {
	case end.sure:
		return end
	case known && !job.State.Ended() || !known && (now.Job == 0 || !v.at.After(now.Submitted)):
		end, seen = ending{}, false
	case !seen:
		end = ending{since: v.at}
		seen = true
	case known && e.config.Clock.Since(end.since) > settle:
		end.sure, end.state, end.at = true, job.State, job.End
		e.judge(ctx, r, &end)
	case !known && v.at.Sub(end.since) >= forget && e.config.Clock.Since(end.asked) > askAgain:
		e.judge(ctx, r, &end)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !seen {
		delete(e.ends, r.name)
	} else {
		e.ends[r.name] = end
	}
	return end
}

// judge asks accounting for the end of a job. Without an answer it decides by what squeue has said, if that knows it.
func (e *Engine) judge(ctx context.Context, r *run, end *ending) {
	end.asked = e.config.Clock.Now()
	said, known, err := e.config.Commands.Ended(ctx, r.now().Request.Name)
	switch {
	case known:
		end.sure, end.state, end.at, end.exit = true, said.State, said.End, said.Exit
		if said.Signal > 0 {
			end.exit = 128 + said.Signal
		}
	case err != nil && !end.sure:
		return // it is asked again
	case !end.sure:
		end.sure, end.lost = true, true
	}
	switch end.state {
	case slurm.NodeFail, slurm.BootFail, slurm.LaunchFailed:
		end.lost = true
	case slurm.Timeout, slurm.Cancelled, slurm.Preempted, slurm.Deadline:
		end.exit = codeTerm
	case slurm.OutOfMemory:
		end.exit = codeKill
	case slurm.Completed:
	default:
		end.exit = max(end.exit, 1)
	}
}

// The exit codes of processes that TERM and KILL have ended.
const (
	codeTerm = 128 + 15
	codeKill = 128 + 9
)
