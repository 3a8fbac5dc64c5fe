package slurm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
)

// JobName is the name of a job of Slipway: slipway-<session>-<attempt>. Accounting keeps it, unlike the comment, so it
// says which session a job belongs to.
type JobName string

// NameOf returns the name of the job for one attempt of a session. Attempts count from 1.
func NameOf(id session.ID, attempt int) JobName {
	return JobName(namePrefix + string(id) + "-" + strconv.Itoa(attempt))
}

const namePrefix = "slipway-"

// maxID is the most letters and digits that a session's ID has.
const maxID = 32

// ParseJobName returns the session and the attempt of a job's name. ok is false for jobs that are not Slipway's.
func ParseJobName(name JobName) (id session.ID, attempt int, ok bool) {
	text, count, _ := strings.Cut(strings.TrimPrefix(string(name), namePrefix), "-")
	attempt, err := strconv.Atoi(count)
	id = session.ID(text)
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }
	if err != nil || attempt < 1 || attempt > math.MaxInt32 || text == "" || len(text) > maxID ||
		strings.ContainsFunc(text, other) || NameOf(id, attempt) != name {
		return "", 0, false
	}
	return id, attempt, true
}

// JobID is the number of a job. Slurm counts from 1, and starts again after the highest number of the site, so it
// identifies a job only as long as the site remembers that job.
type JobID int64

func (id JobID) String() string { return strconv.FormatInt(int64(id), 10) }

// ParseJobID reads the number of a job.
func ParseJobID(text string) (JobID, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%q is not the number of a job", text)
	}
	return JobID(id), nil
}

// Named is what Slurm's commands can be called for: a job, by its [JobID], or one task of an array, by its [TaskID].
type Named interface {
	fmt.Stringer
	named()
}

func (JobID) named() {}

// TaskID identifies a task of an array as long as a [JobID] does.
type TaskID struct {
	Array JobID
	Task  int // its index
}

func (id TaskID) String() string { return fmt.Sprintf("%s_%d", id.Array, id.Task) }

func (TaskID) named() {}

// Job is one job of Slipway, or one task of an array, as squeue shows it.
type Job struct {
	ID        JobID   // of an array's task that has not started: the array's
	Array     JobID   // the array that it is a task of; 0: none
	Task      int     // its index in the array
	Name      JobName // of an array: the same for all tasks
	Comment   string  // what [Request] said
	State     State
	Reason    Reason        // why it waits, or why it failed
	Start     time.Time     // actual or expected; zero: unknown
	End       time.Time     // actual or expected; zero: unknown
	Nodes     []string      // names, in Slurm's order; none while it waits
	TimeLimit time.Duration // 0: unknown; may be [Unlimited]
	Elapsed   time.Duration
	Share
}

// Share is where a job stands in line.
type Share struct {
	Partition, QOS, Account string
	Priority                int64
}
