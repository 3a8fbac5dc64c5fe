package slurm

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Request is what is asked of Slurm for one session: one job with one kernel on each node.
type Request struct {
	Name    JobName
	Comment string // squeue shows it, accounting does not
	Target
	Time   time.Duration // rounded up to whole minutes; 0: the partition's default; may be [Unlimited]
	Nodes  int           // at least 1
	Each   Each
	Begin  time.Time // not before; zero: at once
	Nice   int       // lowers the priority; at least 0
	Array  int       // number of tasks, each with these nodes; 0: no array
	Dir    string    // absolute path of the working folder; [Client.Submit] stores its mark in it
	Script string    // absolute path of the script
	Log    string    // absolute path of what the script prints; a task of an array appends a dot and its index
	Extra  []string  // options by hand that [CheckExtra] allows
}

// Target is where a job should run. Empty fields are left to the site.
type Target struct {
	Partition, Account, QOS, Constraint, Reservation string
}

// Each is what a job gets on each node.
type Each struct {
	CPUs    int       // at least 1
	Memory  gpu.Bytes // rounded up to whole MiB; 0: the site's default
	GPUs    int       // whole devices
	GPUType string    // of the devices or shards; empty: any
	Shards  int       // instead of whole devices
}

// maxTasks is the most tasks of an array.
const maxTasks = 10000

// check fails for a request that sbatch would read as something else.
func (r Request) check() error {
	_, _, named := ParseJobName(r.Name)
	switch {
	case !named:
		return invalid("%q is not the name of a job of Slipway.", r.Name)
	case r.Nodes < 1 || r.Nodes > maxHosts || r.Each.CPUs < 1:
		return invalid("%d nodes with %d CPUs each is not a request.", r.Nodes, r.Each.CPUs)
	case r.Time < 0 || r.Each.Memory < 0 || r.Each.GPUs < 0 || r.Each.Shards < 0 || r.Nice < 0 || r.Array < 0:
		return invalid("An amount is negative.")
	case r.Each.GPUs > 0 && r.Each.Shards > 0:
		return invalid("A job has whole devices or shards, not both.")
	case r.Array > maxTasks:
		return invalid("An array can have at most %d tasks.", maxTasks)
	}
	for _, file := range []string{r.Dir, r.Script, r.Log} {
		if !path.IsAbs(file) || strings.ContainsFunc(file, foreign) {
			return invalid("%q is not an absolute path.", file)
		}
	}
	if strings.ContainsAny(r.Script, "%") {
		return invalid("The path %q has a percent sign.", r.Script)
	}
	for _, value := range []string{r.Comment, r.Partition, r.Account, r.QOS, r.Constraint, r.Reservation,
		r.Each.GPUType} {
		if clean(value, maxNotes) != value {
			return invalid("%q cannot be passed to Slurm.", value)
		}
	}
	if strings.ContainsAny(r.Each.GPUType, ":,()") {
		return invalid("%q is not a type of device.", r.Each.GPUType)
	}
	if faults := CheckExtra("extra", r.Extra); faults != nil {
		return session.Refused(session.CodeEngineInvalid, faults...)
	}
	return nil
}

func invalid(format string, values ...any) error {
	return session.NewError(session.CodeEngineInvalid, fmt.Sprintf(format, values...), "")
}

// parsable asks sbatch to print only the number of the job.
const parsable = "--parsable"

// Args are the arguments of sbatch for the request. The job gets nothing of the environment of the agent, and is not
// queued again by Slurm, because a session that begins again is another attempt.
func (r Request) Args() []string {
	args := []string{parsable, "--no-requeue", "--export=NONE", "--job-name=" + string(r.Name)}
	option := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	option("comment", r.Comment)
	option("partition", r.Partition)
	option("account", r.Account)
	option("qos", r.QOS)
	option("constraint", r.Constraint)
	option("reservation", r.Reservation)
	if r.Time > 0 {
		option("time", inMinutes(r.Time))
	}
	option("nodes", strconv.Itoa(r.Nodes))
	option("ntasks-per-node", "1")
	option("cpus-per-task", strconv.Itoa(r.Each.CPUs))
	if r.Each.Memory > 0 {
		option("mem", fmt.Sprintf("%dM", (r.Each.Memory-1)/gpu.MiB+1))
	}
	option("gres", r.Each.gres())
	if !r.Begin.IsZero() {
		option("begin", r.Begin.Local().Format("2006-01-02T15:04:05"))
	}
	if r.Nice > 0 {
		option("nice", strconv.Itoa(r.Nice))
	}
	log := strings.ReplaceAll(r.Log, "%", "%%")
	if r.Array > 0 {
		option("array", fmt.Sprintf("0-%d", r.Array-1))
		log += ".%a"
	}
	option("chdir", r.Dir)
	option("output", log)
	option("open-mode", "append")
	return append(append(args, r.Extra...), r.Script)
}

// Sbatch is the request as a script for sbatch: the options of [Request.Args] in its head, and then what the job runs.
func (r Request) Sbatch(run string) string {
	args := r.Args()
	var script strings.Builder
	script.WriteString("#!/bin/sh\n")
	for _, option := range args[:len(args)-1] {
		if option != parsable {
			script.WriteString("#SBATCH " + quoted(option) + "\n")
		}
	}
	script.WriteString(run)
	return script.String()
}

// quoted is an option as sbatch reads it in a script, where a space, # or quote would end it.
func quoted(option string) string {
	if !strings.ContainsAny(option, " \t#'\"\\") {
		return option
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(option) + `"`
}

// gres are the devices on each node as an option of sbatch.
func (e Each) gres() string {
	name, count := "gpu", e.GPUs
	if e.Shards > 0 {
		name, count = "shard", e.Shards
	}
	switch {
	case count == 0:
		return ""
	case e.GPUType != "":
		return fmt.Sprintf("%s:%s:%d", name, e.GPUType, count)
	}
	return fmt.Sprintf("%s:%d", name, count)
}
