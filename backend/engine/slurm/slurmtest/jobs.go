package slurmtest

import "strings"

// Submit submits a job as the user, with the options of sbatch that are given and a script, and returns its number. The
// job is cancelled after the test, which waits until nothing of it is left.
func (c *Cluster) Submit(script string, options ...string) string {
	c.t.Helper()
	args := append([]string{"--parsable", "--output=/dev/null", "--mem=50"}, options...)
	job := c.Exec(Login, "sbatch", append(args, "--wrap", script)...)
	c.t.Cleanup(func() {
		c.Mend()
		c.Cancel(job)
	})
	return job
}

// Cancel cancels a job and waits for its end.
func (c *Cluster) Cancel(job string) {
	c.t.Helper()
	c.Await("job "+job+" to be cancelled", func() bool {
		_, err := c.Try(User, Login, "scancel", job)
		return err == nil
	})
	c.Await("job "+job+" to end", func() bool {
		state, _ := c.State(job)
		return Ended(state)
	})
}

// State returns the state of a job and the reason that Slurm gives for it, in Slurm's words. Both are empty when the
// controller does not answer or has forgotten the job.
func (c *Cluster) State(job string) (state, reason string) {
	out, _ := c.Try(User, Login, "squeue", "--noheader", "--states=all", "--jobs="+job, "--format=%T %r")
	state, reason, _ = strings.Cut(out, " ")
	return state, reason
}

// AwaitState waits until a job is in a state.
func (c *Cluster) AwaitState(job, want string) {
	c.t.Helper()
	var state, reason string
	c.Await("job "+job+" to be "+want, func() bool {
		state, reason = c.State(job)
		if state != want && state != "" && Ended(state) {
			c.t.Fatalf("job %s is %s (%s), not %s", job, state, reason, want)
		}
		return state == want
	})
}

// AwaitSaved waits until the controller has written down what it knows of a job now. What happened within the last five
// seconds may be forgotten when the controller is killed: a job that began since then begins again, or is gone.
func (c *Cluster) AwaitSaved(job string) {
	c.t.Helper()
	mark := "/tmp/saved-" + job
	c.Root(Login, "touch", mark)
	c.t.Cleanup(func() { _, _ = c.Try(root, Login, "rm", "-f", mark) })
	c.Exec(Login, "scontrol", "update", "jobid="+job, "comment=saved")
	c.Await("the controller to save its state", func() bool {
		_, err := c.Try(root, Login, "test", "/var/spool/slurmctld/job_state", "-nt", mark)
		return err == nil
	})
}

// Ended reports whether a state is one that a job never leaves. A job that the controller no longer has has ended.
func Ended(state string) bool {
	switch state {
	case "", "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
		"TIMEOUT":
		return true
	default:
		return false
	}
}
