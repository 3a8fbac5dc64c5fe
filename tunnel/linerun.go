package tunnel

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"
)

// Times of a [Line].
const (
	beatBusy      = time.Second             // silence before a probe, while a person or a transfer waits on a stream
	beatIdle      = 4 * time.Second         // and otherwise
	beatPatience  = 1500 * time.Millisecond // for the answer, before the peer is suspected
	probePatience = time.Second             // for the answer to each probe after that
	patienceTrips = 3                       // round trips that are waited for an answer, if that is longer
	probes        = 2                       // without an answer end the tunnel
	lastProbes    = 20                      // the same, where only a person can connect again
	checkFirst    = 50 * time.Millisecond   // for the answer after a nudge, before another tunnel is dialled
	holdFresh     = 150 * time.Millisecond  // for the old tunnel to answer, before the new one replaces it

	// A tunnel that lives for less than steady is brief; after maxBrief of them in a row the next attempt waits.
	steady   = 10 * time.Second
	maxBrief = 3
	// The pause between two attempts is a tenth of the outage, within these bounds.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	attemptTime  = 20 * time.Second // for one silent attempt
	// maxAttempts run at a time: the oldest succeeds where the network is slow, the newest where it has just returned.
	maxAttempts = 3
)

// Run keeps the line up until ctx ends, and returns when its tunnel is closed. It is called once.
func (l *Line) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	r := &lineRun{
		line:   l,
		dials:  dials{trouble: time.Now(), results: make(chan attempted), attempts: map[*attempt]bool{}},
		checks: checks{answers: make(chan answered)},
		beat:   stopped(), dialAt: stopped(), hold: stopped(),
	}
	l.publish(func(s *LineStatus) { s.State = LineConnecting })
	r.dialAt.Reset(0)
	for ctx.Err() == nil {
		r.step(ctx)
	}
	cancel()
	r.end()
	return context.Cause(ctx)
}

// stopped returns a timer that does not run.
func stopped() *time.Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}

// lineRun is the state of Run. Only Run's goroutine uses it; attempts and probes send it their results.
type lineRun struct {
	line *Line
	all  sync.WaitGroup

	current
	checks
	dials

	beat   *time.Timer // when to look at the tunnel
	dialAt *time.Timer // when to try next
	hold   *time.Timer // when fresh takes over
}

// current is the tunnel that is up.
type current struct {
	up       link      // nil: none
	byPerson bool      // it was dialled for a person who could be asked
	carriers int       // when last looked at
	received uint64    // bytes, when last looked at
	heard    time.Time // when the peer last gave a sign of life
	since    time.Time // when it came up
}

// checks are the probes of the current tunnel.
type checks struct {
	asked    time.Time // when the newest probe was sent; zero: none waits for its answer
	question int       // number of the newest probe
	silent   int       // probes without an answer
	suspect  bool      // the peer did not answer in time
	checking bool      // it is probed because the network here may have changed
	answers  chan answered
}

// dials are the attempts to dial another tunnel.
type dials struct {
	trouble  time.Time // when the outage began, which sets the pauses
	brief    int       // short-lived tunnels in a row
	attempts map[*attempt]bool
	fresh    *attempted // dialled while the current one is being checked; nil: none
	waits    error      // why a person is needed
	results  chan attempted
}

// attempt is one dial under way.
type attempt struct {
	began  time.Time
	cancel context.CancelFunc
	manual []manualTry // the requests it serves; empty: made in the background
	ended  bool        // the line has cancelled it
}

func (a *attempt) end() {
	a.ended = true
	a.cancel()
}

// attempted is how an attempt ended.
type attempted struct {
	*attempt
	link link
	err  error
}

type answered struct {
	link   link
	number int
	err    error
}

func (r *lineRun) step(ctx context.Context) {
	var lost <-chan struct{}
	if r.up != nil {
		lost = r.up.Done()
	}
	select {
	case <-ctx.Done():
	case <-lost:
		r.lose(r.up.Err())
	case a := <-r.answers:
		if a.link == r.up && a.number == r.question {
			r.hear(ctx, a.err)
		}
	case <-r.beat.C:
		r.look(ctx)
	case <-r.dialAt.C:
		r.try(ctx, nil)
	case a := <-r.results:
		r.attempted(ctx, a)
	case <-r.hold.C:
		if fresh := r.fresh; fresh != nil {
			r.fresh = nil
			r.adopt(*fresh)
		}
	case <-r.line.nudges:
		r.nudged(ctx)
	case try := <-r.line.manual:
		r.reconnect(ctx, try)
	}
}

// look probes a peer that was silent for a while.
func (r *lineRun) look(ctx context.Context) {
	if r.up == nil || !r.asked.IsZero() { // hear continues
		return
	}
	if received := r.up.Stats().Received; received != r.received {
		r.received = received
		r.confirm()
		return
	}
	r.ask(ctx, r.patience(beatPatience))
}

// patience is how long to wait for an answer.
func (r *lineRun) patience(least time.Duration) time.Duration {
	return max(least, patienceTrips*r.up.Stats().RTT)
}

