package slurm

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// queueFields are the fields of squeue that a job is read from, in this order.
const queueFields = "%A" + separator + "%F" + separator + "%K" + separator + "%j" + separator + "%T" + separator +
	"%r" + separator + "%S" + separator + "%e" + separator + "%N" + separator + "%l" + separator + "%M" + separator +
	"%P" + separator + "%q" + separator + "%a" + separator + "%Q" + separator + "%k"

// The indexes of the fields.
const (
	fieldID = iota
	fieldArray
	fieldTask
	fieldName
	fieldState
	fieldReason
	fieldStart
	fieldEnd
	fieldNodes
	fieldLimit
	fieldElapsed
	fieldPartition
	fieldQOS
	fieldAccount
	fieldPriority
	fieldComment
	queueFieldCount
)

// Jobs returns all jobs of Slipway of the user in one call, also those that ended, as long as squeue remembers them.
// Each task of an array is a job.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) { return c.queue(ctx) }

func (c *Client) queue(ctx context.Context, filter ...string) ([]Job, error) {
	args := append([]string{"--noheader", "--array", "--states=all", "--user=" + c.config.User,
		"--format=" + queueFields}, filter...)
	out, err := c.run(ctx, "squeue", args...)
	if err != nil {
		return nil, err
	}
	jobs, err := parseQueue(out)
	if err != nil {
		return nil, unreadable("squeue", err)
	}
	return jobs, nil
}

// parseQueue reads the jobs of Slipway from what squeue printed. Jobs with other names are passed over, whatever else
// they are. It fails if a job of Slipway cannot be read, because a list without it would say that there is none.
func parseQueue(out []byte) (jobs []Job, err error) {
	all, err := lines(out)
	if err != nil {
		return nil, err
	}
	const leastLine = 60 // bytes
	jobs = slices.Grow(jobs, min(bytes.Count(out, []byte(separator+namePrefix)), len(out)/leastLine))
	known := seen{nodes: map[string][]string{}, names: map[string]string{}, reasons: map[string]Reason{}}
	for line := range all {
		if !strings.Contains(line, separator+namePrefix) {
			continue
		}
		fields := strings.SplitN(line, separator, queueFieldCount)
		if len(fields) > fieldName {
			if _, _, ours := ParseJobName(JobName(fields[fieldName])); !ours && len(fields) == queueFieldCount {
				continue // the user named a job like this
			}
		}
		if len(fields) < queueFieldCount {
			return nil, fmt.Errorf("a line has %d fields: %.80q", len(fields), line)
		}
		job, err := known.job(fields)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// seen are the values of fields that were read. Jobs share them, and do not hold on to all that squeue printed.
type seen struct {
	nodes   map[string][]string
	names   map[string]string
	reasons map[string]Reason
}

func (s seen) job(fields []string) (Job, error) {
	id, err := ParseJobID(fields[fieldID])
	if err != nil {
		return Job{}, err
	}
	job := Job{ID: id, Name: JobName(strings.Clone(fields[fieldName])),
		Comment: strings.Clone(clean(fields[fieldComment], maxNotes))}
	if task := fields[fieldTask]; word(task) != "" {
		if job.Array, err = ParseJobID(fields[fieldArray]); err != nil {
			return Job{}, err
		}
		if job.Task = number(task); strconv.Itoa(job.Task) != task {
			return Job{}, fmt.Errorf("%.40q is not the index of a task", task)
		}
	}
	job.State, _ = parseState(fields[fieldState])
	job.Reason = once(s.reasons, fields[fieldReason], parseReason)
	job.Start, job.End = moment(fields[fieldStart]), moment(fields[fieldEnd])
	job.TimeLimit, job.Elapsed = span(fields[fieldLimit]), span(fields[fieldElapsed])
	job.Partition, job.QOS = once(s.names, fields[fieldPartition], word), once(s.names, fields[fieldQOS], word)
	job.Account, job.Priority = once(s.names, fields[fieldAccount], word), priority(fields[fieldPriority])
	list := fields[fieldNodes]
	nodes, known := s.nodes[list]
	if !known {
		list = strings.Clone(list)
		if nodes, err = expandHosts(list); err != nil {
			return Job{}, err
		}
		s.nodes[list] = nodes
	}
	job.Nodes = nodes
	return job, nil
}

// once reads a text unless it was read before.
func once[T any](known map[string]T, text string, read func(string) T) T {
	value, ok := known[text]
	if !ok {
		text = strings.Clone(text)
		value = read(text)
		known[text] = value
	}
	return value
}
