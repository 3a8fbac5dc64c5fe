// Package slurmtest has a scripted Slurm for tests: a [Controller] with nodes and a queue that answers Slurm's commands
// in this process, and that loses, delays or refuses answers as a test says.
package slurmtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"slipway/backend/slurm"
)

// Config configures a Controller.
type Config struct {
	Nodes     int                         // n1, n2 and so on, all alike
	CPUs      int                         // of a node
	GPUs      int                         // of a node
	MinJobAge time.Duration               // after which an ended job is forgotten; 0: 5 minutes
	Accounts  bool                        // accounting is on, and forgets nothing
	Runtime   func(job Job) time.Duration // how long a job runs; nil: until it is cancelled
	Fault     func(call Call) Fault       // nil: none
}

// Call is a command that was called. Number counts from 1.
type Call struct {
	Number int
	Name   string
	Args   []string
}

// Fault is what goes wrong with a call. The zero value is nothing.
type Fault struct {
	Late time.Duration // after which it is done; below 0: never
	Lost bool          // no answer comes: the call fails after Wait
	Wait time.Duration // after which the answer comes, but not before it is done
	Says string        // the call is refused with this sentence, and nothing is done
}

// Job is a job of the controller.
type Job struct {
	ID        slurm.JobID
	Of        slurm.TaskID // the task that it is; zero: none
	Name      string
	Comment   string
	Partition string
	Nodes     int
	CPUs      int // of each node
	GPUs      int // of each node
	State     slurm.State
	Reason    string
	Limit     time.Duration // 0: none
	Submitted time.Time
	Started   time.Time
	Ended     time.Time
	placed    []int // indexes of nodes
}

// Controller is a scripted Slurm. It is safe for concurrent use. Its clock is that of the process, which a test in
// testing/synctest controls.
type Controller struct {
	config Config

	mu      sync.Mutex // guards everything below
	jobs    map[slurm.JobID]*Job
	named   map[string][]slurm.JobID
	ever    map[string][]*Job // of each name, if accounting is on
	order   []slurm.JobID     // of those that are remembered
	pending []slurm.JobID     // of order
	running []slurm.JobID
	last    slurm.JobID
	free    []struct{ cpus, gpus int } // of each node
	calls   int
	counts  map[string]int // calls by command
	made    int            // jobs and tasks that were ever submitted
	checked time.Time      // when jobs were last ended and forgotten
}

// New returns a controller without jobs.
func New(config Config) *Controller {
	config.MinJobAge = cmp.Or(config.MinJobAge, 5*time.Minute)
	c := &Controller{config: config, jobs: map[slurm.JobID]*Job{}, named: map[string][]slurm.JobID{},
		ever: map[string][]*Job{}, counts: map[string]int{}}
	for range config.Nodes {
		c.free = append(c.free, struct{ cpus, gpus int }{config.CPUs, config.GPUs})
	}
	return c
}

