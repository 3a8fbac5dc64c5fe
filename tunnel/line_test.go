package tunnel

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// path is a made-up network between a line and its peer. Links are bound to the
// address that they were made from, and hang when the path is down, as TCP does.
type path struct {
	mu      sync.Mutex // guards everything below
	rtt     time.Duration
	up      bool
	changed chan struct{}
	address int
	wentAt  time.Time // when it went down last
	backAt  time.Time // and came back
	dials   []time.Time
	silents []bool
	hang    bool  // the peer accepts and says nothing
	fail    error // of every dial that reaches the peer
	mortal  time.Duration
	// carriers is how many a tunnel has; 0: one.
	carriers int
	links    []*pathLink
	closed   int
}

func newPath(rtt time.Duration) *path {
	return &path{rtt: rtt, up: true, changed: make(chan struct{})}
}

func (p *path) change(fn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fn()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Dial implements [Dialer]: it is never called, since the line's dial is replaced.
func (p *path) Dial(context.Context, bool) (net.Conn, error) {
	return nil, errors.New("the path is dialled whole")
}

// dial takes three round trips. While the path is down it tries again as a
// kernel does: after 1, 3 and 7 seconds.
func (p *path) dial(ctx context.Context, d Dialer, _ Config) (link, error) {
	_, silent := d.(silentDialer)
	p.mu.Lock()
	p.dials = append(p.dials, time.Now())
	p.silents = append(p.silents, silent)
	p.mu.Unlock()
	for wait := time.Second; ; wait *= 2 {
		p.mu.Lock()
		up, hang, rtt := p.up, p.hang, p.rtt
		p.mu.Unlock()
		if hang {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if up {
			if err := sleep(ctx, 3*rtt); err != nil {
				return nil, err
			}
			break
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil && (silent || !errors.Is(p.fail, ErrWouldAsk)) {
		return nil, p.fail
	}
	t := &pathLink{path: p, address: p.address, began: time.Now(), done: make(chan struct{}), heard: time.Now()}
	p.links = append(p.links, t)
	if p.mortal > 0 {
		time.AfterFunc(p.mortal, func() { t.end(errors.New("killed")) })
	}
	return t, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pathLink is a tunnel over a path.
type pathLink struct {
	path    *path
	address int
	began   time.Time
	done    chan struct{}

	mu       sync.Mutex // guards everything below
	received uint64
	heard    time.Time
	err      error
}

func (t *pathLink) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
		close(t.done)
	}
}

// Probe is answered by a path that is up. After an outage the bytes on the way
// are sent again only when the outage has lasted twice as long, as TCP does it.
func (t *pathLink) Probe(ctx context.Context) error {
	for {
		p := t.path
		p.mu.Lock()
		alive, rtt, changed := p.up && p.address == t.address, p.rtt, p.changed
		var stuck time.Duration
		if t.began.Before(p.wentAt) {
			stuck = max(0, time.Until(p.backAt.Add(p.backAt.Sub(p.wentAt))))
		}
		p.mu.Unlock()
		if alive && stuck == 0 {
			if err := sleep(ctx, rtt); err != nil {
				return err
			}
			t.mu.Lock()
			t.received++
			t.heard = time.Now()
			t.mu.Unlock()
			return nil
		}
		var later <-chan time.Time
		if alive {
			later = time.After(stuck)
		}
		select {
		case <-later:
		case <-changed:
		case <-t.done:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (t *pathLink) Open(_ context.Context, class Class) (Stream, error) {
	near, far := net.Pipe()
	go func() { <-t.done; far.Close() }()
	return pathStream{near, class}, nil
}

type pathStream struct {
	net.Conn
	class Class
}

func (s pathStream) Class() Class      { return s.class }
func (s pathStream) CloseWrite() error { return nil }

func (t *pathLink) Peer() Peer { return Peer{Transport: "test", Name: "lab"} }

func (t *pathLink) Stats() Stats {
	t.path.mu.Lock()
	rtt, carriers := t.path.rtt, max(1, t.path.carriers)
	t.path.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{RTT: rtt, Received: t.received, LastHeard: t.heard, Carriers: carriers, Version: 1}
}

func (t *pathLink) Done() <-chan struct{} { return t.done }

func (t *pathLink) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *pathLink) Close() error {
	t.end(net.ErrClosed)
	t.path.mu.Lock()
	t.path.closed++
	t.path.mu.Unlock()
	return nil
}

// walk is a line over a path inside a bubble of time.
type walk struct {
	*testing.T
	path *path
	line *Line
	seen []LineState
}

// onLine runs a test with a line that is up over a path.
func onLine(t *testing.T, rtt time.Duration, config func(*path, *LineConfig), test func(*walk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &walk{T: t, path: newPath(rtt)}
		c := LineConfig{Dialer: w.path, dial: w.path.dial}
		if config != nil {
			config(w.path, &c)
		}
		w.line = NewLine(c)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.line.Run(ctx) })
		running.Go(func() {
			for ctx.Err() == nil {
				status, changed := w.line.Status()
				if len(w.seen) == 0 || w.seen[len(w.seen)-1] != status.State {
					w.seen = append(w.seen, status.State)
				}
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		})
		defer func() {
			cancel()
			running.Wait()
			if len(w.path.links) != w.path.closed {
				t.Errorf("%d tunnels were made and %d closed", len(w.path.links), w.path.closed)
			}
		}()
		if w.path.fail == nil {
			w.awaitUp(time.Minute)
		}
		test(w)
	})
}

// awaitUp waits until a tunnel is up and returns how long that took.
func (w *walk) awaitUp(limit time.Duration) time.Duration {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	began := time.Now()
	if err := w.line.WaitUp(ctx); err != nil {
		status, _ := w.line.Status()
		w.Fatalf("not up after %v: %v; it is %+v", limit, err, status)
	}
	return time.Since(began)
}

// awaitState waits for a state and returns how long that took.
func (w *walk) awaitState(state LineState, limit time.Duration) time.Duration {
	w.Helper()
	began := time.Now()
	for {
		status, changed := w.line.Status()
		if status.State == state {
			return time.Since(began)
		}
		select {
		case <-changed:
		case <-time.After(limit - time.Since(began)):
			w.Fatalf("it is %+v after %v", status, limit)
		}
	}
}

func (w *walk) attach() {
	w.Helper()
	stream, err := w.line.Open(w.Context(), Interactive)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { stream.Close() })
}

// answers waits until a tunnel is in use that answers, and returns how long that
// took.
func (w *walk) answers(limit time.Duration) time.Duration {
	w.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.Context(), limit)
	defer cancel()
	for ctx.Err() == nil {
		if w.line.WaitUp(ctx) != nil {
			break
		}
		w.line.mu.Lock()
		up := w.line.link
		w.line.mu.Unlock()
		if up != nil && up.Probe(ctx) == nil {
			return time.Since(began)
		}
	}
	status, _ := w.line.Status()
	w.Fatalf("no answer after %v; it is %+v", limit, status)
	return 0
}

func (w *walk) setUp(up bool) {
	w.path.change(func() {
		w.path.up = up
		if up {
			w.path.backAt = time.Now()
		} else {
			w.path.wentAt = time.Now()
		}
	})
}

func TestLineComesBackSoonAfterAnOutage(t *testing.T) {
	for _, c := range []struct {
		name   string
		outage time.Duration
		within time.Duration // of the path's return
	}{
		{"of 3 seconds", 3 * time.Second, 1200 * time.Millisecond},
		{"of 8 seconds", 8 * time.Second, 1200 * time.Millisecond},
		{"of a minute", time.Minute, 7 * time.Second},
		{"of 10 minutes", 10 * time.Minute, 31 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			var slowest time.Duration
			for range 25 {
				onLine(t, 40*time.Millisecond, nil, func(w *walk) {
					w.attach()
					time.Sleep(15 * time.Second)
					w.setUp(false)
					time.Sleep(c.outage)
					w.setUp(true)
					slowest = max(slowest, w.answers(2*time.Minute))
				})
			}
			t.Logf("a fresh tunnel was there %v after the path at the latest", slowest)
			if slowest > c.within {
				t.Errorf("it took %v, more than %v", slowest, c.within)
			}
		})
	}
}

