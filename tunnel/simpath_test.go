package tunnel_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/tunnel"
)

// bottleneck is one direction of a simulated path: every connection of the path
// sends through it, byte after byte at one rate, and what was sent arrives a
// delay later. It has no queue of its own: what waits, waits before it.
type bottleneck struct {
	rate  float64 // bytes per second
	delay time.Duration

	mu   sync.Mutex // guards free, and the two above once it is used
	free time.Time
}

func (b *bottleneck) pass(n int) (sent, arrives time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(time.Duration(float64(n) / b.rate * float64(time.Second)))
	return b.free, b.free.Add(b.delay)
}

// lane is one direction of one connection.
type lane struct {
	b    *bottleneck
	wake chan struct{}

	mu     sync.Mutex // guards what follows
	pieces []piece
	count  int // bytes, ever
	closed bool
	mute   bool // what is sent never arrives
}

type piece struct {
	data []byte
	at   time.Time
}

// simConn is one end of a connection over a simulated path. As a kernel does,
// it takes bytes until a quarter of a second of them waits unsent.
type simConn struct {
	in, out *lane
	once    sync.Once
	busy    *rand.Rand // of a machine that now and then has no time to read; else nil
}

// hiccup keeps whoever reads waiting: often for a moment, rarely for long.
func (c *simConn) hiccup() {
	if c.busy == nil {
		return
	}
	switch n := c.busy.IntN(4000); {
	case n < 1:
		time.Sleep(time.Duration(c.busy.IntN(100)) * time.Millisecond)
	case n < 40:
		time.Sleep(time.Duration(c.busy.IntN(3000)) * time.Microsecond)
	}
}

func simPair(up, down *bottleneck) (near, far *simConn) {
	a, b := &lane{b: up, wake: make(chan struct{}, 1)}, &lane{b: down, wake: make(chan struct{}, 1)}
	return &simConn{in: b, out: a}, &simConn{in: a, out: b}
}

func (c *simConn) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), 1460)
		sent, arrives := c.out.b.pass(n)
		c.out.mu.Lock()
		if c.out.closed {
			c.out.mu.Unlock()
			return 0, io.ErrClosedPipe
		}
		if c.out.mute {
			c.out.mu.Unlock()
			return len(p), nil
		}
		c.out.count += n
		c.out.pieces = append(c.out.pieces, piece{slices.Clone(rest[:n]), arrives})
		c.out.mu.Unlock()
		c.out.poke()
		rest = rest[n:]
		if wait := time.Until(sent) - 250*time.Millisecond; wait > 0 {
			time.Sleep(wait)
		}
	}
	return len(p), nil
}

func (l *lane) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (c *simConn) Read(p []byte) (int, error) {
	c.hiccup()
	for {
		c.in.mu.Lock()
		wait := time.Duration(-1)
		if len(c.in.pieces) > 0 {
			first := &c.in.pieces[0]
			if wait = time.Until(first.at); wait <= 0 {
				n := copy(p, first.data)
				if first.data = first.data[n:]; len(first.data) == 0 {
					c.in.pieces = c.in.pieces[1:]
				}
				c.in.mu.Unlock()
				return n, nil
			}
		} else if c.in.closed {
			c.in.mu.Unlock()
			return 0, io.EOF
		}
		c.in.mu.Unlock()
		if wait > 0 {
			time.Sleep(wait)
		} else {
			<-c.in.wake
		}
	}
}

func (c *simConn) Close() error {
	c.once.Do(func() {
		for _, l := range []*lane{c.in, c.out} {
			l.mu.Lock()
			l.closed = true
			l.mu.Unlock()
			l.poke()
		}
	})
	return nil
}

func (c *simConn) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (c *simConn) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (c *simConn) SetDeadline(time.Time) error      { return nil }
func (c *simConn) SetReadDeadline(time.Time) error  { return nil }
func (c *simConn) SetWriteDeadline(time.Time) error { return nil }

// simPath dials carriers over a simulated path to a host.
type simPath struct {
	host     *tunnel.Host
	up, down bottleneck
	busy     bool // both machines

	mu    sync.Mutex // guards conns
	conns []*simConn // dialled
}

func (p *simPath) Dial(context.Context, bool) (net.Conn, error) {
	near, far := simPair(&p.up, &p.down)
	if p.busy {
		near.busy, far.busy = rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
	}
	p.mu.Lock()
	p.conns = append(p.conns, near)
	p.mu.Unlock()
	go func() { _ = p.host.Serve(tunnel.Carrier{Conn: far}) }()
	return near, nil
}

