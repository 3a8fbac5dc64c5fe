package slurm

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/guest/node"
	"slipway/backend/pace"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/backend/slurm"
)

// Planner lets Slurm decide which sessions start. It compares the sessions that may start with the jobs that there are:
// it submits those that are missing, says what the others wait for, places those whose job has nodes, and cancels jobs
// that no session needs. It remembers nothing that the runs and Slurm do not have, so a crash is no loss.
type Planner struct {
	engine  *Engine
	changed chan struct{} // of capacity 1

	mu       sync.Mutex                            // guards everything below
	queue    []engine.Wanted                       // to submit, in this order
	working  bool                                  // somebody submits
	current  []slurm.JobName                       // what is being submitted
	refused  map[slurm.JobName]*session.Error      // why Slurm did not take a run
	failed   map[slurm.JobName]*session.Error      // why a run could not be submitted at the last attempt
	placed   map[slurm.JobName]scheduler.Placement // of runs whose job has nodes
	unplaced bool                                  // Slurm did not say what a job got, so it is asked again
	ending   map[string]bool                       // runs and jobs that are being taken back, by their names
	sets     map[session.ID]set                    // sessions that were launched together, by their launches
	checks   map[string]check                      // by their questions
}

// NewPlanner returns a planner for an engine, whose containers are adopted from the runs of the planner from now on.
func NewPlanner(e *Engine) *Planner {
	p := &Planner{engine: e, changed: make(chan struct{}, 1), refused: map[slurm.JobName]*session.Error{},
		failed: map[slurm.JobName]*session.Error{}, placed: map[slurm.JobName]scheduler.Placement{},
		ending: map[string]bool{}, sets: map[session.ID]set{}, checks: map[string]check{}}
	e.planned.Store(true)
	e.tasks.Go(p.listen)
	return p
}

// Changed receives when Plan would decide otherwise.
func (p *Planner) Changed() <-chan struct{} { return p.changed }

// listen passes on the news of the engine.
func (p *Planner) listen() {
	var last time.Time
	for p.engine.ctx.Err() == nil {
		news := p.engine.news()
		if at := p.engine.jobs.poller.Snapshot().At; !at.Equal(last) {
			last = at
			pace.Signal(p.changed)
		}
		select {
		case <-news:
		case <-p.engine.ctx.Done():
		}
	}
}

// Plan implements the planner of the agent's queue. It calls Slurm only for what a job got, and leaves the rest to the
// goroutines that submit and cancel. It fails with engine_connect_unavailable as long as Slurm has never answered.
func (p *Planner) Plan(ctx context.Context, wanted []engine.Wanted,
	live []session.Session) (scheduler.Schedule, error) {
	e := p.engine
	v := e.jobs.view()
	if v.at.IsZero() {
		if err := e.jobs.poller.Snapshot().Err; err != nil {
			return scheduler.Schedule{}, failure(ctx, err)
		}
		return scheduler.Schedule{}, session.NewError(session.CodeEngineUnavailable, "Slurm has not answered yet.",
			"It is asked again.")
	}
	needed := map[slurm.JobName]bool{}
	for _, s := range live {
		if s.Status.HoldsResources() {
			needed[slurm.NameOf(s.ID, s.Attempt)] = true
		}
	}
	ctx, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	plan := scheduler.Schedule{Decisions: make([]scheduler.Decision, 0, len(wanted))}
	var submit []engine.Wanted
	for i, w := range wanted {
		name := nameOf(w)
		needed[name] = true
		d, absent := p.decide(ctx, w, name, v)
		if d.Session = w.Session.ID; d.Wait != nil {
			d.Wait.Position = i + 1
		}
		if absent {
			submit = append(submit, w)
		}
		plan.Decisions = append(plan.Decisions, d)
	}
	submit, next := p.gather(submit)
	p.submit(submit)
	p.takeBack(needed, v)
	p.mu.Lock()
	defer p.mu.Unlock()
	plan.Next = next
	if soon := e.config.Clock.Now().Add(planTime); p.unplaced && (next.IsZero() || soon.Before(next)) {
		plan.Next = soon
	}
	p.unplaced = false
	return plan, nil
}

// planTime is how long a plan may ask Slurm what jobs got. The sessions of the others are placed by the next plan.
const planTime = 5 * time.Second

