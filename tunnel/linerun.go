package tunnel

import (
	"context"
	"net"
	"sync"
	"time"
)

// Times of a [Line].
const (
	// beatBusy and beatIdle are how long a peer may be silent before it is asked for a sign of life: while a person or
	// a transfer waits on a stream, and otherwise.
	beatBusy = time.Second
	beatIdle = 4 * time.Second
	// beatPatience is how long the answer may take until the peer is suspected.
	beatPatience = 1500 * time.Millisecond
	// probePatience is how long each of the questions after that may take.
	probePatience = time.Second
	// probes is how many of them go without an answer before the tunnel ends, and lastProbes how many where only a
	// person can bring another.
	probes     = 2
	lastProbes = 20
	// slowPaths have that many round trips of patience, if that is more.
	patienceTrips = 3
	// checkFirst is how long a check that something here made waits for the answer before it dials as well.
	checkFirst = 50 * time.Millisecond
	// A tunnel that lives for less than steady is brief; after maxBrief of them in a row the next attempt waits.
	steady   = 10 * time.Second
	maxBrief = 3
	// holdFresh is how long a tunnel that was dialled on a mere suspicion waits for the old one to answer.
	holdFresh = 150 * time.Millisecond
	// Pauses between two attempts begin and end with these, and are a tenth of the outage between: after an outage of a
	// minute the line is up within seconds.
	firstPause   = time.Second
	longestPause = 30 * time.Second
	// maxAttempts is how many attempts run at a time: the oldest for those whose network is slow, the newest for those
	// whose network has just returned.
	maxAttempts = 3
)

// Run keeps the line up until ctx ends, and returns when its tunnel is closed. It is called once.
func (l *Line) Run(ctx context.Context) error {
	l.running.Lock()
	defer l.running.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	r := &lineRun{
		line: l, config: l.config,
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

// lineRun is the state of Run. One goroutine uses it; attempts and questions have goroutines of their own, which send
// it their results.
type lineRun struct {
	line   *Line
	config LineConfig
	all    sync.WaitGroup

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
	carriers int       // that it had when it was last looked at
	received uint64    // by it, when it was last looked at
	heard    time.Time // the last time that something of the peer was seen
	since    time.Time // when it came up
}

// checks are the questions to the peer of the current tunnel.
type checks struct {
	asked    time.Time // when the newest question was asked; zero: none waits for its answer
	question int       // number of the newest question
	silent   int       // questions without an answer
	suspect  bool      // it did not answer in time
	checking bool      // it is asked because the network here may have changed
	answers  chan answered
}

// dials are the attempts to bring up another tunnel.
type dials struct {
	trouble  time.Time // when it began, which sets the pauses
	brief    int       // short-lived tunnels in a row
	attempts map[*attempt]bool
	fresh    *attempted // dialled while another is up and being checked; nil: none
	waits    error      // why a person is needed
	results  chan attempted
}

// attempt is one dial under way.
type attempt struct {
	began  time.Time
	cancel context.CancelFunc
	manual []manualTry // the requests it serves; empty: made in the background
	given  bool        // it was cancelled by the line
}

func (a *attempt) giveUp() {
	a.given = true
	a.cancel()
}

// attempted is how an attempt ended.
type attempted struct {
	*attempt
	link link
	err  error
}

// answered is how a question to a peer ended.
type answered struct {
	link   link
	number int
	err    error
}

// step waits for one thing to happen and does what follows.
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

// look asks a peer that was silent for a while for a sign of life.
func (r *lineRun) look(ctx context.Context) {
	if r.up == nil {
		return
	}
	if !r.asked.IsZero() {
		return // hear continues
	}
	if received := r.up.Stats().Received; received != r.received {
		r.received = received
		r.confirm()
		return
	}
	r.ask(ctx, r.patience(beatPatience))
}

// interval is how long the peer may be silent.
func (r *lineRun) interval() time.Duration {
	if r.line.busy() {
		return beatBusy
	}
	return beatIdle
}

// patience is how long to wait for an answer.
func (r *lineRun) patience(least time.Duration) time.Duration {
	return max(least, patienceTrips*r.up.Stats().RTT)
}

// ask asks the peer for a sign of life within a time. Only the newest question counts.
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

// hear handles the answer to a question.
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
		r.line.publish(func(s *LineStatus) { s.State, s.LastHeard = LineProbing, r.lastHeard(s.LastHeard) })
		if r.fresh != nil {
			r.hold.Reset(0)
		}
		r.tryNow()
	}
	r.ask(ctx, r.patience(probePatience))
}

