package slurm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
)

// The times between two answers that know no job before a job counts as not submitted. A request that was on its way
// while the controller did not answer may arrive later than a question that was asked after it, and the longer it was
// on its way, the later.
const (
	settleLeast = 10 * time.Second
	settleMost  = 2 * time.Minute
)

// Submit submits a job unless there is one of its name, live or ended, and returns its number. It never doubles a job:
// before it calls sbatch it stores a mark in Dir, so that a later call, also of another process, knows that there may
// be a job of which no answer came. Such a job is looked up twice, with at least 10 seconds between the answers, before
// it counts as not submitted. So Submit may take minutes. One that squeue has forgotten since is asked of accounting;
// where there is none, only what it left behind says that it ran, which the caller looks for first.
//
// It returns engine_call_invalid if Slurm refused the request, and engine_call_conflict if another call submits the
// same job. After all other errors the same request can be submitted again.
func (c *Client) Submit(ctx context.Context, r Request) (JobID, error) {
	if err := r.check(); err != nil {
		return 0, err
	}
	if !c.begin(r.Name) {
		return 0, session.NewError(session.CodeEngineConflict, "The job is being submitted already.", "")
	}
	defer c.end(r.Name)
	unsure, err := mark(r.Dir, r.Name)
	if err != nil {
		return 0, err
	}
	id, err := c.find(ctx, r.Name)
	if unsure && id == 0 && err == nil {
		id, err = c.findOld(ctx, r.Name)
	}
	if id != 0 || err != nil {
		return id, err
	}
	return c.submit(ctx, r)
}

// submit calls sbatch for a job that does not exist. If the answer is unclear, it looks for the job.
func (c *Client) submit(ctx context.Context, r Request) (JobID, error) {
	began := c.config.Clock.Now()
	out, failure := c.runFor(ctx, submitTime, "sbatch", r.Args()...)
	if failure == nil {
		id, err := submitted(out)
		if err == nil {
			return id, nil
		}
		failure = unreadable("sbatch", err)
	}
	if refused(failure) {
		return 0, errors.Join(failure, unmark(r.Dir, r.Name))
	}
	c.config.Log.Warn("the answer of sbatch is unclear", "job", r.Name, "err", failure)
	id, err := c.find(ctx, r.Name)
	if id == 0 && err == nil {
		id, err = c.findLate(ctx, r.Name, min(max(settleLeast, c.config.Clock.Since(began)), settleMost))
	}
	switch {
	case err != nil:
		return 0, session.WrapError(errors.Join(failure, err), session.CodeEngineUnavailable,
			"Slurm did not confirm the job, which may exist.", "Slipway looks it up before it submits it again.")
	case id != 0:
		return id, nil
	}
	return 0, errors.Join(failure, unmark(r.Dir, r.Name))
}

// findOld looks for a job that an earlier call may have submitted, once more after some time. Accounting may know one
// that ended so long ago that squeue has forgotten it.
func (c *Client) findOld(ctx context.Context, name JobName) (JobID, error) {
	id, err := c.findLate(ctx, name, settleLeast)
	if id != 0 || err != nil {
		return id, err
	}
	known, err := c.account(ctx, name, anyTask)
	if err != nil {
		c.config.Log.Warn("accounting cannot be asked for a job", "job", name, "err", err)
	}
	return known.ID, ctx.Err()
}

// findLate looks for a job once more after some time.
func (c *Client) findLate(ctx context.Context, name JobName, settle time.Duration) (JobID, error) {
	if err := c.config.Clock.Pause(ctx, settle); err != nil {
		return 0, err
	}
	return c.find(ctx, name)
}

// find returns the job of a name, the first one if Slurm has several; 0: there is none.
func (c *Client) find(ctx context.Context, name JobName) (JobID, error) {
	jobs, err := c.queue(ctx, "--name="+string(name))
	var found JobID
	for _, job := range jobs {
		id := job.ID
		if job.Array != 0 {
			id = job.Array
		}
		if job.Name == name && (found == 0 || id < found) {
			found = id
		}
	}
	return found, err
}

// submitted reads the answer of sbatch --parsable: the number, and the cluster if there are several.
func submitted(out []byte) (JobID, error) {
	text, _, _ := strings.Cut(strings.TrimSpace(string(out[:min(len(out), maxName)])), ";")
	return ParseJobID(text)
}

func (c *Client) begin(name JobName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.submitting[name] {
		return false
	}
	c.submitting[name] = true
	return true
}

func (c *Client) end(name JobName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.submitting, name)
}

// refusals are what Slurm says of a request that it checked and did not take. After any other sentence there may be a
// job all the same.
var refusals = []string{"Invalid account", "Invalid qos", "Invalid partition name", "Invalid feature",
	"Invalid generic resource", "Invalid GRES", "Invalid Trackable RESource", "Invalid license", "Invalid wckey",
	"Invalid node name", "Invalid job array", "Invalid --", "Invalid mcs_label", "Invalid time-min",
	"Job violates accounting/QOS policy", "Requested time limit is invalid", "Time limit specification required",
	"Requested node configuration is not available", "Requested nodes not in this partition",
	"Requested partition configuration not available", "Requested reservation", "Access denied to",
	"More processors requested than permitted", "Node count specification invalid", "CPU count specification invalid",
	"Memory required by task is not available", "Memory specification can not be satisfied",
	"User's group not permitted", "Access/permission denied", "Job dependency problem", "Duplicate generic resource",
	"Requested account has breached", "Required partition not available", "unrecognized option", "Unable to open file",
}

// refused reports whether it is certain that Slurm did not take a request.
func refused(err error) bool {
	failure, ok := errors.AsType[*Failure](err)
	return ok && failure.Exit > 0 && says(failure.Said, refusals) && !says(failure.Said, unreachable)
}

// testOnly asks sbatch to check a request and not to submit it.
const testOnly = "--test-only"

// Test asks Slurm whether it would accept a request, and when the job would start; zero: unknown. It submits nothing.
// It returns engine_call_invalid if Slurm refused the request.
func (c *Client) Test(ctx context.Context, r Request) (start time.Time, err error) {
	if err := r.check(); err != nil {
		return start, err
	}
	out, err := c.run(ctx, "sbatch", slices.Concat([]string{testOnly}, r.Args())...)
	if err != nil {
		return start, err
	}
	// sbatch: Job 12 to start at 2022-11-26T23:26:57 using 1 processors on nodes n1 in partition gpu
	_, after, _ := strings.Cut(string(out), " to start at ")
	text, _, _ := strings.Cut(after, " ")
	return moment(text), nil
}