// decide decides for one session. absent: its run has no job yet.
func (p *Planner) decide(ctx context.Context, w engine.Wanted, name slurm.JobName,
	v view) (d scheduler.Decision, absent bool) {
	e := p.engine
	p.mu.Lock()
	refused, failed, taken := p.refused[name], p.failed[name], p.ending[string(name)]
	p.mu.Unlock()
	r := e.runs.named(name)
	if refused != nil {
		d.End = &scheduler.End{Reason: session.ReasonCreateFailed, Cause: *refused.Cause()}
		return d, false
	}
	if r == nil || r.now().Job == 0 || taken {
		image := w.Kernels[0].Image
		if _, err := e.Image(ctx, image); session.CodeOf(err) == session.CodeNoImage {
			d.Wait = waitFor(session.CodeWaitResources, session.Say("slurmNoImage", session.Fill("image", image)))
			return d, false
		}
		d.Wait = waitFor(session.CodeWaitTurn, session.Say("slurmSubmitting"))
		if failed != nil {
			d.Wait = waitFor(session.CodeWaitMachine, session.Say("slurmSubmitFailed",
				session.Fill("why", failed.Message)))
		}
		return d, !taken
	}
	now := r.now()
	job, known := v.jobs[now.key()]
	began, ok := p.began(r, now)
	switch {
	case !ok:
		d.Wait = waitFor(session.CodeWaitMachine, session.Say("slurmFolder"))
	case known && hasNodes(job.State), began:
		p.place(ctx, &d, w, name, job, now)
	case known && job.State.Ended():
		p.endedEarly(ctx, &d, r, job, v)
	case known:
		p.lower(name, r, w.Session)
		d.Wait = waitOf(job, e.config.Clock.Now())
	case e.jobs.endOf(ctx, r, v, began).lost:
		p.forget(name, r) // nothing of it ran, so it is submitted again
		fallthrough
	default:
		d.Wait = waitFor(session.CodeWaitTurn, session.Say("slurmSubmitting"))
	}
	return d, false
}

// hasNodes reports whether a job has its nodes, and what it runs on them may have begun.
func hasNodes(s slurm.State) bool { return s == slurm.Running || s == slurm.Suspended }

// began reports whether the main kernel of a run has begun. It is unknown if its file cannot be read.
func (p *Planner) began(r *run, now record) (began, ok bool) {
	_, err := node.ReadBegun(r.dir, now.Kernels[0].Kernel)
	return err == nil, err == nil || errors.Is(err, fs.ErrNotExist)
}

func waitFor(code session.Code, said session.Phrase) *session.Wait {
	return &session.Wait{Code: code, Message: said.English(), Said: []session.Phrase{said}}
}

// waitOf is why a job waits, in Slurm's words, and when Slurm expects to start it.
func waitOf(job slurm.Job, now time.Time) *session.Wait {
	said := job.Reason.Words()
	switch job.State {
	case slurm.Configuring:
		said = session.Say("slurmConfiguring")
	case slurm.Completing:
		said = session.Say("slurmEnding")
	}
	w := waitFor(job.Reason.Code(), said)
	if at := job.Start; !at.IsZero() && at.After(now) && !job.Reason.Never() {
		w.Start = new(at.UTC())
	}
	return w
}

// endedEarly decides for a run whose job is over before it began: somebody cancelled it, or its node failed.
func (p *Planner) endedEarly(ctx context.Context, d *scheduler.Decision, r *run, job slurm.Job, v view) {
	end := p.engine.jobs.endOf(ctx, r, v, false)
	if !end.sure {
		d.Wait = waitFor(session.CodeWaitTurn, session.Say("slurmEnding"))
		return
	}
	said := end.words()
	if said.Say == "" {
		said = session.Say("slurmFailed")
	}
	d.End = &scheduler.End{Reason: session.ReasonCreateFailed,
		Cause: *session.Because(session.CodeStartFailed, said, session.Say("launchAgain"))}
	if end.state == slurm.Cancelled {
		d.End.Reason = session.ReasonForced
	}
}

// submit has missing jobs submitted, one after the other, in place of those that were to be.
func (p *Planner) submit(wanted []engine.Wanted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(wanted, func(w engine.Wanted) bool { return slices.Contains(p.current, nameOf(w)) })
	if p.working || len(p.queue) == 0 {
		return
	}
	p.working = true
	p.engine.tasks.Go(func() {
		for {
			together := p.next()
			if together == nil {
				return
			}
			again := p.submitSome(p.engine.ctx, together)
			pace.Signal(p.changed)
			if again {
				p.engine.rest()
			}
		}
	})
}

// next returns what is to be submitted next, with all that may be tasks of one array with it; nil: nothing is.
func (p *Planner) next() (together []engine.Wanted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = nil
	for len(p.queue) > 0 && p.engine.ctx.Err() == nil {
		first := p.queue[0]
		p.queue = p.queue[1:]
		if p.refused[nameOf(first)] != nil { // since it was planned
			continue
		}
		together = []engine.Wanted{first}
		fresh := func(w engine.Wanted) bool {
			return p.arrayed(w) && p.refused[nameOf(w)] == nil && p.engine.runs.named(nameOf(w)) == nil
		}
		if fresh(first) {
			p.queue = slices.DeleteFunc(p.queue, func(w engine.Wanted) bool {
				with := len(together) < maxTasks && w.Session.Launch == first.Session.Launch && fresh(w)
				if with {
					together = append(together, w)
				}
				return with
			})
		}
		for _, w := range together {
			p.current = append(p.current, nameOf(w))
		}
		return together
	}
	p.working = false
	return nil
}

func nameOf(w engine.Wanted) slurm.JobName { return slurm.NameOf(w.Session.ID, w.Session.Attempt) }

