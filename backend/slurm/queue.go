package slurm

import (
	"context"
	"fmt"
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
	hosts := map[string][]string{} // that were expanded
	names := intern{}
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
		job, err := parseJob(fields, hosts, names)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// intern has each text once, so that the jobs do not hold on to all that squeue printed.
type intern map[string]string

func (n intern) word(text string) string {
	if known, ok := n[text]; ok {
		return known
	}
	short := strings.Clone(word(text))
	n[strings.Clone(text)] = short
	return short
}

func parseJob(fields []string, hosts map[string][]string, names intern) (Job, error) {
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
		if job.Task = number(task); fmt.Sprint(job.Task) != task {
			return Job{}, fmt.Errorf("%.40q is not the index of a task", task)
		}
	}
	job.State, _ = parseState(fields[fieldState])
	job.Reason = Reason(names.reason(fields[fieldReason]))
	job.Start, job.End = moment(fields[fieldStart]), moment(fields[fieldEnd])
	job.TimeLimit, job.Elapsed = span(fields[fieldLimit]), span(fields[fieldElapsed])
	job.Partition, job.QOS = names.word(fields[fieldPartition]), names.word(fields[fieldQOS])
	job.Account, job.Priority = names.word(fields[fieldAccount]), priority(fields[fieldPriority])
	list := fields[fieldNodes]
	nodes, known := hosts[list]
	if !known {
		if nodes, err = expandHosts(strings.Clone(list)); err != nil {
			return Job{}, err
		}
		hosts[strings.Clone(list)] = nodes
	}
	job.Nodes = nodes
	return job, nil
}

// reason is a reason without the brackets in which some versions put it.
func (n intern) reason(text string) string {
	if known, ok := n[text]; ok {
		return known
	}
	short := strings.Trim(clean(text, maxReason), "()")
	if short = strings.Clone(short); short == "None" || short == "null" {
		short = ""
	}
	n[strings.Clone(text)] = short
	return short
}