// Run answers a command. It is a [slurm.Run].
func (c *Controller) Run(ctx context.Context, name string, args []string, _ []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	c.calls++
	c.counts[name]++
	call := Call{Number: c.calls, Name: name, Args: args}
	c.mu.Unlock()
	var fault Fault
	if c.config.Fault != nil {
		fault = c.config.Fault(call)
	}
	if fault.Says != "" {
		return nil, refuse(name, fault.Says)
	}
	done := make(chan answer, 1)
	switch {
	case fault.Late == 0:
		done <- c.do(call)
	case fault.Late > 0:
		time.AfterFunc(fault.Late, func() { done <- c.do(call) })
	}
	select {
	case <-time.After(fault.Wait):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if fault.Lost {
		return nil, refuse(name, "Socket timed out on send/recv operation")
	}
	select {
	case is := <-done:
		return is.out, is.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type answer struct {
	out []byte
	err error
}

// Calls is how often a command was called; all commands if name is empty.
func (c *Controller) Calls(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == "" {
		return c.calls
	}
	return c.counts[name]
}

// Jobs returns the jobs that were submitted and are remembered, in order.
func (c *Controller) Jobs() (jobs []Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advance(time.Now())
	for _, id := range c.order {
		jobs = append(jobs, *c.jobs[id])
	}
	return jobs
}

// Made is how many jobs were ever submitted, counting each task of an array.
func (c *Controller) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// End ends a job in a state, such as [slurm.NodeFail].
func (c *Controller) End(id slurm.JobID, state slurm.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.jobs[id]; job != nil && !job.State.Ended() {
		c.end(job, state, time.Now())
	}
}

// Forget drops all that is known of a job, as a controller does that is killed shortly after it took a job.
func (c *Controller) Forget(id slurm.JobID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.jobs[id]; job != nil {
		if !job.State.Ended() {
			c.end(job, slurm.Cancelled, time.Now())
		}
		job.Ended = time.Time{} // longer ago than MinJobAge
		c.checked = time.Time{}
		c.advance(time.Now())
	}
}

// advance ends jobs whose time is over, starts those that fit, in their order, and forgets old ones. Callers hold mu.
func (c *Controller) advance(now time.Time) {
	c.finish(now)
	for len(c.pending) > 0 {
		job := c.jobs[c.pending[0]]
		if !c.place(job) {
			job.Reason = "Resources"
			break
		}
		c.pending = c.pending[1:]
		c.running = append(c.running, job.ID)
		job.State, job.Reason, job.Started = slurm.Running, "", now
	}
}

// finish ends jobs whose time is over, and forgets old ones, once at each time. Callers hold mu.
func (c *Controller) finish(now time.Time) {
	if now.Equal(c.checked) {
		return
	}
	c.checked = now
	for _, id := range slices.Clone(c.running) {
		job := c.jobs[id]
		if c.config.Runtime != nil {
			if end := job.Started.Add(c.config.Runtime(*job)); !now.Before(end) {
				c.end(job, slurm.Completed, end)
				continue
			}
		}
		if job.Limit > 0 && !now.Before(job.Started.Add(job.Limit)) {
			c.end(job, slurm.Timeout, job.Started.Add(job.Limit))
		}
	}
	c.order = slices.DeleteFunc(c.order, func(id slurm.JobID) bool {
		job := c.jobs[id]
		old := job.State.Ended() && now.Sub(job.Ended) > c.config.MinJobAge
		if old {
			delete(c.jobs, id)
			c.named[job.Name] = slices.DeleteFunc(c.named[job.Name],
				func(named slurm.JobID) bool { return named == id })
		}
		return old
	})
}

// place takes the nodes of a job, or none.
func (c *Controller) place(job *Job) bool {
	for i, free := range c.free {
		if len(job.placed) < job.Nodes && free.cpus >= job.CPUs && free.gpus >= job.GPUs {
			job.placed = append(job.placed, i)
		}
	}
	if len(job.placed) < job.Nodes {
		job.placed = nil
		return false
	}
	for _, i := range job.placed {
		c.free[i].cpus -= job.CPUs
		c.free[i].gpus -= job.GPUs
	}
	return true
}

func (c *Controller) end(job *Job, state slurm.State, now time.Time) {
	if job.State == slurm.Running {
		for _, i := range job.placed {
			c.free[i].cpus += job.CPUs
			c.free[i].gpus += job.GPUs
		}
		c.running = slices.DeleteFunc(c.running, func(id slurm.JobID) bool { return id == job.ID })
	} else {
		c.pending = slices.DeleteFunc(c.pending, func(id slurm.JobID) bool { return id == job.ID })
	}
	job.State, job.Reason, job.Ended = state, "", now
}

// names are the names of nodes.
func (j *Job) names() (names []string) {
	for _, i := range j.placed {
		names = append(names, fmt.Sprintf("n%d", i+1))
	}
	return names
}
