package slurm

import (
	"cmp"
	"context"
	"os/user"
	"sync"
	"time"

	"slipway/backend/guest/node"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// jobs are the jobs of runs as Slurm tells of them.
type jobs struct {
	commands *slurm.Client
	poller   *slurm.Poller
	clock    *pace.Clock

	mu    sync.Mutex                  // guards everything below
	ends  map[slurm.JobName]ending    // of runs whose job is over without an exit record, by their names
	exits map[slurm.JobName]time.Time // when kernels of a run were first seen to have been ended
}

// ending is what is found out about a job that is over, while its kernels have no exit record.
type ending struct {
	since time.Time // the first answer of Slurm that called it ended or did not have it
	asked time.Time // when accounting was asked last
	sure  bool
	lost  bool // it is certain that what became of it is unknown
	state slurm.State
	exit  int
	at    time.Time // of the end; zero: unknown
	by    string    // who cancelled it; empty: it was not cancelled, or that is unknown
	nodes []string  // of the job; nil: unknown
}

const (
	settle   = 5 * time.Second  // until the file of an exit on a node is seen on the login node
	missing  = time.Minute      // between two answers without a job, after which it is lost
	askAgain = 30 * time.Second // between two questions to accounting
	explain  = 45 * time.Second // until Slurm says why it ended a job, longer than it waits before it kills
	unheard  = 5 * time.Minute  // without an answer of Slurm, after which that stays unknown
)

// view is what Slurm has last said of the jobs.
type view struct {
	at   time.Time
	jobs map[jobKey]slurm.Job
}

func (j *jobs) view() view {
	said := j.poller.Snapshot()
	v := view{at: said.At, jobs: make(map[jobKey]slurm.Job, len(said.Jobs))}
	for _, job := range said.Jobs {
		// Job numbers start again one day, so one that is over may have the name of one that is not.
		key := jobKey{job.Name, job.Task}
		if other, ok := v.jobs[key]; !ok || other.State.Ended() && other.ID < job.ID || !job.State.Ended() {
			v.jobs[key] = job
		}
	}
	return v
}

// eachTry separates the numbers in the names of jobs: a job that was cancelled while it waited is remembered by Slurm
// for some time, so the next one for the same attempt has the number of the attempt and eachTry more.
const eachTry = 1_000_000

// jobName is the name of a new job for an attempt. Slurm does not know one of that name, and no run has one.
func (rs *runs) jobName(v view, id session.ID, attempt int) slurm.JobName {
	try := 0
	taken := func(name slurm.JobName) {
		if of, n, ok := slurm.ParseJobName(name); ok && of == id && n%eachTry == attempt {
			try = max(try, n/eachTry+1)
		}
	}
	for key := range v.jobs {
		taken(key.name)
	}
	for _, r := range rs.all() {
		taken(r.now().Request.Name)
	}
	return slurm.NameOf(id, attempt+try*eachTry)
}

// end ends the job of a run by a command of Slurm, if it has one.
func (j *jobs) end(ctx context.Context, r *run, by func(context.Context, slurm.Named) error) error {
	now := r.now()
	if now.Job == 0 && !now.Submitted.IsZero() { // its submission was interrupted
		said, err := j.poller.Fresh(ctx)
		if err != nil {
			return failure(ctx, err)
		}
		for _, other := range said.Jobs {
			if other.Name == now.Request.Name && other.Task == now.Task && !other.State.Ended() {
				now.Job = cmp.Or(other.Array, other.ID)
			}
		}
	}
	if now.Job == 0 {
		return nil
	}
	if err := by(ctx, now.named()); err != nil {
		return failure(ctx, err)
	}
	j.poller.Wake()
	return nil
}

// over reports whether Slurm says that the job of a run has ended or is unknown.
func (j *jobs) over(r *run, v view) bool {
	job, known := v.jobs[r.now().key()]
	if known {
		return job.State.Ended()
	}
	return v.at.After(r.now().Submitted)
}

// waits reports whether Slurm says that the job of a run waits.
func (j *jobs) waits(r *run, v view) bool {
	job, known := v.jobs[r.now().key()]
	return known && job.State.Waits()
}

// endOf finds out whether the job of a run is over, though its kernels have no exit record. One that Slurm does not
// know is lost when two answers at least a minute apart have not had it, and accounting does not know its end. One that
// began and waits is over as well.
func (j *jobs) endOf(ctx context.Context, r *run, v view, began bool) ending {
	now := r.now()
	job, known := v.jobs[now.key()]
	j.mu.Lock()
	end, seen := j.ends[r.name]
	j.mu.Unlock()
	switch {
	case end.sure:
		return end
	case began && known && job.State.Waits() && !seen: // the answer may be older than the start
		end, seen = ending{since: j.clock.Now()}, true
		j.poller.Wake()
	case began && known && job.State.Waits():
		if v.at.After(end.since) {
			end = ending{sure: true, state: slurm.Requeued, exit: codeTerm}
		}
	case known && !job.State.Ended() || !known && (now.Job == 0 || !v.at.After(now.Submitted)):
		end, seen = ending{}, false
	case !seen:
		end = ending{since: v.at}
		seen = true
	case known && j.clock.Since(end.since) > settle:
		end.sure, end.state, end.at, end.nodes = true, job.State, job.End, job.Nodes
		j.judge(ctx, r, &end)
	case !known && v.at.Sub(end.since) >= missing && j.clock.Since(end.asked) > askAgain:
		j.judge(ctx, r, &end)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if !seen {
		delete(j.ends, r.name)
	} else {
		j.ends[r.name] = end
	}
	return end
}

// judge asks accounting for the end of a job. Without an answer it decides by what squeue has said, if that knows it.
func (j *jobs) judge(ctx context.Context, r *run, end *ending) {
	end.asked = j.clock.Now()
	now := r.now()
	said, known, err := j.commands.Ended(ctx, now.Request.Name, now.Task)
	switch {
	case known:
		end.sure, end.state, end.at, end.exit = true, said.State, said.End, said.Exit
		end.by = nameOfUser(said.By)
		if len(said.Nodes) > 0 {
			end.nodes = said.Nodes
		}
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
		end.exit = codeKill
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

// nameOfUser is the name of a user by the number, or the number of one that this computer does not know.
func nameOfUser(id string) string {
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// why is how Slurm ended a job, after one of its kernels has ended, unknown until Slurm has said so. Its state is
// [slurm.Unknown] if the engine was asked to end the kernel, or a command ended by itself. Kernels without one end only
// when they get a signal.
func (j *jobs) why(ctx context.Context, r *run, exit node.Exit, v view) (end ending, known bool) {
	record := r.now()
	if record.Batch && exit.Code != codeTerm && exit.Code != codeKill || exit.OOMKilled || exit.Started.IsZero() ||
		r.stopping.Load() {
		return ending{}, true
	}
	job, there := v.jobs[record.key()]
	since, now := j.since(r)
	fresh := v.at.After(since) // it says what came after the end
	switch {
	case there && job.State == slurm.Cancelled:
		return j.cancelled(ctx, r), true
	case there && job.State.Ended():
		return ending{state: job.State, nodes: job.Nodes}, true
	case there && fresh && job.State.Waits():
		return ending{state: slurm.Requeued}, true
	}
	return ending{}, v.at.Sub(since) > explain || now.Sub(since) > unheard || !there && fresh
}

// since is when a kernel of a run was first seen to have been ended, which is now at the first call. Slurm is asked
// soon then.
func (j *jobs) since(r *run) (since, now time.Time) {
	now = j.clock.Now()
	j.mu.Lock()
	since, seen := j.exits[r.name]
	if !seen {
		since, j.exits[r.name] = now, now
	}
	j.mu.Unlock()
	if !seen {
		j.poller.Wake()
	}
	return since, now
}

// cancelled is the end of a job that somebody cancelled. Only accounting knows who, and is asked once.
func (j *jobs) cancelled(ctx context.Context, r *run) ending {
	j.mu.Lock()
	end := j.ends[r.name]
	j.mu.Unlock()
	if !end.sure {
		end = ending{sure: true, state: slurm.Cancelled}
		j.judge(ctx, r, &end)
		j.mu.Lock()
		j.ends[r.name] = end
		j.mu.Unlock()
	}
	return end
}

// forget drops what is known of the end of a run's job.
func (j *jobs) forget(r *run) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.ends, r.name)
	delete(j.exits, r.name)
}
