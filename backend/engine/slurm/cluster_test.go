//go:build linux

package slurm_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway/backend/slurm"
)

// cluster is Slurm for tests: it answers the commands that the client calls, and runs the scripts of jobs as processes
// of this computer. It has so many CPUs, which it gives in the order in which jobs were submitted.
type cluster struct {
	t    *testing.T
	cpus int

	mu      sync.Mutex // guards everything below
	jobs    []*job
	calls   map[string]int
	asked   []string // arguments of the last sbatch
	changed []string // arguments of the last scontrol update
	ended   []string // what scancel was called for
	down    bool     // the controller does not answer
	deaf    bool     // it does what sbatch asks and does not answer it
	// the site takes no arrays
	noArrays bool
	refuse   string // why it refuses every request; empty: it does not
	broken   bool   // sinfo fails
	kept     bool   // accounting keeps the ends of jobs
	gone     []*job // that only accounting knows
	tasks    sync.WaitGroup
}

type job struct {
	id                 int
	array, task        int // that it is a task of; 0: none
	name, dir, log     string
	script             string
	comment, partition string
	cpus               int
	state, reason      string
	start, end         time.Time
	code               int
	by                 string // the number of who cancelled it
	process            *os.Process
	over               chan struct{} // closed when the process has ended
	cancelled          bool
}

func newCluster(t *testing.T, cpus int) *cluster {
	c := &cluster{t: t, cpus: cpus, calls: map[string]int{}}
	t.Cleanup(func() {
		c.mu.Lock()
		c.cpus = 0
		for _, j := range c.jobs {
			c.signal(j, syscall.SIGKILL)
		}
		c.mu.Unlock()
		c.tasks.Wait()
	})
	return c
}

// run is a [slurm.Run].
func (c *cluster) run(ctx context.Context, name string, args []string, _ []byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[name]++
	fail := func(said string) ([]byte, error) { return nil, &slurm.Failure{Command: name, Exit: 1, Said: said} }
	if c.down {
		return fail("Unable to contact slurm controller (connect failure)")
	}
	options, rest := options(args)
	switch name {
	case "sbatch":
		if c.asked = args; c.refuse != "" {
			return fail(c.refuse)
		}
		if _, test := options["test-only"]; test {
			return []byte("sbatch: Job 1 to start at 2026-01-01T00:00:00 using 1 processors on nodes n1\n"), nil
		}
		if _, array := options["array"]; array && c.noArrays {
			return fail("Batch job submission failed: Invalid job array specification")
		}
		id := c.submit(options, rest[0])
		if c.deaf {
			return fail("Socket timed out on send/recv operation")
		}
		return fmt.Appendf(nil, "%d\n", id), nil
	case "squeue":
		return c.squeue(options["format"], options["name"]), nil
	case "scancel":
		return nil, c.scancel(options, rest)
	case "scontrol":
		return c.scontrol(rest)
	case "sinfo":
		if c.broken {
			return fail("slurm_load_partitions: Unable to contact slurm controller")
		}
		return fmt.Appendf(nil, "main\x1f1\x1f%d\x1f65536\x1fgpu:h200:2(S:0)\x1f(null)\n", c.cpus), nil
	case "sacct":
		if !c.kept {
			return fail("Slurm accounting storage is disabled")
		}
		return c.sacct(options["name"]), nil
	}
	return fail("no command " + name)
}

// options splits the arguments of a command into --name=value and the rest.
func options(args []string) (named map[string]string, rest []string) {
	named = map[string]string{}
	for _, arg := range args {
		if text, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, _ := strings.Cut(text, "=")
			named[name] = value
		} else {
			rest = append(rest, arg)
		}
	}
	return named, rest
}

