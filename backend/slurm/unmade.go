package slurm

import (
	"context"
	"errors"
	"time"

	"slipway/backend/session"
)

// Words returns the reason in words. One that is not in the table is shown as Slurm says it.
func (r Reason) Words() session.Phrase { return session.Fill("", string(r)) }

// Never reports whether a job that waits for this reason will never start as it is.
func (r Reason) Never() bool { return false }

// Code is the kind of reason to wait.
func (r Reason) Code() session.Code { return session.CodeWaitResources }

// Ended reports whether the job is over.
func (s State) Ended() bool { return s >= Completed }

// Live reports whether the job waits, runs or is ending. An unknown state is neither live nor ended.
func (s State) Live() bool { return s != Unknown && s < Completed }

// Args are the arguments of sbatch for the request.
func (r Request) Args() []string { return nil }

// CheckExtra returns what is wrong with options by hand, one fault for each wrong one, at field.
func CheckExtra(field string, extra []string) []session.FieldError { return nil }

// Submit submits a job unless there is one of its name, live or ended, and returns its number. It never doubles a job:
// it first stores a mark in Dir, so that a later call, also of another process, knows that a job may exist of which no
// answer came. It then looks the name up twice, with at least 10 seconds between answers, before it submits. So it may
// take long. It returns engine_call_invalid if Slurm refused the request, and after any other error the same request
// can be submitted again.
func (c *Client) Submit(ctx context.Context, r Request) (JobID, error) { return 0, errors.ErrUnsupported }

// Test asks Slurm whether it would accept a request, and when the job would start. It submits nothing. It returns
// engine_call_invalid if Slurm refused the request.
func (c *Client) Test(ctx context.Context, r Request) (start time.Time, err error) {
	return start, errors.ErrUnsupported
}

// Jobs returns all jobs of Slipway of the user, also those that ended as long as squeue remembers them.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) { return nil, errors.ErrUnsupported }

// Placement returns what a job got. It returns engine_read_not-found if Slurm does not know it, and an empty placement
// if it has no nodes yet.
func (c *Client) Placement(ctx context.Context, id JobID) (Placement, error) {
	return nil, errors.ErrUnsupported
}

// Terminate sends TERM to the processes of a job. One that ended is no error.
func (c *Client) Terminate(ctx context.Context, id JobID) error { return errors.ErrUnsupported }

// Cancel ends a job, or keeps it from starting. One that ended is no error.
func (c *Client) Cancel(ctx context.Context, id JobID) error { return errors.ErrUnsupported }

// CancelTask cancels one task of an array.
func (c *Client) CancelTask(ctx context.Context, array JobID, task int) error { return errors.ErrUnsupported }

// Ended returns the end of a job of which squeue no longer knows. It returns false if accounting is off, does not know
// the job, or knows it as not ended.
func (c *Client) Ended(ctx context.Context, name JobName) (End, bool, error) {
	return End{}, false, errors.ErrUnsupported
}

// Extend sets the time limit of a job, rounded up to whole minutes. Most sites let people only shorten it, and refuse
// more with engine_call_invalid.
func (c *Client) Extend(ctx context.Context, id JobID, limit time.Duration) error {
	return errors.ErrUnsupported
}

// Nice sets the nice value of a job, which lowers its priority. It is not negative.
func (c *Client) Nice(ctx context.Context, id JobID, nice int) error { return errors.ErrUnsupported }

// Site returns what the site offers to the user.
func (c *Client) Site(ctx context.Context) (Site, error) { return Site{}, errors.ErrUnsupported }

// CallsPerHour is how many commands were called during the last hour.
func (c *Client) CallsPerHour() int { return 0 }

type calls struct{}

// Exec runs a command of this computer.
func Exec(ctx context.Context, name string, args []string, stdin []byte) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

// Failure is a command that ran and failed.
type Failure struct {
	Command string
	Exit    int
	Said    string // what it printed on standard error: printable lines of at most 4 KiB
}

func (f *Failure) Error() string { return f.Command + ": " + f.Said }
