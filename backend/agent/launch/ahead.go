package launch

import (
	"context"
	"maps"
	"sync"

	"slipway/backend/agent/host"
	"slipway/backend/engine"
	"slipway/backend/scheduler"
	"slipway/backend/session"
	"slipway/gpu"
)

// ahead prepares sessions that wait for another scheduler, which takes them only as a whole: their images are fetched
// and their containers described before they are placed.
type ahead struct {
	mu      sync.Mutex // guards everything below
	fetches map[pull]*fetch
	ready   map[session.ID]described
}

// pull is what one fetch of an image serves.
type pull struct {
	ref, owner string
	byAdmin    bool
	login      session.RegistryLogin // zero: none
}

type fetch struct {
	stop    context.CancelFunc
	over    bool
	trouble *session.Error // of the newest attempt; once over, why there is no image
}

type described struct {
	attempt int
	kernels []engine.Container
}

// Ready is what became of a session that was prepared. Exactly one of Kernels, Wait and End is set.
type Ready struct {
	Session session.Session    // as its placement will make it, as far as that is known before
	Kernels []engine.Container // what the engine will be asked to create, but for what a placement decides
	Wait    *session.Wait
	End     *scheduler.End
}

// Ahead prepares the sessions that are due, and answers for each. The queue plans again when an image has come. What
// was prepared for others is given up.
func (r *Runner) Ahead(ctx context.Context, due []session.Session) ([]Ready, error) {
	answers := make([]Ready, len(due))
	used, waiting := map[pull]bool{}, map[session.ID]bool{}
	for i, s := range due {
		waiting[s.ID] = true
		s = placed(s)
		one, err := r.describe(ctx, s, used)
		if err != nil && !host.Lasting(session.CodeOf(err)) {
			return nil, r.config.Health.Heed(err)
		}
		if err != nil {
			cause := session.CauseOf(err, session.CodeStepFailed)
			one.End = &scheduler.End{Reason: session.ReasonCreateFailed, Cause: *cause}
		}
		one.Session = s
		answers[i] = one
	}
	a := &r.ahead
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.ready, func(id session.ID, _ described) bool { return !waiting[id] })
	for of, f := range a.fetches {
		if !used[of] {
			f.stop()
			delete(a.fetches, of)
		}
	}
	return answers, nil
}

// describe prepares one session. It adds the fetch that it waits for to used.
func (r *Runner) describe(ctx context.Context, s session.Session, used map[pull]bool) (Ready, error) {
	r.ahead.mu.Lock()
	known, ok := r.ahead.ready[s.ID]
	r.ahead.mu.Unlock()
	if ok && known.attempt == s.Attempt {
		return Ready{Kernels: known.kernels}, nil
	}
	image, err := r.config.Engine.Image(ctx, s.Spec.Image)
	switch {
	case session.CodeOf(err) == session.CodeNoImage:
		return r.awaitImage(ctx, s, used)
	case err != nil:
		return Ready{}, err
	}
	if err := r.config.Images.MayUse(s, image); err != nil {
		return Ready{}, err
	}
	if s.Spec.KeepsHome() {
		stored, err := r.config.Records.Change(s.ID, r.config.Folders.AddHome)
		if err != nil {
			return Ready{}, err
		}
		s.Folders = stored.Folders
	}
	kernels, err := r.containers(s)
	if err != nil {
		return Ready{}, err
	}
	r.ahead.mu.Lock()
	r.ahead.ready[s.ID] = described{s.Attempt, kernels}
	r.ahead.mu.Unlock()
	return Ready{Kernels: kernels}, nil
}

