package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// health is what the agent knows of its engine.
type health struct {
	clock *pace.Clock

	mu      sync.Mutex // guards everything below
	up      bool       // it answers, and records and containers were compared since
	known   bool       // info was read at least once
	info    engine.Info
	trouble *session.Error // why it is not up; nil before the first answer
	since   time.Time      // of the trouble
	outages []outage       // the newest, at most ten
	changed chan struct{}  // closed and replaced when up changes
}

func newHealth(clock *pace.Clock) *health {
	return &health{clock: clock, changed: make(chan struct{})}
}

func (h *health) set(up bool, info *engine.Info, trouble *session.Error) (changed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	changed = h.up != up || (h.trouble == nil) != (trouble == nil)
	if info != nil {
		h.info, h.known = *info, true
	}
	if trouble != nil && h.trouble == nil {
		h.since = h.clock.Now()
	}
	if trouble == nil && h.trouble != nil && engine.Unavailable(h.trouble) {
		h.outages = append(h.outages[max(0, len(h.outages)-9):], outage{from: h.since, to: h.clock.Now()})
	}
	h.trouble = trouble
	if h.up != up {
		h.up = up
		close(h.changed)
		h.changed = make(chan struct{})
	}
	return changed
}

// state returns what is known, and the channel that tells of a change.
func (h *health) state() (up bool, info engine.Info, known bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.up, h.info, h.known, h.changed
}

// warning is the standing trouble, if there is one.
func (h *health) warning() (session.Warning, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble == nil {
		return session.Warning{}, false
	}
	title := "The container engine does not answer"
	if !engine.Unavailable(h.trouble) {
		title = "The container engine cannot be used"
	}
	return session.Warning{Code: h.trouble.Code, Title: title, Text: h.trouble.Message + " " + h.trouble.Hint,
		At: h.since}, true
}

// wait explains to a queued session that the engine does not answer.
func (h *health) wait() *session.Wait {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble == nil {
		return engineWait(session.Phrase{Say: "engineFirst"})
	}
	return engineWait(session.Phrase{Say: "engine",
		With: []session.Phrase{{Hole: "why", Text: h.trouble.Message + " " + h.trouble.Hint}}})
}

func engineWait(said session.Phrase) *session.Wait {
	return &session.Wait{Code: engine.CodeUnavailable, Message: said.English(), Said: []session.Phrase{said}}
}

// outage is a time in which the engine did not answer.
type outage struct{ from, to time.Time }

// during reports whether the engine did not answer at a time. An engine that is
// stopped may end containers a moment before it is missed.
func (h *health) during(at time.Time) bool {
	const notice = 5 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.trouble != nil && engine.Unavailable(h.trouble) && at.After(h.since.Add(-notice)) {
		return true
	}
	for _, o := range h.outages {
		if at.After(o.from.Add(-notice)) && at.Before(o.to) {
			return true
		}
	}
	return false
}

// heed looks at the failure of a call to the engine: where the engine does not
// answer, everybody learns of it and the engine is probed at once.
func (a *Agent) heed(err error) error {
	if engine.Unavailable(err) {
		a.engineDown(err)
		signal(a.probe)
	}
	return err
}

// engineDown makes the trouble known.
func (a *Agent) engineDown(err error) {
	if a.health.set(false, nil, session.AsError(err, engine.CodeUnavailable)) {
		a.log.Warn("the engine does not answer", "err", err)
		a.publishMachine()
		a.rouse()
	}
}

// engineUp ends the trouble.
func (a *Agent) engineUp(info engine.Info) {
	if a.health.set(true, &info, nil) {
		a.log.Info("the engine answers", "engine", info.Name, "version", info.Version)
		a.publishMachine()
	}
	a.rouse()
}

// awaitEngine waits until the engine answers.
func (a *Agent) awaitEngine(ctx context.Context) error {
	for {
		up, _, _, changed := a.health.state()
		if up {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// runEngine watches the engine until ctx ends: it probes one that does not
// answer, compares records and containers whenever it begins to, and passes
// changes of containers on to their sessions.
func (a *Agent) runEngine(ctx context.Context) {
	const shortest, longest = 250 * time.Millisecond, 5 * time.Second
	wait := shortest
	for ctx.Err() == nil {
		started := time.Now()
		err := a.attend(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			a.engineDown(err)
		}
		if time.Since(started) > longest {
			wait = shortest
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
		wait = min(2*wait, longest)
	}
}

// attend watches an engine that answers, until it no longer does.
func (a *Agent) attend(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var info engine.Info
	err := engine.Within(ctx, a.limits.Call, "info", func(ctx context.Context) (err error) {
		info, err = a.engine.Info(ctx)
		return err
	})
	if err != nil {
		return err
	}
	drain(a.probe)
	broken := make(chan error, 1)
	a.tasks.Go(func() { broken <- a.engine.Watch(ctx, a.containerChanged) })
	if err := a.reconcile(ctx); err != nil {
		return err
	}
	if err := a.askAttachment(ctx); err != nil {
		return err
	}
	a.engineUp(info)
	timer := a.clock.Timer(a.limits.Reconcile)
	defer timer.Stop()
	for {
		select {
		case err := <-broken:
			a.log.Debug("the engine's events broke off", "err", err)
			return nil // Info says whether it still answers
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-a.probe:
			return nil // someone found it unavailable: begin anew
		case <-a.sweep:
			if err := a.sweepNetworks(ctx); err != nil {
				return err
			}
		case <-timer.C:
			if err := errors.Join(a.reconcile(ctx), a.askAttachment(ctx)); err != nil {
				return err
			}
			timer.Reset(a.clock.Real(a.limits.Reconcile))
		}
	}
}

func drain(c chan struct{}) {
	select {
	case <-c:
	default:
	}
}
