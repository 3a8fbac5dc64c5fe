// Package health watches the container engine: whether it answers, since when not, and changes of its containers.
package health

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway/backend/engine"
	"slipway/backend/pace"
	"slipway/backend/session"
)

// Engine is what a Watch needs of the engine.
type Engine interface {
	Info(ctx context.Context) (engine.Info, error)
	Watch(ctx context.Context, fn func(engine.State)) error
}

// News is called when the engine begins or stops answering.
type News interface {
	PublishMachine()
	PlanAgain() // what can start may have changed
}

// Config configures a Watch.
type Config struct {
	Engine Engine
	News   News
	// Reconcile compares records and containers. It is called when the engine begins to answer, and regularly. ctx ends
	// with Run, not when the engine stops answering, because what is started then goes on.
	Reconcile func(ctx context.Context) error
	Changed   func(container engine.State) // called when a container has changed
	Clock     *pace.Clock
	Log       *slog.Logger
	Call      time.Duration // limit of a call to the engine
	Every     time.Duration // between two calls of Reconcile
}

// Watch is what is known of the engine. Its methods are safe for concurrent use.
type Watch struct {
	config  Config
	probe   chan struct{}  // of capacity 1: ask the engine now
	compare chan struct{}  // of capacity 1: call Reconcile now
	tasks   sync.WaitGroup // everything that Run started

	mu      sync.Mutex // guards everything below
	state   State
	trouble *session.Error // why it is not up; nil before the first answer
	since   time.Time      // of the trouble
	outages []outage       // the newest, at most ten
	changed chan struct{}  // closed and replaced when state.Up changes
}

// State is what is known of the engine at a moment.
type State struct {
	Up    bool        // it answers, and records and containers were compared since
	Known bool        // it was up at least once
	Info  engine.Info // zero before it answered
}

// New returns a watch of an engine of which nothing is known yet.
func New(config Config) *Watch {
	return &Watch{config: config, probe: make(chan struct{}, 1), compare: make(chan struct{}, 1),
		changed: make(chan struct{})}
}

func (w *Watch) set(up bool, trouble *session.Error) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	changed = w.state.Up != up || (w.trouble == nil) != (trouble == nil)
	if trouble != nil && w.trouble == nil {
		w.since = w.config.Clock.Now()
	}
	if trouble == nil && w.trouble != nil && engine.Unavailable(w.trouble) {
		w.outages = append(w.outages[max(0, len(w.outages)-9):], outage{from: w.since, to: w.config.Clock.Now()})
	}
	w.trouble = trouble
	w.state.Known = w.state.Known || up
	if w.state.Up != up {
		w.state.Up = up
		close(w.changed)
		w.changed = make(chan struct{})
	}
	return changed
}

// know notes what the engine says of itself, which counts before it is up: what Reconcile starts goes by it.
func (w *Watch) know(info engine.Info) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.Info = info
}

func (w *Watch) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Warning is the present trouble, if there is any.
func (w *Watch) Warning() (session.Warning, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble == nil {
		return session.Warning{}, false
	}
	title := "The container engine does not answer"
	if !engine.Unavailable(w.trouble) {
		title = "The container engine cannot be used"
	}
	return session.Warning{Code: w.trouble.Code, Title: title, Text: w.trouble.Message + " " + w.trouble.Hint,
		At: w.since}, true
}

// Wait explains to a queued session that the engine does not answer.
func (w *Watch) Wait() *session.Wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := session.Phrase{Say: "engineFirst"}
	if w.trouble != nil {
		said = session.Phrase{Say: "engine",
			With: []session.Phrase{{Hole: "why", Text: w.trouble.Message + " " + w.trouble.Hint}}}
	}
	return &session.Wait{Code: session.CodeEngineUnavailable, Message: said.English(), Said: []session.Phrase{said}}
}

type outage struct{ from, to time.Time }

// During reports whether the engine was down at a time, or a moment later: one that stops may end containers first.
func (w *Watch) During(at time.Time) bool {
	const notice = 5 * time.Second
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble != nil && engine.Unavailable(w.trouble) && at.After(w.since.Add(-notice)) {
		return true
	}
	for _, o := range w.outages {
		if at.After(o.from.Add(-notice)) && at.Before(o.to) {
			return true
		}
	}
	return false
}

// Heed checks the error of a call. If the engine does not answer, that is published and the engine probed at once.
func (w *Watch) Heed(err error) error {
	if engine.Unavailable(err) {
		w.down(err)
		pace.Signal(w.probe)
	}
	return err
}

func (w *Watch) down(err error) {
	if w.set(false, session.AsError(err, session.CodeEngineUnavailable)) {
		w.config.Log.Warn("the engine does not answer", "err", err)
		w.config.News.PublishMachine()
		w.config.News.PlanAgain()
	}
}

func (w *Watch) Up(info engine.Info) {
	w.know(info)
	if w.set(true, nil) {
		w.config.Log.Info("the engine answers", "engine", info.Name, "version", info.Version)
		w.config.News.PublishMachine()
	}
	w.config.News.PlanAgain()
}

// CompareSoon requests a comparison of records and containers as soon as the engine answers.
func (w *Watch) CompareSoon() { pace.Signal(w.compare) }

func (w *Watch) Await(ctx context.Context) error {
	for {
		w.mu.Lock()
		up, changed := w.state.Up, w.changed
		w.mu.Unlock()
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

// Run watches the engine until ctx ends, and probes it while it does not answer.
func (w *Watch) Run(ctx context.Context) {
	defer w.tasks.Wait()
	const shortest, longest = 250 * time.Millisecond, 5 * time.Second
	wait := shortest
	for ctx.Err() == nil {
		started := time.Now()
		err := w.attend(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			w.down(err)
		}
		if time.Since(started) > longest {
			wait = shortest
		}
		_ = pace.Wall().Pause(ctx, wait) // an end of ctx ends the loop
		wait = min(2*wait, longest)
	}
}

// ask asks the engine what it is now.
func (w *Watch) ask(ctx context.Context) (info engine.Info, err error) {
	err = engine.Within(ctx, w.config.Call, "info", func(ctx context.Context) (err error) {
		info, err = w.config.Engine.Info(ctx)
		return err
	})
	if err == nil {
		w.know(info)
	}
	return info, err
}

// attend watches an engine that answers, until it no longer does.
func (w *Watch) attend(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	info, err := w.ask(ctx)
	if err != nil {
		return err
	}
	select {
	case <-w.probe: // this answer will do
	default:
	}
	broken := make(chan error, 1)
	w.tasks.Go(func() { broken <- w.config.Engine.Watch(watching, w.config.Changed) })
	if err := w.config.Reconcile(ctx); err != nil {
		return err
	}
	w.Up(info)
	timer := w.config.Clock.Timer(w.config.Every)
	defer timer.Stop()
	for {
		select {
		case err := <-broken:
			w.config.Log.Debug("the engine's events broke off", "err", err)
			return nil // Info says whether it still answers
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.probe:
			return nil // it was found unavailable: start over
		case <-w.compare:
		case <-timer.C:
			if _, err := w.ask(ctx); err != nil {
				return err
			}
		}
		if err := w.config.Reconcile(ctx); err != nil {
			return err
		}
		timer.Reset(w.config.Clock.Real(w.config.Every))
	}
}
