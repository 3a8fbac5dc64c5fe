package slurm

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// dialTime is how long a node may take to answer on its network. Nodes that a firewall hides do not answer at all.
const dialTime = 5 * time.Second

// Guest connects to the node by its network, and where that is not possible by a step of the job.
func (e *Engine) Guest(ctx context.Context, id string) (net.Conn, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	r, k, err := e.runs.find(id)
	if err != nil {
		return nil, err
	}
	wait := e.patience()
	for {
		state, err := e.stateOf(ctx, r, k, e.jobs.view())
		switch {
		case err != nil:
			return nil, err
		case state.Running:
			conn, err := e.dial(ctx, r, k)
			if err == nil {
				return conn, nil
			}
			e.config.Log.Debug("a guest is not reached", "container", k.Name, "err", err)
		case !state.Created:
			return nil, whyExited(ctx, r, k, state)
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

// whyExited recognizes a guest that refuses its image.
func whyExited(ctx context.Context, r *run, k kernel, state engine.State) error {
	if state.ExitCode == engine.ExitUnsafe {
		return startFailure(ctx, r, k, state)
	}
	return session.NewError(session.CodeGuestExited, "The container ended before its guest could be reached.",
		"Read the session's log.")
}

func (e *Engine) dial(ctx context.Context, r *run, k kernel) (net.Conn, error) {
	brief, cancel := context.WithTimeout(ctx, dialTime)
	conn, err := node.Dial(brief, r.dir, k.Kernel)
	cancel()
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	meeting, readErr := node.ReadMeeting(r.dir, k.Kernel)
	job, jobErr := slurm.ParseJobID(meeting.Job) // of a task its own, not that of its array
	if readErr != nil || jobErr != nil {
		return nil, errors.Join(err, readErr, jobErr)
	}
	through, relayErr := e.config.Relay(ctx, job, meeting.Host,
		[]string{filepath.Join(r.dir, guestFile), "relay", meeting.Socket})
	if relayErr == nil {
		through, relayErr = node.Through(ctx, through, meeting)
	}
	if relayErr != nil {
		return nil, errors.Join(err, relayErr)
	}
	return through, nil
}

// Relay runs a program in a job, on one of its nodes, and returns the connection to its standard input and output.
// Without --unbuffered srun passes on whole lines only.
func Relay(ctx context.Context, job slurm.JobID, host string, argv []string) (net.Conn, error) {
	args := append([]string{"-Q", "-J", "slipway-link", "--overlap", "--mem=0", "-c1", "--jobid=" + job.String(), "-N1",
		"-n1", "-w", host, "-u"}, argv...)
	return command(ctx, exec.Command("srun", args...)) //nolint:gosec // the arguments are ours and Slurm's
}

// command starts a program and returns the connection to its standard input and output, which ends it. ctx bounds only
// the start.
func command(ctx context.Context, c *exec.Cmd) (net.Conn, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	end := sync.OnceFunc(func() {
		far.Close()      //nolint:errcheck // a pipe
		c.Process.Kill() //nolint:errcheck // it may have ended
	})
	go func() {
		defer end()
		io.Copy(in, far) //nolint:errcheck // the connection is over then
	}()
	go func() {
		io.Copy(far, out) //nolint:errcheck // the connection is over then
		end()
		c.Wait() //nolint:errcheck // it was killed
	}()
	return near, nil
}
