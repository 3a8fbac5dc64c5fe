package slurmtest

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/slurm"
)

// do does what a command says and returns what it prints.
func (c *Controller) do(call Call) (is answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.advance(now)
	options, rest := parse(call.Args)
	switch call.Name {
	case "sbatch":
		is.out, is.err = c.sbatch(options, rest, now)
	case "squeue":
		is.out = c.squeue(options)
	case "scancel":
		is.err = c.scancel(options, rest, now)
	case "scontrol":
		is.out, is.err = c.scontrol(rest)
	case "sacct":
		is.out, is.err = c.sacct(options)
	case "sinfo":
		is.out = fmt.Appendf(nil, "all\x1f%d\x1f%d\x1f64000\x1fgpu:h200:%d(S:0)\x1f(null)\n", c.config.Nodes,
			c.config.CPUs, c.config.GPUs)
	default:
		is.err = refuse(call.Name, "This cluster has no such command.")
	}
	return is
}

func refuse(name, said string) error { return &slurm.Failure{Command: name, Exit: 1, Said: said} }

// parse splits arguments into long options and the rest.
func parse(args []string) (options map[string]string, rest []string) {
	options = map[string]string{}
	for _, arg := range args {
		if name, text, _ := strings.Cut(arg, "="); strings.HasPrefix(arg, "--") {
			options[name[2:]] = text
		} else {
			rest = append(rest, arg)
		}
	}
	return options, rest
}

func (c *Controller) sbatch(options map[string]string, rest []string, now time.Time) ([]byte, error) {
	if len(rest) != 1 || !path.IsAbs(rest[0]) {
		return nil, refuse("sbatch", "Unable to open file")
	}
	job := &Job{Name: options["job-name"], Comment: options["comment"], Partition: "all",
		State: slurm.Pending, Reason: "Priority", Submitted: now}
	job.Nodes, _ = strconv.Atoi(options["nodes"])
	job.CPUs, _ = strconv.Atoi(options["cpus-per-task"])
	minutes, _ := strconv.Atoi(options["time"])
	job.Limit = time.Duration(minutes) * time.Minute
	if gres := options["gres"]; gres != "" {
		job.GPUs, _ = strconv.Atoi(gres[strings.LastIndex(gres, ":")+1:])
	}
	switch {
	case job.CPUs > c.config.CPUs || job.GPUs > c.config.GPUs || job.Nodes > c.config.Nodes:
		return nil, refuse("sbatch", "Requested node configuration is not available")
	case options["partition"] != "" && options["partition"] != "all":
		return nil, refuse("sbatch", "Invalid partition name specified")
	}
	if _, test := options["test-only"]; test {
		return fmt.Appendf(nil, "sbatch: Job %d to start at %d using %d processors on nodes n1 in partition all\n",
			c.last+1, now.Unix(), job.CPUs), nil
	}
	first := c.last + 1
	if _, last, array := strings.Cut(options["array"], "-"); array {
		highest, _ := strconv.Atoi(last)
		for task := range highest + 1 {
			one := *job
			one.Of = slurm.TaskID{Array: first, Task: task}
			c.enter(&one)
		}
	} else {
		c.enter(job)
	}
	c.advance(now)
	return fmt.Appendf(nil, "%d\n", first), nil
}

// enter takes a job.
func (c *Controller) enter(job *Job) {
	c.last++
	c.made++
	job.ID = c.last
	c.jobs[job.ID] = job
	c.named[job.Name] = append(c.named[job.Name], job.ID)
	if c.config.Accounts {
		c.ever[job.Name] = append(c.ever[job.Name], job)
	}
	c.order = append(c.order, job.ID)
	c.pending = append(c.pending, job.ID)
}

