package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"slipway/backend/idle"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	// jump is by how much the clock on the wall may go another way than time
	// awake before what is known is moved along: the clock was set, or the
	// machine slept, which is no time without use.
	jump = 5 * time.Second
	// bannerLasts is how long after a banner what terminals show may be it.
	bannerLasts = 5 * time.Second
	// endedKept is how many ended sessions can still be simulated.
	endedKept = 20
)

// traffic is when a session was last used from outside. It is stored with the
// accounts: while the agent is away nobody can use a session through it.
type traffic struct {
	Last  time.Time `json:"last,omitzero"`  // through a terminal or an app
	Input time.Time `json:"input,omitzero"` // by a person to a terminal
}

// idleWatch knows how sessions are used. Its methods are safe for concurrent use.
type idleWatch struct {
	clock *pace.Clock

	mu      sync.Mutex // guards everything below
	known   map[session.ID]*watchedSession
	used    map[session.ID]traffic
	at      gpu.Moment // of the last look
	gone    []session.ID
	over    []session.ID  // of which nothing is to be stored any more
	savedAt gpu.Moment    // when what is known was stored
	notify  chan struct{} // of capacity 1: look now
}

// watchedSession is what is known of one session that runs or ran.
type watchedSession struct {
	series    idle.Series
	point     idle.Point // under way
	announced idle.Announced
	checks    []session.IdleCheck
	shown     []session.IdleCheck          // as watchers know them
	deviceAt  time.Duration                // of the last sample of devices, on the Boot clock
	usageAt   time.Time                    // of the last sample of use
	last      map[session.IdleChecker]bool // terminals were told: for the last time, if true
	bannerAt  time.Time                    // when terminals were told something last
	// the series is stored but for the slot of this time, and later ones; zero: not
	saved time.Time
}

func newIdleWatch(clock *pace.Clock, used map[session.ID]traffic) *idleWatch {
	if used == nil {
		used = map[session.ID]traffic{}
	}
	return &idleWatch{clock: clock, known: map[session.ID]*watchedSession{}, used: used, notify: make(chan struct{}, 1)}
}

// of returns what is known of a session. w.mu is held.
func (w *idleWatch) of(id session.ID) *watchedSession {
	if w.known[id] == nil {
		w.known[id] = &watchedSession{announced: idle.Announced{}, last: map[session.IdleChecker]bool{}}
	}
	return w.known[id]
}

// traffics is what must outlive the agent.
func (w *idleWatch) traffics() map[session.ID]traffic {
	w.mu.Lock()
	defer w.mu.Unlock()
	copied := make(map[session.ID]traffic, len(w.used))
	for id, t := range w.used {
		copied[id] = t
	}
	return copied
}

// seen takes note of traffic, and of a person's input where it is some.
func (w *idleWatch) seen(id session.ID, input bool) {
	now := w.clock.Now().UTC()
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.used[id]
	t.Last = now
	if input {
		t.Input = now
	}
	w.used[id] = t
}

// shown takes note of output that a person could see in a terminal, unless it
// is a banner of our own.
func (w *idleWatch) shown(id session.ID) {
	w.mu.Lock()
	banner := w.clock.Since(w.of(id).bannerAt) < bannerLasts
	w.mu.Unlock()
	if !banner {
		w.seen(id, false)
	}
}

// sampled takes a sample of what a session uses of CPUs and memory.
func (w *idleWatch) sampled(u session.Usage, grants session.Grants) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of(u.Session)
	before := k.usageAt
	k.usageAt = u.At
	length := u.At.Sub(before)
	if before.IsZero() || length <= 0 || length > 2*idle.Every {
		return // what happened meanwhile is not known
	}
	if len(grants.CPUs) > 0 {
		k.point.CPU.Add(u.CPU*100/float64(len(grants.CPUs)), length)
	}
	if grants.Memory > 0 {
		k.point.Memory.Add(float64(u.Memory)*100/float64(grants.Memory), length)
	}
}

// devicesUsed takes what sessions make of their devices. What was divided by
// promise instead of measured says nothing about use.
func (w *idleWatch) devicesUsed(at gpu.Moment, live []session.Session, uses []gpu.Live) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range live {
		if s.Status != session.Running || len(s.Grants.GPUs) == 0 {
			continue
		}
		k := w.of(s.ID)
		length := at.Boot - k.deviceAt
		fits := k.deviceAt > 0 && length > 0 && length <= 2*idle.Every
		k.deviceAt = at.Boot
		var util, share float64
		var memory, granted gpu.Bytes
		utilKnown, memoryKnown := true, true
		for _, g := range s.Grants.GPUs {
			share, granted = share+float64(g.Share), granted+g.Memory
		}
		devices := map[gpu.UUID]bool{}
		for _, g := range s.Grants.GPUs {
			if devices[g.Device] {
				continue
			}
			devices[g.Device] = true
			i := slices.IndexFunc(uses, func(l gpu.Live) bool {
				return l.Session == string(s.ID) &&
					l.Device == g.Device
			})
			if i < 0 {
				utilKnown, memoryKnown = false, false
				continue
			}
			if uses[i].Util == nil || uses[i].Estimated {
				utilKnown = false
			} else {
				util += float64(*uses[i].Util)
			}
			if uses[i].Memory == nil || uses[i].Estimated {
				memoryKnown = false
			} else {
				memory += *uses[i].Memory
			}
		}
		if util > 0 {
			k.point.WorkAt = at.Wall
		}
		if fits && utilKnown && share > 0 {
			k.point.GPU.Add(util*float64(gpu.WholeDevice)/100/share, length)
		}
		if fits && memoryKnown && granted > 0 {
			k.point.VRAM.Add(float64(memory)*100/float64(granted), length)
		}
	}
}