// awaitImage begins to fetch the image of a session, unless that is under way.
func (r *Runner) awaitImage(ctx context.Context, s session.Session, used map[pull]bool) (Ready, error) {
	asked, err := r.pullRequest(s)
	if err != nil {
		return Ready{}, err
	}
	of := pull{ref: asked.Ref, owner: asked.Owner, byAdmin: asked.ByAdmin}
	if asked.Login != nil {
		of.login = *asked.Login
	}
	used[of] = true
	r.ahead.mu.Lock()
	defer r.ahead.mu.Unlock()
	f := r.ahead.fetches[of]
	if f == nil {
		ctx, stop := context.WithCancel(ctx)
		f = &fetch{stop: stop}
		r.ahead.fetches[of] = f
		r.tasks.Go(func() { r.fetch(ctx, f, asked) })
	}
	if f.over {
		cause := session.CauseOf(f.trouble, session.CodePullNotFound)
		return Ready{End: &scheduler.End{Reason: session.ReasonPullFailed, Cause: *cause}}, nil
	}
	said := session.Say("imageFirst")
	if f.trouble != nil {
		said = session.Say("imageAgain", session.Fill("why", f.trouble.Message))
	}
	return Ready{Wait: &session.Wait{Code: session.CodeWaitResources, Message: said.English(),
		Said: []session.Phrase{said}}}, nil
}

// fetch fetches an image, with as many attempts as a phase has, and has the queue plan again.
func (r *Runner) fetch(ctx context.Context, f *fetch, asked session.PullRequest) {
	defer f.stop()
	for attempts := 0; ctx.Err() == nil; {
		err := engine.Within(ctx, r.config.Limits.Pull, "pull", func(ctx context.Context) error {
			return r.config.Images.Fetch(ctx, asked, func(session.Pull) {})
		})
		if ctx.Err() != nil {
			return
		}
		down := engine.Unavailable(r.config.Health.Heed(err))
		if !down {
			attempts++
		}
		over := r.fetched(f, err, attempts)
		r.config.PlanAgain()
		switch {
		case over:
			return
		case down:
			_ = r.config.Health.Await(ctx) // fails only with ctx
		default:
			_ = r.config.Clock.Pause(ctx, r.config.Limits.Pause(attempts)) // fails only with ctx
		}
	}
}

// fetched records an attempt at a fetch, and reports whether it was the last.
func (r *Runner) fetched(f *fetch, err error, attempts int) (over bool) {
	r.ahead.mu.Lock()
	defer r.ahead.mu.Unlock()
	if err == nil { // the image is found from now on
		maps.DeleteFunc(r.ahead.fetches, func(_ pull, other *fetch) bool { return other == f })
		return true
	}
	f.trouble = session.AsError(err, session.CodePullUnavailable)
	f.over = host.Lasting(f.trouble.Code) || attempts >= session.MaxAttempts
	return f.over
}

// pullRequest asks for the image of a session with what came with its launch.
func (r *Runner) pullRequest(s session.Session) (session.PullRequest, error) {
	kept, err := r.config.Confidential.Get(s)
	return session.PullRequest{Ref: s.Spec.Image, Owner: s.Owner, ByAdmin: s.ByAdmin, Login: kept.Login}, err
}

// placed is a waiting session as its next placement will make it, as far as that is known before.
func placed(s session.Session) session.Session {
	s.Attempt++
	s.Kernels = make([]session.Kernel, max(1, s.Spec.Cluster))
	for number := range s.Kernels {
		name := session.KernelName(number)
		s.Kernels[number] = session.Kernel{Name: name, Hostname: name,
			Grants: session.Grants{Memory: s.Spec.Resources.Memory, GPUs: asked(s.Spec.Accelerator)}}
	}
	return s
}

// asked is what is granted of devices, as far as that is known before: which ones is not.
func asked(r gpu.Request) (grants []gpu.Grant) {
	for range r.Devices + int(r.Shares/gpu.WholeDevice) {
		grants = append(grants, gpu.Grant{Share: gpu.WholeDevice, Whole: true})
	}
	if part := r.Shares % gpu.WholeDevice; part > 0 {
		grants = append(grants, gpu.Grant{Share: part})
	}
	return grants
}