func TestLineNoticesADeadPeer(t *testing.T) {
	t.Run("within 5 s while somebody waits", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, nil, func(w *walk) {
			w.attach()
			time.Sleep(time.Minute)
			w.setUp(false)
			suspected := w.awaitState(LineProbing, 10*time.Second)
			lost := suspected + w.awaitState(LineDown, 10*time.Second)
			if suspected > 2600*time.Millisecond || lost > 5*time.Second {
				t.Errorf("suspected after %v, lost after %v", suspected, lost)
			}
		})
	})
	t.Run("within 10 s while nobody does", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, nil, func(w *walk) {
			time.Sleep(time.Minute)
			w.setUp(false)
			if lost := w.awaitState(LineDown, time.Minute); lost > 10*time.Second {
				t.Errorf("lost after %v", lost)
			}
		})
	})
	t.Run("and keeps a tunnel whose path was gone for 2 s", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, func(p *path, _ *LineConfig) { p.rtt = 20 * time.Millisecond }, func(w *walk) {
			w.attach()
			for range 20 {
				time.Sleep(7300 * time.Millisecond)
				w.path.change(func() { w.path.rtt = 1400 * time.Millisecond }) // the first bytes come late
				time.Sleep(2 * time.Second)
				w.path.change(func() { w.path.rtt = 20 * time.Millisecond })
			}
			synctest.Wait()
			if len(w.path.links) != 1 {
				t.Errorf("%d tunnels were made", len(w.path.links))
			}
		})
	})
	t.Run("and a path of 2 s a trip is no dead one", func(t *testing.T) {
		onLine(t, 2*time.Second, nil, func(w *walk) {
			w.attach()
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if len(w.path.links) != 1 || slices.Contains(w.seen, LineDown) {
				t.Errorf("%d tunnels were made, it was %v", len(w.path.links), w.seen)
			}
		})
	})
}

