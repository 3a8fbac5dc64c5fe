package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
)

// Failure is a command that ran and failed.
type Failure struct {
	Command string
	Exit    int    // -1: a signal ended it
	Said    string // on standard error: printable lines of at most 4 KiB
}

// sentence is what the command said, in one line.
func (f *Failure) sentence() string { return strings.ReplaceAll(f.Said, "\n", "; ") }

func (f *Failure) Error() string {
	return fmt.Sprintf("%s ended with %d: %s", f.Command, f.Exit, f.Said)
}

// The time limits of commands. A controller that is down is reported after 18 seconds, a busy one may take longer.
const (
	askTime    = time.Minute
	submitTime = 2 * time.Minute
)

var errSilent = errors.New("it did not answer in time")

// run calls a command that reads.
func (c *Client) run(ctx context.Context, name string, args ...string) ([]byte, error) {
	return c.runFor(ctx, askTime, name, args...)
}

func (c *Client) runFor(ctx context.Context, limit time.Duration, name string, args ...string) ([]byte, error) {
	c.calls.count(c.config.Clock.Now())
	limited, cancel := context.WithTimeoutCause(ctx, limit, errSilent)
	defer cancel()
	out, err := c.config.Run(limited, name, args, nil)
	switch {
	case err == nil && len(out) > maxOutput:
		return nil, unreadable(name, fmt.Errorf("it printed %d bytes", len(out)))
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return nil, failed(name, err)
}

// unreadable is the error of an answer that cannot be read.
func unreadable(name string, err error) error {
	return session.WrapError(err, session.CodeEngineInternal,
		fmt.Sprintf("The answer of Slurm's command %s cannot be read.", name), "")
}

const tryPing = "Check the controller with `scontrol ping`."

// failed is the error of a command that failed.
func failed(name string, err error) error {
	failure, ok := errors.AsType[*Failure](err)
	switch {
	case errors.Is(err, errSilent):
		return session.WrapError(err, session.CodeEngineTimeout,
			fmt.Sprintf("Slurm's command %s did not answer in time.", name), tryPing)
	case errors.Is(err, exec.ErrNotFound):
		return session.WrapError(err, session.CodeEngineUnavailable,
			fmt.Sprintf("Slurm's command %s is not installed on this computer.", name),
			"Choose a login node of the site.")
	case !ok:
		return session.WrapError(err, session.CodeEngineInternal,
			fmt.Sprintf("Slurm's command %s cannot be called.", name), "")
	case says(failure.Said, unreachable):
		return session.WrapError(err, session.CodeEngineUnavailable,
			"Slurm does not respond: "+failure.sentence(), tryPing)
	case says(failure.Said, gone):
		return session.WrapError(err, session.CodeNoContainer, "Slurm does not know the job.", "")
	}
	return session.WrapError(err, session.CodeEngineInvalid, "Slurm refused the request: "+failure.sentence(), "")
}

// unreachable is what commands say of a controller that does not answer, or does not answer in time. Whether it did
// what was asked is unknown then.
var unreachable = []string{"Unable to contact slurm controller", "Communication connection failure",
	"Communication shutdown failure", "Message send failure", "Message receive failure", "Socket timed out",
	"Zero Bytes were transmitted", "standby mode", "Unable to contact slurmdbd", "Unable to connect to database",
	"Connection refused", "Connection timed out", "Resource temporarily unavailable", "temporarily unable",
	"Unable to establish", "Unable to resolve", "DNS SRV lookup failed", "Could not establish a configuration source"}

// gone is what commands say of a job that the controller does not know.
var gone = []string{"Invalid job id specified", "Invalid job_id", "Invalid job id"}

// over is what commands say of a job that ended.
var over = []string{"Job/step already completing or completed", "Job has already finished"}

// says reports whether a command said one of these sentences.
func says(said string, sentences []string) bool {
	return slices.ContainsFunc(sentences, func(s string) bool { return strings.Contains(said, s) })
}
