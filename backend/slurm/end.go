package slurm

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// End is the end of a job as accounting knows it.
type End struct {
	ID         JobID // of a task: the array's
	State      State
	Exit       int    // exit code of the script
	Signal     int    // that ended the script; 0: none
	By         string // number of the user who cancelled it; empty: unknown or not cancelled
	Start, End time.Time
	Nodes      []string
}

// endFields are the fields of sacct that an end is read from, in this order.
const endFields = "jobid,state,exitcode,start,end,nodelist"

// remembered is how far back accounting is asked.
const remembered = "now-7days"

// Ended returns the end of a job of which squeue no longer knows; of an array, that of the task with an index. It
// returns false if accounting is off, does not know the job, or knows it as not ended.
func (c *Client) Ended(ctx context.Context, name JobName, task int) (end End, found bool, err error) {
	end, err = c.account(ctx, name, task)
	return end, err == nil && end.State.Ended(), err
}

// anyTask is instead of the index of a task.
const anyTask = -1

// account returns what accounting knows of a job, which may not have ended; nothing if accounting is off.
func (c *Client) account(ctx context.Context, name JobName, task int) (End, error) {
	out, err := c.run(ctx, "sacct", "--noheader", "--allocations", "--parsable2", "--delimiter="+separator,
		"--user="+c.config.User, "--name="+string(name), "--starttime="+remembered, "--format="+endFields)
	if failure, ok := errors.AsType[*Failure](err); ok && says(failure.Said, unaccounted) {
		return End{}, nil
	}
	if err != nil {
		return End{}, err
	}
	end, err := parseEnd(out, task)
	if err != nil {
		return End{}, unreadable("sacct", err)
	}
	return end, nil
}

// unaccounted is what sacct and sacctmgr say where a site keeps no accounts.
var unaccounted = []string{"accounting storage is disabled", "not running a supported accounting_storage plugin"}

// parseEnd returns the last job that sacct printed, or the last task with an index. The last one is the one with the
// highest number.
func parseEnd(out []byte, task int) (last End, err error) {
	all, err := lines(out)
	if err != nil {
		return End{}, err
	}
	for line := range all {
		fields := strings.Split(line, separator)
		if len(fields) != strings.Count(endFields, ",")+1 {
			continue // a line of another program, such as a message of the day
		}
		job, index, array := strings.Cut(fields[0], "_") // 12_3, and 12_[4-7] for those that never started
		id, err := ParseJobID(job)
		if err != nil || id < last.ID ||
			array && task != anyTask && !slices.Contains(expandNumbers(strings.Trim(index, "[]")), task) {
			continue
		}
		last = End{ID: id, Start: moment(fields[3]), End: moment(fields[4])}
		last.State, last.By = parseState(fields[1])
		exit, signal, _ := strings.Cut(fields[2], ":")
		last.Exit, last.Signal = number(exit), number(signal)
		if last.Nodes, err = expandHosts(fields[5]); err != nil {
			return End{}, err
		}
	}
	return last, nil
}