func TestLineLooksWhenNudged(t *testing.T) {
	t.Run("a changed address is left behind within half a second", func(t *testing.T) {
		var slowest time.Duration
		for i := range 20 {
			onLine(t, 40*time.Millisecond, nil, func(w *walk) {
				w.attach()
				time.Sleep(time.Minute + time.Duration(i)*53*time.Millisecond)
				w.path.change(func() { w.path.address++ })
				w.line.Nudge()
				slowest = max(slowest, w.answers(time.Minute))
			})
		}
		t.Logf("at the latest after %v", slowest)
		if slowest > 500*time.Millisecond {
			t.Errorf("it took %v", slowest)
		}
	})
	t.Run("nothing is dialled and nothing shown where all is well", func(t *testing.T) {
		onLine(t, 20*time.Millisecond, nil, func(w *walk) {
			for range 100 {
				time.Sleep(777 * time.Millisecond)
				w.line.Nudge()
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(w.path.dials) != 1 || !slices.Equal(w.seen, []LineState{LineConnecting, LineConnected}) &&
				!slices.Equal(w.seen, []LineState{LineOff, LineConnecting, LineConnected}) {
				t.Errorf("%d dials, it was %v", len(w.path.dials), w.seen)
			}
		})
	})
	t.Run("a line that is down tries at once", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, nil, func(w *walk) {
			w.setUp(false)
			time.Sleep(time.Hour)
			w.setUp(true)
			w.line.Nudge()
			if took := w.awaitUp(time.Minute); took > 200*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		})
	})
}

