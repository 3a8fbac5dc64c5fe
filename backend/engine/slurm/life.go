package slurm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/session"
)

// Start waits until the container runs, which it may do already: a job waits in the queue of Slurm, and unpacks its
// image where its node has not had it. Without a [Planner] it submits the job.
func (e *Engine) Start(ctx context.Context, id string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	r, k, err := e.runs.find(id)
	if err != nil {
		return err
	}
	if err := e.submit(ctx, r); err != nil {
		return err
	}
	wait := e.patience()
	for {
		state, err := e.stateOf(ctx, r, k, e.jobs.view())
		switch {
		case err != nil:
			return err
		case state.Running, !state.Created && !state.StartedAt.IsZero():
			e.wake()
			return nil
		case !state.Created:
			return startFailure(ctx, r, k, state)
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

func (e *Engine) submit(ctx context.Context, r *run) error {
	r, err := e.runs.take(ctx, r.name)
	if err != nil {
		return err
	}
	defer e.runs.give(r)
	return e.hand(ctx, r)
}

// hand submits the job of a run unless it has one or is to be a task of an array. It fails with engine_start_failed if
// Slurm refuses it. The caller has the turn of the run.
func (e *Engine) hand(ctx context.Context, r *run) error {
	now := r.now()
	if now.Job != 0 || len(now.Kernels) == 0 || now.Request.Array > 0 {
		return nil
	}
	now.Submitted = e.config.Clock.Now().UTC()
	if err := r.keep(now); err != nil {
		return err
	}
	job, err := e.config.Commands.Submit(ctx, now.Request)
	if session.CodeOf(err) == session.CodeEngineInvalid {
		now.Submitted = time.Time{}
		e.offer.doubt()
		said := session.AsError(err, session.CodeEngineInvalid)
		return errors.Join(session.WrapError(err, session.CodeStartFailed, said.Message, said.Hint), r.keep(now))
	}
	if err != nil {
		return failure(ctx, err)
	}
	now.Job, now.Submitted = job, e.config.Clock.Now().UTC()
	e.jobs.poller.Wake()
	return r.keep(now)
}

// patience returns a function that waits for what happens on a node: often at first, then as Config.Look says.
func (e *Engine) patience() func(context.Context) error {
	pause := 20 * time.Millisecond
	return func(ctx context.Context) error {
		if pause >= e.config.Look {
			return e.pause(ctx)
		}
		timer := time.NewTimer(pause)
		defer timer.Stop()
		pause *= 2
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ended(ctx)
		case <-e.ctx.Done():
			return errClosed
		}
	}
}

// startFailure says why a container ended before its program ran.
func startFailure(ctx context.Context, r *run, k kernel, state engine.State) error {
	line := cmp.Or(lastLine(ctx, r, k), lastText(filepath.Join(r.dir, jobLog)), state.Error, "it says nothing")
	if state.ExitCode == engine.ExitUnsafe {
		return session.NewError(session.CodeEngineUnsupported, "This image cannot be used: "+line+".",
			"Choose another image, or change it so that this is a directory of its own.")
	}
	return session.NewError(session.CodeStartFailed, "The container did not start on its node: "+line+".",
		"Launch again. If it fails again, run slipway doctor and tell the admins of the cluster what it shows.")
}

// longestLine is the most of a last line that is shown, in bytes.
const longestLine = 512

// lastLine is the last line that a kernel wrote, empty if it wrote none.
func lastLine(ctx context.Context, r *run, k kernel) string {
	log, err := node.OpenLog(ctx, r.dir, k.Kernel, session.LogOptions{Tail: 1})
	if err != nil {
		return ""
	}
	defer log.Close()                                       //nolint:errcheck // only read
	text, _ := io.ReadAll(io.LimitReader(log, longestLine)) //nolint:errcheck // what was read counts
	return plain(text)
}

// lastText is the last line of a file, empty if it has none.
func lastText(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // only read
	if info, err := file.Stat(); err == nil && info.Size() > longestLine {
		_, _ = file.Seek(-longestLine, io.SeekEnd) // else what is read is not the last
	}
	text, _ := io.ReadAll(io.LimitReader(file, longestLine)) //nolint:errcheck // what was read counts
	text = bytes.TrimSpace(text)
	return plain(text[bytes.LastIndexByte(text, '\n')+1:])
}

// plain is the printable text of a line, without the program before it and the full stop after it.
func plain(line []byte) string {
	text := strings.ToValidUTF8(strings.TrimSpace(string(line)), string(unicode.ReplacementChar))
	text = strings.TrimSuffix(strings.TrimPrefix(text, "slipway-guest: "), ".")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// Stop ends the job, with all kernels of the session. Slurm kills what is left after its KillWait.
func (e *Engine) Stop(ctx context.Context, id string, grace time.Duration) error {
	if err := ended(ctx); err != nil {
		return err
	}
	r, k, err := e.runs.find(id)
	if session.CodeOf(err) == session.CodeNoContainer {
		return nil
	}
	if err != nil {
		return err
	}
	state, err := e.stateOf(ctx, r, k, e.jobs.view())
	if err != nil {
		return err
	}
	if !state.Running {
		return nil // what is created and has a job is ended by Remove
	}
	r.stopping.Store(true)
	over := func() bool {
		state, err := e.stateOf(ctx, r, k, e.jobs.view())
		return err == nil && !state.Running
	}
	if grace > 0 {
		if done, err := e.ask(ctx, r, grace, over); done || err != nil {
			return err
		}
	}
	if err := e.jobs.end(ctx, r, e.config.Commands.Cancel); err != nil {
		return err
	}
	return e.await(ctx, over)
}

// ask asks the kernels of a run to end, and reports whether they did within grace. The script of a cluster is srun,
// which kills them at once when it is asked itself.
func (e *Engine) ask(ctx context.Context, r *run, grace time.Duration, over func() bool) (done bool, err error) {
	by := e.config.Commands.Terminate
	if len(r.now().Kernels) > 1 {
		by = e.config.Commands.TerminateSteps
	}
	if err := e.jobs.end(ctx, r, by); err != nil {
		return false, err
	}
	patient, stop := context.WithTimeout(ctx, grace)
	defer stop()
	err = e.await(patient, over)
	if err != nil && ctx.Err() == nil && e.ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// tidyTime is how long the kernels of a cluster may take to end by themselves before their job is cancelled.
const tidyTime = 5 * time.Second

// await waits until done reports true.
func (e *Engine) await(ctx context.Context, done func() bool) error {
	wait := e.patience()
	for !done() {
		if err := wait(ctx); err != nil {
			return err
		}
	}
	e.wake()
	return nil
}

// Remove ends the job of a container's session, if it is not over, and removes its files when all of its containers are
// removed.
func (e *Engine) Remove(ctx context.Context, id string) error {
	if err := ended(ctx); err != nil {
		return err
	}
	r, _, err := e.runs.find(id)
	if session.CodeOf(err) == session.CodeNoContainer {
		return nil
	}
	if err != nil {
		return err
	}
	if r, err = e.runs.take(ctx, r.name); err != nil {
		return err
	}
	defer e.runs.give(r)
	if err := e.finish(ctx, r); err != nil {
		return err
	}
	now, left := r.now(), []kernel{}
	last := true
	for _, k := range now.Kernels {
		if k.Name == id {
			k.Created = time.Time{}
		}
		last = last && k.Created.IsZero()
		left = append(left, k)
	}
	now.Kernels = left
	if last {
		err = e.discard(r)
	} else {
		err = r.keep(now)
	}
	e.wake()
	return err
}

// discard removes the files of a run whose job is over, and what is known of its end. The caller has its turn.
func (e *Engine) discard(r *run) error {
	if err := errors.Join(e.runs.dropArray(r), e.runs.remove(r)); err != nil {
		return err
	}
	e.jobs.forget(r)
	return nil
}

// finish cancels the job of a run and waits until it is over. The caller has the turn of the run.
func (e *Engine) finish(ctx context.Context, r *run) error {
	r.stopping.Store(true)
	v := e.jobs.view()
	if r.now().Submitted.IsZero() || r.exited() && !e.jobs.waits(r, v) || e.jobs.over(r, v) {
		return nil
	}
	if _, err := node.ReadMeeting(r.dir, session.MainKernel); err == nil && len(r.now().Kernels) > 1 {
		if done, err := e.ask(ctx, r, tidyTime, r.exited); done || err != nil {
			return err
		}
	}
	began := e.config.Clock.Now()
	if err := e.jobs.end(ctx, r, e.config.Commands.Cancel); err != nil {
		return err
	}
	return e.await(ctx, func() bool {
		v := e.jobs.view()
		return r.exited() && !e.jobs.waits(r, v) || v.at.After(began) && e.jobs.over(r, v)
	})
}

// exited reports whether all kernels of a run have ended, of which their nodes have nothing left then.
func (r *run) exited() bool {
	for _, k := range r.now().Kernels {
		if _, err := node.ReadExit(r.dir, k.Kernel); err != nil {
			return false
		}
	}
	return true
}
