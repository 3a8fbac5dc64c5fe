package resume

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"slipway/tunnel"
)

// outages is a network that goes away and comes back. Nobody is told: what is
// sent over a connection of before is lost, and it never recovers.
type outages struct {
	host *tunnel.Host

	mu    sync.Mutex // guards what follows
	up    bool
	epoch int
}

func (o *outages) fail() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = false
	o.epoch++
}

func (o *outages) mend() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.up = true
}

// Dial implements [tunnel.Dialer]. Like a kernel it tries again after 1, 3 and 7 seconds.
func (o *outages) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	for wait := time.Second; ; wait *= 2 {
		o.mu.Lock()
		up, epoch := o.up, o.epoch
		o.mu.Unlock()
		if up {
			near, far := net.Pipe()
			go o.host.Serve(tunnel.Carrier{Conn: &mortal{near, o, epoch}}) //nolint:errcheck // the near side sees it
			return tunnel.Carrier{Conn: &mortal{far, o, epoch}}, nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
	}
}

// mortal is one end of a connection that an outage ends without a word.
type mortal struct {
	net.Conn
	net    *outages
	number int
}

func (c *mortal) Write(p []byte) (int, error) {
	c.net.mu.Lock()
	lost := c.net.epoch != c.number
	c.net.mu.Unlock()
	if lost {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// world is a line over a network that can go away, to a host whose streams a test takes.
type world struct {
	*outages
	line   *tunnel.Line
	host   *Host
	opened chan tunnel.Stream
}

// pair opens a stream and returns both ends of it.
func (w *world) pair(t *testing.T) (near, far tunnel.Stream) {
	t.Helper()
	near, err := Open(t.Context(), w.line, tunnel.Interactive, keptFor)
	if err != nil {
		t.Fatal(err)
	}
	return near, <-w.opened
}

// overOutages runs a test in a bubble.
func overOutages(t *testing.T, do func(t *testing.T, w *world)) {
	// With the race detector, channels of timers that are due at a time on two
	// processors crash the runtime of Go 1.26 in a bubble.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &world{outages: &outages{host: tunnel.NewHost(tunnel.Config{}), up: true}, host: NewHost(),
			opened: make(chan tunnel.Stream, keptOfPeer)}
		w.line = tunnel.NewLine(tunnel.LineConfig{Dialer: w.outages})
		var running sync.WaitGroup
		defer time.Sleep(2 * keptFor) // until nothing waits for the line
		defer running.Wait()
		defer w.host.Close()
		defer w.outages.host.Close()
		defer cancel()
		running.Go(func() { w.serve(ctx, &running) })
		running.Go(func() { w.line.Run(ctx) }) //nolint:errcheck // ends with ctx
		if err := w.line.WaitUp(ctx); err != nil {
			t.Fatal(err)
		}
		do(t, w)
	})
}

// serve hands the streams of every tunnel to the test.
func (w *world) serve(ctx context.Context, running *sync.WaitGroup) {
	for {
		t, err := w.outages.host.Accept(ctx)
		if err != nil {
			return
		}
		running.Go(func() {
			defer t.Close()
			for {
				raw, err := t.Accept()
				if err != nil {
					return
				}
				running.Go(func() { w.host.Take(t.Peer(), raw, func(s tunnel.Stream) { w.opened <- s }) })
			}
		})
	}
}

func hear(t *testing.T, from net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Errorf("read %q, %v instead of %q", got, err, want)
	}
}

func say(t *testing.T, to net.Conn, what string) {
	t.Helper()
	if _, err := io.WriteString(to, what); err != nil {
		t.Errorf("%q was not written: %v", what, err)
	}
}

// within fails unless do ends within a time.
func within(t *testing.T, limit time.Duration, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("%s: not within %v", what, limit)
		<-done
	}
}