// ask probes the peer. Only the newest probe counts.
func (r *lineRun) ask(ctx context.Context, within time.Duration) {
	r.question++
	up, number := r.up, r.question
	r.asked = time.Now()
	r.received = up.Stats().Received
	ctx, cancel := context.WithTimeout(ctx, within)
	r.all.Go(func() {
		defer cancel()
		err := up.Probe(ctx)
		select {
		case r.answers <- answered{up, number, err}:
		case <-up.Done(): // the answer no longer matters
		}
	})
}

// hear handles the result of the newest probe.
func (r *lineRun) hear(ctx context.Context, err error) {
	r.asked = time.Time{}
	received := r.up.Stats().Received
	heard := err == nil || received != r.received && !r.checking // bytes may have been on their way before
	r.received = received
	switch {
	case heard:
		r.confirm()
		return
	case ctx.Err() != nil || expired(r.up.Done()):
		return
	case r.suspect || r.checking:
		r.silent++
	}
	if r.silent >= r.probesAllowed() {
		r.lose(ErrSilent)
		return
	}
	if !r.suspect {
		r.suspect, r.checking = true, false
		r.trouble = r.heard
		r.line.publish(func(s *LineStatus) {
			s.State = LineProbing
			s.heard(r.up)
		})
		if r.fresh != nil {
			r.hold.Reset(0)
		}
		r.tryNow()
	}
	r.ask(ctx, r.patience(probePatience))
}

// probesAllowed is how many probes without an answer end the tunnel. A tunnel that only a person can replace gets as
// long as a busy machine or a bad path may need.
func (r *lineRun) probesAllowed() int {
	if r.waits != nil || r.watched() != nil || r.byPerson && r.carriers < 2 { // a second carrier needs no person
		return lastProbes
	}
	return probes
}

// confirm handles a sign of life of the peer.
func (r *lineRun) confirm() {
	r.heard = time.Now()
	interval := beatIdle
	if r.line.attached.Load() > 0 {
		interval = beatBusy
	}
	r.beat.Reset(interval)
	if carriers := r.up.Stats().Carriers; carriers != r.carriers {
		r.carriers = carriers
		r.line.publish(func(*LineStatus) {})
	}
	if !r.suspect && !r.checking {
		return
	}
	was := r.suspect
	r.suspect, r.checking, r.silent = false, false, 0
	r.stopTrying()
	if was {
		r.line.publish(func(s *LineStatus) { s.State, s.NextTry = LineConnected, time.Time{} })
	}
}

// stopTrying cancels every silent attempt and discards the fresh tunnel.
func (r *lineRun) stopTrying() {
	r.dialAt.Stop()
	r.hold.Stop()
	for a := range r.attempts {
		if len(a.manual) == 0 {
			a.end()
		}
	}
	if r.fresh != nil {
		r.discard(r.fresh.link)
		r.fresh = nil
	}
}

// tryNow makes an attempt at once, unless one is under way or a person is needed.
func (r *lineRun) tryNow() {
	if len(r.attempts) == 0 && r.waits == nil {
		r.dialAt.Reset(0)
	}
}

// nudged checks the tunnel at once, because the network here may have changed.
func (r *lineRun) nudged(ctx context.Context) {
	switch {
	case r.waits != nil && (r.up == nil || r.suspect):
	case r.up == nil || r.suspect:
		r.trouble = time.Now() // what kept it down may be over
		r.try(ctx, nil)
	default:
		r.checking, r.silent = true, 0
		r.ask(ctx, r.patience(probePatience))
		if len(r.attempts) == 0 && r.waits == nil {
			// Mostly nothing is wrong, and the answer comes sooner than this.
			r.trouble = time.Now()
			r.dialAt.Reset(max(checkFirst, 2*r.up.Stats().RTT))
		}
	}
}

// reconnect serves a person's request.
func (r *lineRun) reconnect(ctx context.Context, try manualTry) {
	if r.up != nil && !r.suspect {
		r.nudged(ctx)
		try.done <- nil
		return
	}
	if a := r.watched(); a != nil { // one person to ask is enough
		a.manual = append(a.manual, try)
		return
	}
	r.stopTrying()
	r.waits = nil
	r.trouble = time.Now()
	if r.up == nil {
		r.line.publish(func(s *LineStatus) { s.State, s.NextTry = LineConnecting, time.Time{} })
	}
	r.try(ctx, &try)
}

// lose stops using the tunnel.
func (r *lineRun) lose(err error) {
	up := r.up
	r.line.config.Log.Info("a tunnel was lost", "peer", up.Peer().Name, "err", err)
	if r.brief++; time.Since(r.since) > steady {
		r.brief = 0
	}
	if r.brief == 0 {
		r.trouble = r.heard
	}
	r.up, r.suspect, r.checking, r.silent, r.asked = nil, false, false, 0, time.Time{}
	r.waits = nil // the next attempt may not need a person
	r.beat.Stop()
	r.line.publish(func(s *LineStatus) {
		r.line.link, s.State, s.Err = nil, LineDown, err
		s.heard(up)
	})
	r.discard(up)
	switch {
	case r.fresh != nil:
		r.hold.Reset(0)
	case r.brief > maxBrief:
		r.plan()
	default:
		r.tryNow()
	}
}

