// Package reclaim watches how running sessions are used, and ends idle ones by their policy.
//
// Every 15 s package idle judges each running session: by traffic through its terminals and apps, which passes through
// this process, by what its guests report to run in the foreground of terminals, by what notebook servers report of
// their kernels, and by its use of resources. A warning and a banner in the terminals announce an end, and [Watch.Keep]
// delays it. Warnings and the time of the last traffic outlive the agent; averages start over.
package reclaim

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/guest/link"
	"slipway/backend/idle"
	"slipway/backend/session"
	"slipway/gpu"
)

// Guest is what a Watch needs of the guest in a container.
type Guest interface {
	Activity(ctx context.Context) ([]link.Foreground, error)
	Services(ctx context.Context) ([]link.Service, error)
	SSHUse(ctx context.Context) (session.SSHUse, error)
	Dial(ctx context.Context, port int) (net.Conn, error)
	Notice(ctx context.Context, text string) error
}

// Config configures a Watch.
type Config struct {
	host.Host
	Moment func() gpu.Moment
	Policy session.IdlePolicy // of sessions that have none of their own
	// Guest returns the guest of a kernel if it is connected, else nil.
	Guest      func(id session.ID, kernel string) Guest
	EndSession host.EndSession
	TimeLimit  TimeLimit // nil: sessions have none
}

// TimeLimit is how long the planner of the queue lets sessions run.
type TimeLimit interface {
	Until(s session.Session) time.Time
	Extend(ctx context.Context, s session.Session, until time.Time) error
}

// Watch knows how sessions are used. Its methods are safe for concurrent use.
type Watch struct {
	config Config

	mu      sync.Mutex // guards everything below
	known   map[session.ID]*watchedSession
	used    map[session.ID]traffic
	at      gpu.Moment // of the last look
	gone    []session.ID
	over    []session.ID  // whose stored series are to be removed
	savedAt gpu.Moment    // when the series were stored
	notify  chan struct{} // of capacity 1: look now
}

// watchedSession is what is known of one session that runs or ran.
type watchedSession struct {
	series    idle.Series
	point     idle.Point // in progress
	announced idle.Announced
	checks    []session.IdleCheck
	shown     []session.IdleCheck          // as watchers know them
	deviceAt  time.Duration                // of the last sample of devices, on the Boot clock
	usageAt   time.Time                    // of the last sample of use
	last      map[session.IdleChecker]bool // terminals were notified: for the last time, if true
	bannerAt  time.Time                    // when terminals were notified last
	saved     time.Time                    // the series is stored before this slot; zero: not at all
}

// Open returns a watch with the stored traffic.
func Open(config Config) (*Watch, error) {
	w := &Watch{config: config, known: map[session.ID]*watchedSession{}, used: map[session.ID]traffic{},
		notify: make(chan struct{}, 1)}
	_, err := config.Records.Account(keyTraffic, &w.used)
	return w, err
}

// of returns what is known of a session. The caller holds w.mu.
func (w *Watch) of(id session.ID) *watchedSession {
	if w.known[id] == nil {
		w.known[id] = &watchedSession{announced: idle.Announced{}, last: map[session.IdleChecker]bool{}}
	}
	return w.known[id]
}

// Run checks every running session every 15 s, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := w.config.Clock.Timer(idle.Every)
		select {
		case <-timer.C:
			w.Check(ctx, true)
		case <-w.notify:
			w.Check(ctx, false)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Check judges every running session. With look, what was measured since the last time becomes a point.
func (w *Watch) Check(ctx context.Context, look bool) {
	live, err := w.config.Records.LiveSessions()
	if err != nil {
		w.config.Log.Warn("it is not known which sessions are idle", "err", err)
		return
	}
	running := slices.DeleteFunc(slices.Clone(live),
		func(s session.Session) bool { return s.Status != session.Running || s.StartedAt == nil })
	if look {
		seen := w.lookAll(ctx, running)
		w.turn(w.config.Moment(), running, live, seen)
	}
	for _, s := range running {
		if ctx.Err() != nil {
			return
		}
		w.judge(ctx, s)
	}
}

func (w *Watch) policyOf(s session.Session) session.IdlePolicy {
	if s.Spec.Idle != nil {
		return *s.Spec.Idle
	}
	return w.config.Policy
}

func (w *Watch) judge(ctx context.Context, s session.Session) {
	now, policy := w.config.Moment().Wall, w.policyOf(s)
	w.mu.Lock()
	k := w.of(s.ID)
	facts := idle.Facts{Type: s.Spec.Type, StartedAt: *s.StartedAt, Series: &k.series}
	if s.KeepUntil != nil {
		facts.KeepUntil = *s.KeepUntil
	}
	if w.config.TimeLimit != nil {
		facts.Until = w.config.TimeLimit.Until(s)
	}
	verdicts := idle.Judge(policy, facts, k.announced, now)
	k.checks = make([]session.IdleCheck, len(verdicts))
	for i, v := range verdicts {
		v.Check.CheckedAt = v.Check.CheckedAt.UTC()
		k.checks[i] = v.Check
	}
	news := differ(k.shown, k.checks)
	if news {
		k.shown = k.checks
	}
	w.mu.Unlock()
	for _, v := range verdicts {
		if v.Reclaim && w.end(s, v) {
			return
		}
	}
	if w.announce(ctx, s, verdicts, now) {
		return // the session was stored, and so published with the checks
	}
	if news {
		w.config.PublishSession(s)
	}
}

// differ reports whether checks changed enough to publish them.
func differ(shown, checks []session.IdleCheck) bool {
	const worth = time.Minute
	return !slices.EqualFunc(shown, checks, func(x, y session.IdleCheck) bool {
		if x.Checker != y.Checker || x.State != y.State || len(x.Metrics) != len(y.Metrics) {
			return false
		}
		if shifted(x.ExpiresAt, y.ExpiresAt, worth) || shifted(x.JudgedFrom, y.JudgedFrom, worth) {
			return false
		}
		for i := range x.Metrics {
			if d := x.Metrics[i].Average - y.Metrics[i].Average; d >= 1 || d <= -1 {
				return false
			}
		}
		return y.CheckedAt.Sub(x.CheckedAt) < worth
	})
}

// shifted reports whether an optional time changed by at least worth.
func shifted(x, y *time.Time, worth time.Duration) bool {
	if x == nil || y == nil {
		return x != y
	}
	return x.Sub(*y).Abs() >= worth
}