// mute lets nothing arrive any more that is sent on one connection from now on.
func (p *simPath) mute(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range []*lane{p.conns[n].in, p.conns[n].out} {
		l.mu.Lock()
		l.mute = true
		l.mu.Unlock()
	}
}

// answered returns how many bytes were ever sent back on one connection.
func (p *simPath) answered(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	back := p.conns[n].in
	back.mu.Lock()
	defer back.mu.Unlock()
	return back.count
}

// onPath runs a test in virtual time with a tunnel over a path of a rate in
// bytes per second each way and 40 ms of round trip.
func onPath(t *testing.T, up, down float64, c tunnel.Config, test func(t *testing.T, near, far *tunnel.Tunnel)) {
	synctest.Test(t, func(t *testing.T) {
		p := &simPath{host: tunnel.NewHost(c)}
		p.up.rate, p.up.delay = up, 20*time.Millisecond
		p.down.rate, p.down.delay = down, 20*time.Millisecond
		near, err := tunnel.Dial(t.Context(), p, c)
		if err != nil {
			t.Fatal(err)
		}
		far, err := p.host.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		test(t, near, far)
		_ = near.Close()
		<-far.Done()
		_ = p.host.Close()
	})
}

// meter counts the bytes that a stream delivers.
type meter struct {
	mu sync.Mutex
	n  int
}

func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n += len(p)
	return len(p), nil
}

func (m *meter) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// saturate sends bulk on one stream without an end and meters what arrives.
func saturate(t *testing.T, from, to *tunnel.Tunnel) *meter {
	a, b := link(t, from, to, tunnel.Bulk)
	m := &meter{}
	go func() { _, _ = io.Copy(m, b) }()
	go func() {
		for block := make([]byte, 64<<10); ; {
			if _, err := a.Write(block); err != nil {
				return
			}
		}
	}()
	return m
}

// echoTimes measures key strokes on a stream of their own.
func echoTimes(t *testing.T, from, to *tunnel.Tunnel, n int) []time.Duration {
	a, b := link(t, from, to, tunnel.Interactive)
	go func() { _, _ = io.Copy(b, b) }()
	times := make([]time.Duration, n)
	for i := range times {
		start := time.Now()
		roundTrip(t, a, "k")
		times[i] = time.Since(start)
		time.Sleep(time.Duration(5+i%13) * time.Millisecond)
	}
	slices.Sort(times)
	return times
}

func TestKeyStrokesPassBulk(t *testing.T) {
	const fast, slow = 100e6 / 8, 10e6 / 8
	for name, c := range map[string]struct {
		up, down float64
		one      bool
		streams  int
		p50, p99 float64 // milliseconds
		share    float64 // of the path that bulk must get
	}{
		"on one carrier":                  {fast, fast, true, 1, 48, 55, 0.97},
		"on two carriers":                 {fast, fast, false, 1, 48, 55, 0.97},
		"with eight bulk streams":         {fast, fast, false, 8, 48, 55, 0.97},
		"with eight on one carrier":       {fast, fast, true, 8, 48, 55, 0.97},
		"on a slow uplink":                {slow, fast, true, 1, 65, 75, 0.90},
		"on a slow uplink, two carriers":  {slow, fast, false, 1, 65, 75, 0.90},
		"on a slow uplink, eight streams": {slow, fast, false, 8, 65, 75, 0.90},
	} {
		t.Run(name, func(t *testing.T) {
			onPath(t, c.up, c.down, tunnel.Config{OneCarrier: c.one}, func(t *testing.T, near, far *tunnel.Tunnel) {
				meters := make([]*meter, c.streams)
				for i := range meters {
					meters[i] = saturate(t, near, far)
				}
				time.Sleep(5 * time.Second)
				sum := func() (all, least, most int) {
					least = 1 << 60
					for _, m := range meters {
						n := m.count()
						all, least, most = all+n, min(least, n), max(most, n)
					}
					return all, least, most
				}
				before, _, _ := sum()
				start := time.Now()
				times := echoTimes(t, near, far, 500)
				after, least, most := sum()
				share := float64(after-before) / time.Since(start).Seconds() / c.up
				p50, p99 := times[len(times)/2].Seconds()*1e3, times[len(times)*99/100].Seconds()*1e3
				t.Logf("bulk %.3f of the path, echo %.1f, %.1f ms", share, p50, p99)
				if share < c.share || p50 > c.p50 || p99 > c.p99 {
					t.Errorf("bulk %.3f of the path, echo %.1f, %.1f ms", share, p50, p99)
				}
				if float64(least) < 0.9*float64(most) {
					t.Errorf("one bulk stream got %d bytes and another %d", least, most)
				}
			})
		})
	}
}