// runIdle looks at every session that runs, every 15 s, until ctx ends.
func (a *Agent) runIdle(ctx context.Context) {
	for ctx.Err() == nil {
		timer := a.clock.Timer(idle.Every)
		select {
		case <-timer.C:
			a.checkIdle(ctx, true)
		case <-a.idle.notify:
			a.checkIdle(ctx, false)
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// checkIdle judges every session that runs. With look, what was measured since
// the last time becomes a point of its own.
func (a *Agent) checkIdle(ctx context.Context, look bool) {
	live, err := a.store.LiveSessions()
	if err != nil {
		a.log.Warn("it is not known which sessions are idle", "err", err)
		return
	}
	running := slices.DeleteFunc(slices.Clone(live),
		func(s session.Session) bool { return s.Status != session.Running || s.StartedAt == nil })
	if look {
		seen := a.glanceAll(ctx, running)
		a.idle.turn(a.devices.moment(), running, live, seen)
	}
	for _, s := range running {
		if ctx.Err() != nil {
			return
		}
		a.judgeIdle(ctx, s)
	}
}

// policyOf is the idle policy of a session: its own, or else the agent's.
func (a *Agent) policyOf(s session.Session) session.IdlePolicy {
	if s.Spec.Idle != nil {
		return *s.Spec.Idle
	}
	return a.config.Idle
}

// turn closes the points under way, with what was seen inside the sessions.
func (w *idleWatch) turn(now gpu.Moment, running, live []session.Session, seen map[session.ID]glance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	slept := time.Duration(0)
	from := now.Wall.Add(-idle.Every)
	if !w.at.Wall.IsZero() && w.at.BootID == now.BootID {
		if d := now.Wall.Sub(w.at.Wall) - (now.Awake - w.at.Awake); d > jump || d < -jump {
			slept = d
		}
		from = w.at.Wall.Add(slept)
	}
	w.at = now
	if slept != 0 {
		w.shift(slept)
	}
	for _, s := range running {
		k := w.of(s.ID)
		p := k.point
		k.point = idle.Point{WorkAt: p.WorkAt, BusyAt: p.BusyAt, Busy: p.Busy}
		if p.From = from; s.StartedAt.After(from) {
			p.From = *s.StartedAt
		}
		if p.Length = now.Wall.Sub(p.From); p.Length <= 0 {
			continue
		}
		g := seen[s.ID]
		p.Known = g.known
		if g.busy != "" && g.busyAt.After(p.BusyAt) {
			p.Busy, p.BusyAt = g.busy, g.busyAt
		}
		k.point.Busy, k.point.BusyAt = p.Busy, p.BusyAt
		p.Traffic, p.Input = w.used[s.ID].Last, w.used[s.ID].Input
		k.series.Add(p)
	}
	w.forget(live)
}

// shift moves what is known by d. w.mu is held.
func (w *idleWatch) shift(d time.Duration) {
	for id, k := range w.known {
		k.series.Shift(d)
		k.saved = time.Time{}
		for _, t := range []*time.Time{&k.point.WorkAt, &k.point.BusyAt} {
			if !t.IsZero() {
				*t = t.Add(d)
			}
		}
		for checker, at := range k.announced {
			k.announced[checker] = at.Add(d)
		}
		if t, ok := w.used[id]; ok {
			w.used[id] = traffic{Last: moved(t.Last, d), Input: moved(t.Input, d)}
		}
	}
}

func moved(t time.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(d)
}

// forget drops sessions that are no longer live, but for the last few. w.mu is
// held.
func (w *idleWatch) forget(live []session.Session) {
	alive := make(map[session.ID]bool, len(live))
	for _, s := range live {
		alive[s.ID] = true
	}
	for id := range w.used {
		if !alive[id] {
			delete(w.used, id)
		}
	}
	for id := range w.known {
		if !alive[id] && !slices.Contains(w.gone, id) {
			w.gone, w.over = append(w.gone, id), append(w.over, id)
		}
	}
	for len(w.gone) > endedKept {
		delete(w.known, w.gone[0])
		w.gone = w.gone[1:]
	}
}

// judgeIdle judges one session and does what follows.
func (a *Agent) judgeIdle(ctx context.Context, s session.Session) {
	now := a.devices.moment().Wall
	w := a.idle
	w.mu.Lock()
	k := w.of(s.ID)
	facts := idle.Facts{Type: s.Spec.Type, StartedAt: *s.StartedAt, Series: &k.series}
	if s.KeepUntil != nil {
		facts.KeepUntil = *s.KeepUntil
	}
	verdicts := idle.Judge(a.policyOf(s), facts, k.announced, now)
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
		if v.Reclaim && a.reclaim(s, v) {
			return
		}
	}
	if a.announce(ctx, s, verdicts, now) {
		return // what was stored was published with the checks
	}
	if news && a.stream.watched() {
		s = a.dress(s)
		a.stream.publish(session.Event{Session: &s})
	}
}

// differ reports whether checks changed by so much that watchers must know.
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

// shifted reports whether a time that may be absent changed by so much.
func shifted(x, y *time.Time, worth time.Duration) bool {
	if x == nil || y == nil {
		return x != y
	}
	return x.Sub(*y).Abs() >= worth
}

// checksOf are the findings on a session, newest.
func (w *idleWatch) checksOf(id session.ID) []session.IdleCheck {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.known[id]; k != nil {
		return k.checks
	}
	return nil
}
