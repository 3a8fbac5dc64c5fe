package slurm

import (
	"iter"
	"strings"
	"time"
)

// Association is an account that the user may use.
type Association struct {
	Account    string
	Partition  string // empty: all
	QOS        []string
	DefaultQOS string // empty: the site's
	Limits
}

// QOS is a quality of service: a priority and limits.
type QOS struct {
	Name     string
	Priority int64
	Limits
}

// Limits are the limits of an association or a QOS; 0: not limited.
type Limits struct {
	MaxJobs   int           // of one person that run at once
	MaxSubmit int           // of one person that run or wait
	MaxWall   time.Duration // of one job
	MaxGPUs   int           // of one person at once
}

const (
	associationFields = "account,partition,qos,defaultqos,maxjobs,maxsubmitjobs,maxwall,grptres"
	qosFields         = "name,priority,maxjobspu,maxsubmitjobspu,maxwall,maxtrespu"
)

// maxAccounts is the most associations or QOS that are read.
const maxAccounts = 1000

func parseAssociations(out []byte) (all []Association) {
	for fields := range records(out, associationFields) {
		all = append(all, Association{Account: word(fields[0]), Partition: word(fields[1]), QOS: words(fields[2]),
			DefaultQOS: word(fields[3]), Limits: parseLimits(fields[4:])})
	}
	return all
}

func parseQOS(out []byte) (all []QOS) {
	for fields := range records(out, qosFields) {
		all = append(all, QOS{Name: word(fields[0]), Priority: priority(fields[1]), Limits: parseLimits(fields[2:])})
	}
	return all
}

// records are the lines of sacctmgr that have these fields.
func records(out []byte, format string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		left := maxAccounts
		for line := range strings.Lines(string(out)) {
			fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
			if len(fields) != strings.Count(format, ",")+1 || word(fields[0]) == "" {
				continue
			}
			if left--; left < 0 || !yield(fields) {
				return
			}
		}
	}
}

// parseLimits reads the jobs, the submitted jobs, the time and the resources, such as cpu=8,gres/gpu=2.
func parseLimits(fields []string) Limits {
	limits := Limits{MaxJobs: number(fields[0]), MaxSubmit: number(fields[1]), MaxWall: span(fields[2])}
	for resource := range strings.SplitSeq(fields[3], ",") {
		if count, ok := strings.CutPrefix(resource, "gres/gpu="); ok {
			limits.MaxGPUs = number(count)
		}
	}
	return limits
}