func (c *cluster) submit(options map[string]string, script string) (id int) {
	cpus, _ := strconv.Atoi(options["cpus-per-task"])
	id, tasks := len(c.jobs)+len(c.gone)+1, 1
	_, last, array := strings.Cut(options["array"], "-")
	if array {
		tasks, _ = strconv.Atoi(last)
		tasks++
	}
	for task := range tasks {
		j := &job{id: id + task, name: options["job-name"], dir: options["chdir"], task: task,
			log: strings.ReplaceAll(options["output"], "%a", strconv.Itoa(task)), comment: options["comment"],
			partition: cmp.Or(options["partition"], "main"), script: script, cpus: cpus, state: "PENDING",
			reason: "Priority", over: make(chan struct{})}
		if array {
			j.array = id
		}
		c.jobs = append(c.jobs, j)
	}
	c.schedule()
	return id
}

// named is how commands name the job.
func (j *job) named() string {
	if j.array > 0 {
		return fmt.Sprintf("%d_%d", j.array, j.task)
	}
	return strconv.Itoa(j.id)
}

// schedule starts what fits.
func (c *cluster) schedule() {
	free := c.cpus
	for _, j := range c.jobs {
		if j.state == "RUNNING" {
			free -= j.cpus
		}
	}
	for _, j := range c.jobs {
		switch {
		case j.state != "PENDING":
		case j.cpus <= free:
			free -= j.cpus
			c.start(j)
		default:
			j.reason = "Resources"
			return
		}
	}
}

func (c *cluster) start(j *job) {
	out, err := os.OpenFile(j.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		c.t.Error(err)
		return
	}
	process := exec.Command(j.script)
	process.Dir, process.Stdout, process.Stderr = j.dir, out, out
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "SLURM_JOB_ID=" + strconv.Itoa(j.id),
		"SLURM_JOB_NAME=" + j.name, "SLURM_PROCID=0", "SLURM_NNODES=1", "SLURM_JOB_NUM_NODES=1", "SLURMD_NODENAME=n1",
		"SLURM_NODEID=0", "SLURM_SUBMIT_DIR=" + j.dir}
	if j.array > 0 {
		process.Env = append(process.Env, fmt.Sprintf("SLURM_ARRAY_JOB_ID=%d", j.array),
			fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", j.task))
	}
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := process.Start(); err != nil {
		c.t.Error(err)
		return
	}
	j.state, j.reason, j.start, j.process = "RUNNING", "None", time.Now(), process.Process
	c.tasks.Go(func() {
		process.Wait() //nolint:errcheck // its state has the code
		out.Close()    //nolint:errcheck // of a test
		c.mu.Lock()
		defer c.mu.Unlock()
		if j.state == "RUNNING" { // else a test has decided it
			j.end, j.code = time.Now(), process.ProcessState.ExitCode()
			switch {
			case j.cancelled:
				j.state = "CANCELLED"
			case j.code == 0:
				j.state = "COMPLETED"
			default:
				j.state, j.reason = "FAILED", "NonZeroExitCode"
			}
		}
		close(j.over)
		c.schedule()
	})
}

// signal sends a signal to all processes of a job.
func (c *cluster) signal(j *job, sig syscall.Signal) {
	if j.process == nil {
		return
	}
	select {
	case <-j.over: // its number may be another's
	default:
		syscall.Kill(-j.process.Pid, sig) //nolint:errcheck // it may have ended
	}
}

func (c *cluster) scancel(options map[string]string, ids []string) error {
	for _, id := range ids {
		at := slices.IndexFunc(c.jobs, func(j *job) bool { return j.named() == id })
		if at < 0 {
			return &slurm.Failure{Command: "scancel", Exit: 1, Said: "Invalid job id specified"}
		}
		j := c.jobs[at]
		c.ended = append(c.ended, id)
		c.signal(j, syscall.SIGTERM)
		if _, only := options["signal"]; only {
			continue
		}
		switch j.state {
		case "PENDING":
			j.state, j.end = "CANCELLED", time.Now()
		case "RUNNING":
			j.cancelled = true
			c.tasks.Go(func() { // KillWait, shorter than Slurm's
				select {
				case <-j.over:
				case <-time.After(time.Second):
					c.mu.Lock()
					defer c.mu.Unlock()
					c.signal(j, syscall.SIGKILL)
				}
			})
		}
	}
	return nil
}