// retryTime is the pause after a call of Slurm that failed, so that a controller in trouble is not asked all the time.
const retryTime = 15 * time.Second

func (e *Engine) rest() { _ = e.config.Clock.Pause(e.ctx, retryTime) } // fails only with the engine's end

// submitted remembers why a run could not be submitted, and reports whether that is to be tried again.
func (p *Planner) submitted(name slurm.JobName, err error) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failed, name)
	if err == nil {
		return false
	}
	p.engine.config.Log.Warn("a session is not submitted", "run", name, "err", err)
	if refuses(err) {
		p.refused[name] = session.AsError(err, session.CodeStartFailed)
		return false
	}
	p.failed[name] = session.AsError(err, session.CodeEngineInternal)
	return true
}

// refuses reports whether an error says that the same request would be refused again.
func refuses(err error) bool {
	return slices.Contains([]session.Code{session.CodeStartFailed, session.CodeEngineInvalid,
		session.CodeEngineUnsupported}, session.CodeOf(err))
}

// termsFor is what a session asks of Slurm.
func (e *Engine) termsFor(ctx context.Context, w engine.Wanted) (Terms, error) {
	terms, err := e.termsOf(ctx, w.Session.Spec)
	terms.Nice = niceOf(w.Session)
	return terms, err
}

// launch writes the run of a session and submits its job.
func (e *Engine) launch(ctx context.Context, name slurm.JobName, w engine.Wanted) error {
	for _, c := range w.Kernels {
		if err := validate(c); err != nil {
			return err
		}
	}
	terms, err := e.termsFor(ctx, w)
	if err != nil {
		return err
	}
	r, err := e.runs.take(ctx, name)
	if err != nil {
		return err
	}
	defer e.runs.give(r)
	if now := r.now(); now.Request.Array > 0 && now.Job == 0 { // of which nothing was submitted
		if err := e.discard(r); err != nil {
			return err
		}
	}
	if len(r.now().Kernels) == 0 {
		now, err := e.prepare(ctx, r, w.Kernels, terms)
		if err == nil {
			err = r.keep(now)
		}
		if err != nil {
			return errors.Join(err, e.runs.remove(r))
		}
	}
	err = e.hand(ctx, r)
	if session.CodeOf(err) == session.CodeStartFailed {
		err = errors.Join(err, e.discard(r)) // another attempt may ask for something else
	}
	return err
}

// takeBack ends what no session needs: jobs of ours, and the runs whose containers the engine was not asked for.
func (p *Planner) takeBack(needed map[slurm.JobName]bool, v view) {
	p.mu.Lock()
	for _, all := range []map[slurm.JobName]*session.Error{p.refused, p.failed} {
		for name := range all {
			if !needed[name] {
				delete(all, name)
			}
		}
	}
	for name := range p.placed {
		if !needed[name] {
			delete(p.placed, name)
		}
	}
	p.mu.Unlock()
	ours := map[jobKey]bool{}
	for _, r := range p.engine.runs.all() {
		now := r.now()
		ours[now.key()] = true
		if needed[r.name] || slices.ContainsFunc(now.Kernels, func(k kernel) bool { return !k.Created.IsZero() }) {
			continue
		}
		p.end(string(r.name), func(ctx context.Context) error { return p.engine.withdraw(ctx, r) })
	}
	prefix := "slipway:" + p.engine.config.Instance + ":"
	for key, job := range v.jobs {
		if !ours[key] && !job.State.Ended() && strings.HasPrefix(job.Comment, prefix) {
			p.end(key.String(), func(ctx context.Context) error {
				p.engine.jobs.poller.Wake()
				return failure(ctx, p.engine.config.Commands.Cancel(ctx, namedBy(job)))
			})
		}
	}
}

// end changes a run or a job, unless that is being done.
func (p *Planner) end(name string, do func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending[name] {
		return
	}
	p.ending[name] = true
	p.engine.tasks.Go(func() {
		if err := do(p.engine.ctx); err != nil && p.engine.ctx.Err() == nil {
			p.engine.config.Log.Warn("a job is not changed", "job", name, "err", err)
			p.engine.rest()
		}
		p.mu.Lock()
		delete(p.ending, name)
		p.mu.Unlock()
		pace.Signal(p.changed)
	})
}

// withdraw cancels the job of a run without containers, and removes the run.
func (e *Engine) withdraw(ctx context.Context, r *run) error {
	r, err := e.runs.take(ctx, r.name)
	if err != nil {
		return err
	}
	defer e.runs.give(r)
	if slices.ContainsFunc(r.now().Kernels, func(k kernel) bool { return !k.Created.IsZero() }) {
		return nil
	}
	if err := e.finish(ctx, r); err != nil {
		return err
	}
	return e.discard(r)
}

// forget removes a run of which nothing ran, so that it is submitted again.
func (p *Planner) forget(name slurm.JobName, r *run) {
	p.end(string(name), func(ctx context.Context) error { return p.engine.withdraw(ctx, r) })
}