// probesAllowed is how many questions without an answer end the tunnel. One that only a person can replace has as long
// as a busy machine or a bad path may need.
func (r *lineRun) probesAllowed() int {
	if r.waits != nil || r.watched() || r.byPerson && r.carriers < 2 { // a second carrier needs no person
		return lastProbes
	}
	return probes
}

// confirm notes that the peer lives.
func (r *lineRun) confirm() {
	r.heard = time.Now()
	r.beat.Reset(r.interval())
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

// stopTrying cancels every silent attempt, and closes the tunnel that one has made.
func (r *lineRun) stopTrying() {
	r.dialAt.Stop()
	r.hold.Stop()
	for a := range r.attempts {
		if len(a.manual) == 0 {
			a.giveUp()
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
	for a := range r.attempts {
		if len(a.manual) > 0 { // one person to ask is enough
			a.manual = append(a.manual, try)
			return
		}
	}
	r.stopTrying()
	r.waits = nil
	r.trouble = time.Now()
	if r.up == nil {
		r.line.publish(func(s *LineStatus) { s.State, s.NextTry = LineConnecting, time.Time{} })
	}
	r.try(ctx, &try)
}

// lose ends the use of the tunnel.
func (r *lineRun) lose(err error) {
	up := r.up
	r.config.Log.Info("a tunnel was lost", "peer", up.Peer().Name, "err", err)
	if r.brief++; time.Since(r.since) > steady {
		r.brief = 0
	}
	if r.brief == 0 {
		r.trouble = r.heard
	}
	heard := r.lastHeard(time.Time{})
	r.up, r.suspect, r.checking, r.silent, r.asked = nil, false, false, 0, time.Time{}
	r.waits = nil // the next attempt may not need one
	r.beat.Stop()
	r.line.use(nil)
	r.discard(up)
	r.line.publish(func(s *LineStatus) {
		s.State, s.Err = LineDown, err
		if heard.After(s.LastHeard) {
			s.LastHeard = heard
		}
	})
	switch {
	case r.fresh != nil:
		r.hold.Reset(0)
	case r.brief > maxBrief:
		r.plan()
	default:
		r.tryNow()
	}
}

// lastHeard is the newest sign of life.
func (r *lineRun) lastHeard(before time.Time) time.Time {
	if heard := r.up.Stats().LastHeard; heard.After(before) {
		return heard
	}
	return before
}

// attempted handles the end of an attempt.
func (r *lineRun) attempted(ctx context.Context, a attempted) {
	delete(r.attempts, a.attempt)
	for _, try := range a.manual {
		try.done <- a.err
	}
	if a.err == nil {
		r.arrived(a)
		return
	}
	if ctx.Err() != nil || a.given {
		return
	}
	switch {
	case r.config.NeedsPerson(a.err):
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
	r.line.use(t)
	r.line.publish(func(s *LineStatus) {
		s.State, s.Err, s.NextTry, s.Peer, s.LastHeard = LineConnected, nil, time.Time{}, t.Peer(), time.Now()
	})
}

// discard closes a tunnel in the background, since that may take a moment.
func (r *lineRun) discard(t link) {
	r.all.Go(func() {
		_ = t.Close() // its error no longer matters
	})
}

// end closes everything and waits for it.
func (r *lineRun) end() {
	r.stopTrying()
	r.beat.Stop()
	for a := range r.attempts {
		a.giveUp()
	}
	if r.up != nil {
		r.discard(r.up)
	}
	r.line.use(nil)
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
	l := r.line
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.publish(func(s *LineStatus) { s.State, s.NextTry = LineOff, time.Time{} })
}