func TestKeyStrokesPassBulkNearby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &simPath{host: tunnel.NewHost(tunnel.Config{})}
		p.up.rate, p.down.rate = 12.5e6, 12.5e6
		p.up.delay, p.down.delay = 500*time.Microsecond, 500*time.Microsecond
		near, err := tunnel.Dial(t.Context(), p, tunnel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		far, _ := p.host.Accept(t.Context())
		m := saturate(t, near, far)
		time.Sleep(3 * time.Second)
		before, start := m.count(), time.Now()
		times := echoTimes(t, near, far, 300)
		share := float64(m.count()-before) / time.Since(start).Seconds() / 12.5e6
		if p50 := times[len(times)/2]; share < 0.97 || p50 > 30*time.Millisecond {
			t.Errorf("bulk %.3f of the path, echo %v", share, p50)
		}
		_ = near.Close()
		<-far.Done()
		_ = p.host.Close()
	})
}

func TestBulkBothWaysSharesFairly(t *testing.T) {
	onPath(t, 12.5e6, 12.5e6, tunnel.Config{}, func(t *testing.T, near, far *tunnel.Tunnel) {
		up, down := saturate(t, near, far), saturate(t, far, near)
		time.Sleep(5 * time.Second)
		a, b, start := up.count(), down.count(), time.Now()
		time.Sleep(20 * time.Second)
		for name, n := range map[string]int{"up": up.count() - a, "down": down.count() - b} {
			if share := float64(n) / time.Since(start).Seconds() / 12.5e6; share < 0.93 {
				t.Errorf("%s got %.3f of the path", name, share)
			}
		}
	})
}

// TestMarksOfBulkAreAnsweredBesideKeyStrokes sees that nothing goes on the
// carrier of the key strokes, where a loss would hold them up, only because bulk
// goes on the other; and that bulk both ways is answered there, where its
// answers do not wait behind bulk.
func TestMarksOfBulkAreAnsweredBesideKeyStrokes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &simPath{host: tunnel.NewHost(tunnel.Config{})}
		p.up.rate, p.down.rate = 12.5e6, 12.5e6
		p.up.delay, p.down.delay = 20*time.Millisecond, 20*time.Millisecond
		near, err := tunnel.Dial(t.Context(), p, tunnel.Config{})
		if err != nil {
			t.Fatal(err)
		}
		far, _ := p.host.Accept(t.Context())
		saturate(t, near, far)
		time.Sleep(2 * time.Second)
		keys, bulk := p.answered(0), p.answered(1)
		time.Sleep(2 * time.Second)
		keys, bulk = p.answered(0)-keys, p.answered(1)-bulk
		if keys > 200 || bulk < 10_000 {
			t.Errorf("%d bytes were answered beside the key strokes, %d beside the bulk", keys, bulk)
		}
		saturate(t, far, near)
		time.Sleep(2 * time.Second)
		keys = p.answered(0)
		time.Sleep(2 * time.Second)
		if keys = p.answered(0) - keys; keys < 10_000 {
			t.Errorf("with bulk both ways, %d bytes were answered beside the key strokes", keys)
		}
		_ = near.Close()
		<-far.Done()
		_ = p.host.Close()
	})
}

func TestBulkFollowsThePath(t *testing.T) {
	for name, c := range map[string]struct {
		from, rate float64
		delay      time.Duration
	}{
		"that gets longer":  {12.5e6, 12.5e6, 60 * time.Millisecond},
		"that gets shorter": {6.25e6, 6.25e6, 5 * time.Millisecond},
		"that gets slower":  {12.5e6, 2e6, 20 * time.Millisecond},
		"that gets faster":  {5e6, 10e6, 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &simPath{host: tunnel.NewHost(tunnel.Config{})}
				p.up.rate, p.down.rate = c.from, c.from
				p.up.delay, p.down.delay = 20*time.Millisecond, 20*time.Millisecond
				near, err := tunnel.Dial(t.Context(), p, tunnel.Config{})
				if err != nil {
					t.Fatal(err)
				}
				far, _ := p.host.Accept(t.Context())
				m := saturate(t, near, far)
				time.Sleep(5 * time.Second)
				for _, b := range []*bottleneck{&p.up, &p.down} {
					b.mu.Lock()
					b.rate, b.delay = c.rate, c.delay
					b.mu.Unlock()
				}
				time.Sleep(18 * time.Second)
				before, start := m.count(), time.Now()
				times := echoTimes(t, near, far, 300)
				share := float64(m.count()-before) / time.Since(start).Seconds() / c.rate
				if p50 := times[len(times)/2] - 2*c.delay; share < 0.93 || p50 > 12*time.Millisecond {
					t.Errorf("bulk %.3f of the path, echo %v beyond its length", share, p50)
				}
				_ = near.Close()
				<-far.Done()
				_ = p.host.Close()
			})
		})
	}
}