func (c *cluster) squeue(format, name string) []byte {
	var out bytes.Buffer
	second := func(t time.Time) string {
		if t.IsZero() {
			return "N/A"
		}
		return strconv.FormatInt(t.Unix(), 10)
	}
	for _, j := range c.jobs {
		if name != "" && j.name != name {
			continue
		}
		nodes, end := "n1", j.end
		if j.start.IsZero() {
			nodes = ""
		} else if end.IsZero() {
			end = j.start.Add(time.Hour)
		}
		id, array, task := strconv.Itoa(j.id), strconv.Itoa(j.id), "N/A"
		if j.array > 0 {
			array, task = strconv.Itoa(j.array), strconv.Itoa(j.task)
		}
		if j.array > 0 && j.start.IsZero() {
			id = array
		}
		fmt.Fprintln(&out, strings.NewReplacer("%A", id, "%F", array, "%K", task, "%i", id, "%j", j.name, "%T", j.state,
			"%r", j.reason, "%S", second(j.start), "%e", second(end), "%N", nodes, "%l", "1:00:00", "%M", "0:01",
			"%P", j.partition, "%q", "normal", "%a", "(null)", "%Q", "100", "%k", j.comment).Replace(format))
	}
	return out.Bytes()
}

func (c *cluster) scontrol(args []string) ([]byte, error) {
	switch {
	case args[0] == "update":
		c.changed = args
		if c.refuse != "" {
			return nil, &slurm.Failure{Command: "scontrol", Exit: 1, Said: c.refuse}
		}
		return nil, nil
	case slices.Equal(args, []string{"show", "config"}):
		return []byte("ClusterName             = test\nKillWait                = 1 sec\n" +
			"MinJobAge               = 300 sec\nSLURM_VERSION           = 22.05.8\n" +
			"AccountingStorageType   = accounting_storage/none\nProctrackType           = proctrack/linuxproc\n"), nil
	case slices.Equal(args, []string{"show", "partition"}):
		return []byte("PartitionName=main AllowAccounts=ALL AllowQos=ALL Default=YES MaxTime=1-00:00:00 " +
			"DefaultTime=01:00:00 State=UP TotalNodes=1 QoS=N/A\n"), nil
	case len(args) == 3 && args[1] == "job":
		for _, j := range c.jobs {
			if j.named() == args[2] {
				task := ""
				if j.array > 0 {
					task = fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%d ", j.array, j.task)
				}
				return fmt.Appendf(nil, "JobId=%d %sJobName=%s JobState=%s Nodes=n1 CPU_IDs=0-%d Mem=128 "+
					"GRES=gpu:h200:1(IDX:1) Command=%s\n", j.id, task, j.name, j.state, j.cpus-1, j.script), nil
			}
		}
		return nil, &slurm.Failure{Command: "scontrol", Exit: 1, Said: "Invalid job id specified"}
	}
	return nil, &slurm.Failure{Command: "scontrol", Exit: 1, Said: "invalid keyword"}
}

func (c *cluster) sacct(name string) []byte {
	var out bytes.Buffer
	for _, j := range append(slices.Clone(c.gone), c.jobs...) {
		if j.name == name {
			state := j.state
			if j.by != "" {
				state += " by " + j.by
			}
			fmt.Fprintf(&out, "%s\x1f%s\x1f%d:0\x1f%d\x1f%d\x1fn1\n", j.named(), state, j.code, j.start.Unix(),
				j.end.Unix())
		}
	}
	return out.Bytes()
}

// total is the number of calls of all commands.
func (c *cluster) total() (n int) {
	for _, calls := range c.calls {
		n += calls
	}
	return n
}

// change changes the cluster.
func (c *cluster) change(how func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how(c)
}

// count is the number of jobs that were submitted under a name.
func (c *cluster) count(name slurm.JobName) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		if j.name == string(name) {
			n++
		}
	}
	return n
}
