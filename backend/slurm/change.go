package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slipway/backend/session"
)

// Terminate sends TERM to the script of a job, and not to what it has started. One that ended is no error.
func (c *Client) Terminate(ctx context.Context, id Named) error {
	return c.cancel(ctx, "--signal=TERM", "--batch", id.String())
}

// TerminateSteps sends TERM to what srun has started in a job, and not to the script. One that ended is no error.
func (c *Client) TerminateSteps(ctx context.Context, id Named) error {
	return c.cancel(ctx, "--signal=TERM", id.String())
}

// Cancel ends a job, or keeps it from starting; by the number of an array, all of its tasks. One that ended is no
// error.
func (c *Client) Cancel(ctx context.Context, id Named) error { return c.cancel(ctx, id.String()) }

func (c *Client) cancel(ctx context.Context, args ...string) error {
	_, err := c.run(ctx, "scancel", args...)
	if failure, ok := errors.AsType[*Failure](err); ok && (says(failure.Said, gone) || says(failure.Said, over)) {
		return nil
	}
	return err
}

// Extend sets the time limit of a job, rounded up to whole minutes. Most sites let people only shorten it, and refuse
// more with engine_call_invalid.
func (c *Client) Extend(ctx context.Context, id Named, limit time.Duration) error {
	if limit <= 0 {
		return session.NewError(session.CodeEngineInvalid, "The time limit is not positive.", "")
	}
	return c.update(ctx, id, "TimeLimit="+inMinutes(limit))
}

// Nice sets the nice value of a job that waits, which lowers its priority. Only admins of a site may set a negative
// one.
func (c *Client) Nice(ctx context.Context, id Named, nice int) error {
	return c.update(ctx, id, fmt.Sprintf("Nice=%d", nice))
}

func (c *Client) update(ctx context.Context, id Named, change string) error {
	_, err := c.run(ctx, "scontrol", "update", "JobId="+id.String(), change)
	return err
}