func (r *lineRun) attempted(ctx context.Context, a attempted) {
	delete(r.attempts, a.attempt)
	for _, try := range a.manual {
		try.done <- a.err
	}
	if a.err == nil {
		r.arrived(a)
		return
	}
	if ctx.Err() != nil || a.ended {
		return
	}
	switch {
	case r.line.config.NeedsPerson(a.err):
		r.waits = a.err
		r.stopTrying()
		if r.up == nil {
			r.line.publish(func(s *LineStatus) { s.State, s.Err, s.NextTry = LineQuestion, a.err, time.Time{} })
		}
	case r.up == nil:
		r.line.publish(func(s *LineStatus) { s.State, s.Err = LineDown, a.err })
		if len(a.manual) > 0 {
			r.plan()
		}
	}
}

// arrived decides what to do with a fresh tunnel.
func (r *lineRun) arrived(a attempted) {
	switch {
	case r.up == nil || r.suspect:
		r.adopt(a)
	case r.checking && r.fresh == nil:
		r.fresh = &a
		r.hold.Reset(max(0, max(holdFresh, patienceTrips*r.up.Stats().RTT)-time.Since(r.asked)))
	default: // the old one has answered meanwhile
		r.discard(a.link)
	}
}

// adopt makes a fresh tunnel the one that is used.
func (r *lineRun) adopt(a attempted) {
	if r.up != nil {
		r.discard(r.up)
	}
	t := a.link
	r.byPerson, r.carriers = len(a.manual) > 0, t.Stats().Carriers
	r.up, r.received, r.since, r.heard, r.asked = t, 0, time.Now(), time.Now(), time.Time{}
	r.suspect, r.checking, r.silent, r.waits = false, false, 0, nil
	r.stopTrying()
	r.beat.Reset(beatBusy)
	r.line.publish(func(s *LineStatus) {
		r.line.link = t
		s.State, s.Err, s.NextTry, s.Peer, s.LastHeard = LineConnected, nil, time.Time{}, t.Peer(), time.Now()
	})
}

// discard closes a tunnel in the background, since that may take a moment.
func (r *lineRun) discard(t link) { r.all.Go(func() { _ = t.Close() }) }

func (r *lineRun) end() {
	r.stopTrying()
	r.beat.Stop()
	for a := range r.attempts {
		a.end()
	}
	r.line.publish(func(*LineStatus) { r.line.link = nil })
	if r.up != nil {
		r.discard(r.up)
	}
	for len(r.attempts) > 0 {
		a := <-r.results
		delete(r.attempts, a.attempt)
		if a.link != nil {
			r.discard(a.link)
		}
		for _, try := range a.manual {
			try.done <- net.ErrClosed
		}
	}
	r.all.Wait()
	r.line.publish(func(s *LineStatus) { s.State, s.NextTry = LineOff, time.Time{} })
	close(r.line.over)
}

// try begins an attempt and plans the next.
func (r *lineRun) try(ctx context.Context, manual *manualTry) {
	if manual == nil && r.watched() != nil {
		return
	}
	r.thin()
	a := &attempt{began: time.Now()}
	d := r.line.config.Dialer
	if manual == nil {
		d = silentDialer{d}
		ctx, a.cancel = context.WithTimeout(ctx, attemptTime)
	} else {
		a.manual = append(a.manual, *manual)
		ctx, a.cancel = context.WithCancel(ctx)
		stop := context.AfterFunc(manual.ctx, a.cancel)
		cancel := a.cancel
		a.cancel = func() { stop(); cancel() }
	}
	r.attempts[a] = true
	r.all.Go(func() {
		defer a.cancel()
		t, err := r.line.config.dial(ctx, d, r.line.config.Tunnel)
		r.results <- attempted{a, t, err}
	})
	if manual == nil {
		r.plan()
	}
}

// watched returns the attempt that a person waits for, nil if there is none. During it no silent one is made.
func (r *lineRun) watched() *attempt {
	for a := range r.attempts {
		if len(a.manual) > 0 {
			return a
		}
	}
	return nil
}

// thin makes room for another attempt by ending the second oldest.
func (r *lineRun) thin() {
	byAge := slices.SortedFunc(maps.Keys(r.attempts), func(a, b *attempt) int { return a.began.Compare(b.began) })
	if len(byAge) >= maxAttempts && len(byAge[1].manual) == 0 {
		byAge[1].end()
	}
}

// plan sets when the next attempt is made.
func (r *lineRun) plan() {
	pause := min(max(time.Since(r.trouble)/10, firstPause), longestPause)
	pause -= rand.N(pause/4 + 1) // so that many do not come all at once
	r.dialAt.Reset(pause)
	if r.up == nil {
		next := time.Now().Add(pause)
		r.line.publish(func(s *LineStatus) { s.NextTry = next })
	}
}