func TestLineSpacesItsAttempts(t *testing.T) {
	onLine(t, 10*time.Millisecond, func(p *path, _ *LineConfig) { p.fail = errors.New("refused") }, func(w *walk) {
		time.Sleep(20 * time.Minute)
		w.path.mu.Lock()
		defer w.path.mu.Unlock()
		pauses := map[time.Duration]bool{}
		for i, at := range w.path.dials[1:] {
			pause := at.Sub(w.path.dials[i])
			pauses[pause] = true
			if elapsed := w.path.dials[i].Sub(w.path.dials[0]); pause < 700*time.Millisecond ||
				pause > min(max(elapsed/10+time.Second, time.Second), 31*time.Second) {
				t.Errorf("pause %v after %v", pause, elapsed)
			}
		}
		if n := len(w.path.dials); n > 120 || n < 60 || len(pauses) < n/2 {
			t.Errorf("%d dials with %d different pauses", n, len(pauses))
		}
	})
	t.Run("also when tunnels die young", func(t *testing.T) {
		onLine(t, 10*time.Millisecond, func(p *path, _ *LineConfig) { p.mortal = 100 * time.Millisecond },
			func(w *walk) {
				time.Sleep(time.Minute)
				w.path.mu.Lock()
				defer w.path.mu.Unlock()
				if n := len(w.path.dials); n > 60 {
					t.Errorf("%d dials in a minute", n)
				}
			})
	})
	t.Run("a peer that accepts and says nothing holds nothing up", func(t *testing.T) {
		onLine(t, 10*time.Millisecond, nil, func(w *walk) {
			w.path.change(func() { w.path.hang, w.path.address = true, 1 })
			w.awaitState(LineDown, time.Minute)
			time.Sleep(time.Hour)
			w.path.change(func() { w.path.hang = false })
			if took := w.awaitUp(time.Hour); took > 31*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	})
}

func TestLineWaitsForAPerson(t *testing.T) {
	ask := func(p *path, _ *LineConfig) { p.fail = ErrWouldAsk }
	onLine(t, 40*time.Millisecond, ask, func(w *walk) {
		w.awaitState(LineQuestion, time.Minute)
		time.Sleep(time.Hour)
		w.line.Nudge()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(w.path.dials); n != 1 {
			t.Errorf("%d dials without an answer", n)
		}
		var down *DownError
		if _, err := w.line.Open(w.Context(), Control); !errors.As(err, &down) || down.State != LineQuestion ||
			!errors.Is(err, ErrWouldAsk) {
			t.Errorf("open: %v", err)
		}
		if err := w.line.Reconnect(w.Context()); err != nil {
			t.Fatal(err)
		}
		if status, _ := w.line.Status(); status.State != LineConnected || status.Peer.Name != "lab" ||
			status.Err != nil {
			t.Errorf("it is %+v", status)
		}
		if w.path.silents[1] {
			t.Error("a person's try was silent")
		}
		if err := w.line.Reconnect(w.Context()); err != nil || len(w.path.dials) != 2 {
			t.Errorf("reconnecting what is up: %v, %d dials", err, len(w.path.dials))
		}
	})
	t.Run("and keeps a tunnel that lives meanwhile", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, nil, func(w *walk) {
			w.path.change(func() { w.path.fail = ErrWouldAsk })
			w.attach()
			w.path.change(func() { w.path.rtt = 1900 * time.Millisecond }) // too late for the first question
			time.Sleep(2600 * time.Millisecond)
			w.path.change(func() { w.path.rtt = 40 * time.Millisecond })
			time.Sleep(time.Minute)
			if status, _ := w.line.Status(); status.State != LineConnected {
				t.Errorf("it is %+v", status)
			}
			w.setUp(false)
			w.awaitState(LineDown, time.Minute)
			w.setUp(true)
			w.awaitState(LineQuestion, 2*time.Minute)
		})
	})
	t.Run("two who ask at a time share a try", func(t *testing.T) {
		onLine(t, 40*time.Millisecond, ask, func(w *walk) {
			w.awaitState(LineQuestion, time.Minute)
			var asking sync.WaitGroup
			for range 2 {
				asking.Go(func() {
					if err := w.line.Reconnect(w.Context()); err != nil {
						w.Error(err)
					}
				})
			}
			asking.Wait()
			synctest.Wait()
			if n := len(w.path.dials); n != 2 {
				w.Errorf("%d dials", n)
			}
		})
	})
	t.Run("a try that fails is told", func(t *testing.T) {
		refused := errors.New("refused")
		onLine(t, 40*time.Millisecond, func(p *path, _ *LineConfig) { p.fail = refused }, func(w *walk) {
			w.awaitState(LineDown, time.Minute)
			if err := w.line.Reconnect(w.Context()); !errors.Is(err, refused) {
				t.Errorf("told %v", err)
			}
			w.setUp(false)
			ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
			defer cancel()
			if err := w.line.Reconnect(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("told %v", err)
			}
			w.path.change(func() { w.path.up, w.path.fail = true, nil })
			w.awaitUp(time.Minute)
		})
	})
}

func TestLineThatIsOffSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPath(time.Millisecond)
		line := NewLine(LineConfig{Dialer: p, dial: p.dial})
		var down *DownError
		if _, err := line.Open(t.Context(), Control); !errors.As(err, &down) || down.State != LineOff {
			t.Errorf("open before: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := line.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ran until %v", err)
		}
		cancel()
		for name, err := range map[string]error{"wait": line.WaitUp(t.Context()),
			"reconnect": line.Reconnect(t.Context())} {
			if !errors.As(err, &down) || down.State != LineOff || down.LastHeard.IsZero() {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