// squeue prints the fields that [slurm.Client] asks for.
func (c *Controller) squeue(options map[string]string) []byte {
	shown := c.order
	if name, filtered := options["name"]; filtered {
		shown = c.named[name]
	}
	out := bytes.NewBuffer(make([]byte, 0, 200*len(shown)))
	for _, id := range shown {
		job := c.jobs[id]
		limit := "UNLIMITED"
		if job.Limit > 0 {
			limit = fmt.Sprintf("%d:00", job.Limit/time.Minute)
		}
		nodes := strings.Join(job.names(), ",")
		number, array, task := id.String(), id.String(), "N/A"
		if job.Of.Array != 0 {
			array, task = job.Of.Array.String(), strconv.Itoa(job.Of.Task)
		}
		if job.Of.Array != 0 && job.State == slurm.Pending {
			number = array
		}
		for _, field := range []string{number, array, task, job.Name, job.State.String(), orNone(job.Reason),
			at(job.Started), at(job.Ended), nodes, limit, "0:10", "all", "normal", "lab", "1000"} {
			out.WriteString(field)
			out.WriteByte('\x1f')
		}
		out.WriteString(job.Comment)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func (c *Controller) sacct(options map[string]string) ([]byte, error) {
	if !c.config.Accounts {
		return nil, refuse("sacct", "Slurm accounting storage is disabled")
	}
	var out []byte
	for _, job := range c.ever[options["name"]] {
		out = fmt.Appendf(out, "%s\x1f%s\x1f0:0\x1f%s\x1f%s\x1f%s\n", job.named(), job.State, at(job.Started),
			at(job.Ended), strings.Join(job.names(), ","))
	}
	return out, nil
}

func orNone(reason string) string {
	if reason == "" {
		return "None"
	}
	return reason
}

func at(t time.Time) string {
	if t.IsZero() {
		return "N/A"
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// find returns the job that commands name so, such as 12, or 12_3 for the task of an array.
func (c *Controller) find(text string) *Job {
	at := slices.IndexFunc(c.order, func(id slurm.JobID) bool { return c.jobs[id].named().String() == text })
	if at < 0 {
		return nil
	}
	return c.jobs[c.order[at]]
}

// named is how Slurm's commands name the job.
func (j *Job) named() slurm.Named {
	if j.Of.Array != 0 {
		return j.Of
	}
	return j.ID
}

func (c *Controller) scancel(options map[string]string, rest []string, now time.Time) error {
	job := c.find(rest[0])
	switch {
	case job == nil:
		return refuse("scancel", "Kill job error on job id "+rest[0]+": Invalid job id specified")
	case job.State.Ended():
		return refuse("scancel", "Kill job error on job id "+rest[0]+": Job/step already completing or completed")
	case options["signal"] != "":
		return nil // its processes end by themselves, or not
	}
	c.end(job, slurm.Cancelled, now)
	c.advance(now)
	return nil
}

func (c *Controller) scontrol(rest []string) ([]byte, error) {
	switch {
	case slices.Equal(rest, []string{"show", "config"}):
		return []byte("ClusterName = test\nKillWait = 30 sec\nMinJobAge = 300 sec\nSLURM_VERSION = 22.05.8\n" +
			"AccountingStorageType = accounting_storage/none\n"), nil
	case slices.Equal(rest, []string{"show", "partition"}):
		return fmt.Appendf(nil, "PartitionName=all AllowAccounts=ALL AllowQos=ALL Default=YES QoS=N/A "+
			"DefaultTime=NONE MaxNodes=UNLIMITED MaxTime=UNLIMITED RootOnly=NO State=UP TotalNodes=%d\n",
			c.config.Nodes), nil
	case len(rest) == 3 && rest[0] == "update":
		job := c.find(strings.TrimPrefix(rest[1], "JobId="))
		if job == nil {
			return nil, refuse("scontrol", "Invalid job id specified")
		}
		if minutes, ok := strings.CutPrefix(rest[2], "TimeLimit="); ok {
			n, _ := strconv.Atoi(minutes)
			job.Limit = time.Duration(n) * time.Minute
		}
		return nil, nil
	}
	job := c.find(rest[len(rest)-1])
	if job == nil {
		return nil, refuse("scontrol", "slurm_load_jobs error: Invalid job id specified")
	}
	line := fmt.Appendf(nil, "JobId=%d ", job.ID)
	if job.Of.Array != 0 {
		line = fmt.Appendf(line, "ArrayJobId=%d ArrayTaskId=%d ", job.Of.Array, job.Of.Task)
	}
	line = fmt.Appendf(line, "JobName=%s JobState=%s", job.Name, job.State)
	for _, node := range job.names() {
		line = fmt.Appendf(line, " Nodes=%s CPU_IDs=0-%d Mem=1000 GRES=gpu:h200:%d(IDX:0-%d)", node, job.CPUs-1,
			job.GPUs, max(0, job.GPUs-1))
	}
	return append(line, " Command=/x\n"...), nil
}