func TestBulkOnBusyMachines(t *testing.T) {
	for _, one := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &simPath{host: tunnel.NewHost(tunnel.Config{}), busy: true}
			p.up.rate, p.down.rate = 12.5e6, 12.5e6
			p.up.delay, p.down.delay = 20*time.Millisecond, 20*time.Millisecond
			near, err := tunnel.Dial(t.Context(), p, tunnel.Config{OneCarrier: one})
			if err != nil {
				t.Fatal(err)
			}
			far, _ := p.host.Accept(t.Context())
			m := saturate(t, near, far)
			time.Sleep(3 * time.Second)
			least := 1.0
			for range 20 {
				before, start := m.count(), time.Now()
				time.Sleep(2 * time.Second)
				least = min(least, float64(m.count()-before)/time.Since(start).Seconds()/12.5e6)
			}
			t.Logf("%.3f of the path in the worst 2 s", least)
			if least < 0.7 {
				t.Errorf("%.3f of the path in the worst 2 s", least)
			}
			_ = near.Close()
			<-far.Done()
			_ = p.host.Close()
		})
	}
}

func TestTerminalThatFloodsIsPacedToo(t *testing.T) {
	onPath(t, 1.25e6, 1.25e6, tunnel.Config{}, func(t *testing.T, near, far *tunnel.Tunnel) {
		a, b := link(t, far, near, tunnel.Interactive)
		go func() { _, _ = io.Copy(io.Discard, b) }()
		go func() {
			for block := make([]byte, 8<<10); ; {
				if _, err := a.Write(block); err != nil {
					return
				}
			}
		}()
		time.Sleep(3 * time.Second)
		times := echoTimes(t, near, far, 200)
		if p50 := times[len(times)/2]; p50 > 120*time.Millisecond {
			t.Errorf("a key stroke beside a flooding terminal took %v", p50)
		}
	})
}

func TestSilentPeerEndsTheTunnel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &simPath{host: tunnel.NewHost(tunnel.Config{})}
		p.up.rate, p.down.rate = 1e6, 1e6
		near, err := tunnel.Dial(t.Context(), p, tunnel.Config{OneCarrier: true, Heartbeat: time.Second,
			Silence: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if near.Err() != nil {
			t.Fatal("a quiet peer was taken for a dead one")
		}
		p.down.mu.Lock()
		p.down.free = time.Now().Add(24 * time.Hour) // nothing comes any more
		p.down.mu.Unlock()
		start := time.Now()
		<-near.Done()
		if took := time.Since(start); !errors.Is(near.Err(), tunnel.ErrSilent) || took > 5*time.Second {
			t.Errorf("%v after %v", near.Err(), took)
		}
		_ = p.host.Close()
		time.Sleep(48 * time.Hour)
	})
}

func TestSilentSecondCarrierEndsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tunnel.Config{Heartbeat: time.Second, Silence: 3 * time.Second}
		p := &simPath{host: tunnel.NewHost(c)}
		p.up.rate, p.down.rate = 1e6, 1e6
		near, err := tunnel.Dial(t.Context(), p, c)
		if err != nil {
			t.Fatal(err)
		}
		far, _ := p.host.Accept(t.Context())
		time.Sleep(time.Minute)
		if near.Stats().Carriers != 2 {
			t.Fatal("a quiet second carrier was taken for a dead one")
		}
		bulk, _ := link(t, near, far, tunnel.Bulk)
		keys, echo := link(t, near, far, tunnel.Interactive)
		go func() { _, _ = io.Copy(echo, echo) }()
		p.mute(1)
		if _, err := bulk.Read(make([]byte, 1)); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("its streams read %v", err)
		}
		roundTrip(t, keys, "alive")
		time.Sleep(time.Minute)
		if near.Stats().Carriers != 2 {
			t.Error("no other second carrier was dialled")
		}
		_ = near.Close()
		<-far.Done()
		_ = p.host.Close()
	})
}
