package agentrpc

import (
	"context"
	"math/rand/v2"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/host"
	"slipway/backend/agent/simulated"
	"slipway/backend/engine"
	"slipway/backend/engine/docker"
	"slipway/backend/engine/enginetest"
	"slipway/backend/guest/payload"
	"slipway/backend/session"
	"slipway/backend/session/agenttest"
	"slipway/tunnel"
)

// far is an agent with the handler that answers for it.
type far struct {
	t       *testing.T
	agent   *agent.Agent
	handler *Handler
	host    *tunnel.Host
}

// newFar runs an agent on an engine, nil a simulated one, and answers the tunnels
// of a host.
func newFar(t *testing.T, open func(dir, instance string) (engine.Engine, error)) *far {
	t.Helper()
	a := simulated.Open(t, func(c *agent.Config) {
		c.Sessions.Limits = host.Limits{Grace: 2 * time.Second}
		if open == nil {
			return
		}
		e, err := open(filepath.Join(c.Dir, "engine"), c.Store.Instance())
		if err != nil {
			t.Fatal(err)
		}
		c.Engine = e
	})
	f := &far{t: t, agent: a, handler: handlerOf(a.Agent()), host: tunnel.NewHost(tunnel.Config{})}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.handler.ServeHost(ctx, f.host) })
	t.Cleanup(func() {
		f.host.Close()
		cancel()
		running.Wait()
	})
	return f
}

// Dial implements [tunnel.Dialer] over a unix socket.
func (f *far) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	near, theirs, err := socketPair(ctx, f.t.TempDir())
	if err != nil {
		return nil, err
	}
	peer := tunnel.Peer{Transport: "unix", Name: "ada"}
	go f.host.Serve(tunnel.Carrier{Conn: theirs, Peer: peer}) //nolint:errcheck // the near side sees it
	return tunnel.Carrier{Conn: near, Peer: tunnel.Peer{Transport: "unix", Name: "lab"}}, nil
}

// dialFunc is a function that is a [tunnel.Dialer].
type dialFunc func(ctx context.Context, silent bool) (net.Conn, error)

func (d dialFunc) Dial(ctx context.Context, silent bool) (net.Conn, error) { return d(ctx, silent) }

// tunnelTo opens one tunnel.
func tunnelTo(t *testing.T, d tunnel.Dialer) *tunnel.Tunnel {
	t.Helper()
	tun, err := tunnel.Dial(t.Context(), d, tunnel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tun.Close() })
	return tun
}

// lineTo keeps a line up.
func lineTo(t *testing.T, d tunnel.Dialer) *tunnel.Line {
	t.Helper()
	line := tunnel.NewLine(tunnel.LineConfig{Dialer: d})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { line.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	if err := line.WaitUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestAgentKeepsItsPromisesThroughATunnel(t *testing.T) {
	quick := agenttest.Options{Image: "python:3.12", Server: "httpd -p 8123"}
	run := func(name string, opts agenttest.Options, open func(t *testing.T) Opener) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agenttest.Run(t, func(t *testing.T) session.Agent {
				return NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: open(t)}).Agent()
			}, opts)
		})
	}
	run("of plain streams over a unix socket", quick, func(t *testing.T) Opener {
		f := newFar(t, nil)
		near, theirs := connect(t)
		return serve(t, f.handler, near, theirs)
	})
	run("over pipes in memory", quick, func(t *testing.T) Opener {
		f := newFar(t, nil)
		return tunnelTo(t, dialFunc(func(context.Context, bool) (net.Conn, error) {
			near, theirs := net.Pipe()
			go f.host.Serve(tunnel.Carrier{Conn: theirs}) //nolint:errcheck // the near side sees it
			return near, nil
		}))
	})
	if testing.Short() {
		return // the others take their time
	}
	run("that drips", quick, func(t *testing.T) Opener {
		f := newFar(t, nil)
		return tunnelTo(t, dialFunc(func(ctx context.Context, silent bool) (net.Conn, error) {
			c, err := f.Dial(ctx, silent)
			if err != nil {
				return nil, err
			}
			carrier := c.(tunnel.Carrier)
			carrier.Conn = &drippingConn{Conn: carrier.Conn}
			return carrier, nil
		}))
	})
	mortal := quick
	mortal.Mortal = true
	run("that is cut, stalled and out of step", mortal, func(t *testing.T) Opener {
		return lineTo(t, newShaker(t, newFar(t, nil)))
	})
	run("to an agent on Docker", agenttest.Options{Image: enginetest.ImageMinimal,
		Server: "python3 -m http.server 8123 --bind 127.0.0.1"},
		func(t *testing.T) Opener {
			host := enginetest.RequireDocker(t)
			return lineTo(t, newFar(t, func(dir, instance string) (engine.Engine, error) {
				e, err := docker.Open(docker.Config{Host: host, Dir: dir, Instance: instance, Guest: payload.Binary})
				return engine.Of(e), err
			}))
		})
}

// drippingConn gives one byte at a time, and a few now and then, so that it
// comes to an end.
type drippingConn struct {
	net.Conn
	reads int
}

func (c *drippingConn) Read(p []byte) (int, error) {
	size := 1
	if c.reads++; c.reads%5 == 0 {
		size = 61
	}
	return c.Conn.Read(p[:min(size, len(p))])
}

// shaker dials carriers that are lost at moments which a seed decides. Each
// lags behind the others by a time of its own, so that what was sent over two of
// them arrives in another order. Some go silent instead of ending.
type shaker struct {
	far   *far
	cuts  atomic.Int64
	quiet atomic.Int64

	mu    sync.Mutex // guards what follows
	rand  *rand.Rand
	dials int
}

func newShaker(t *testing.T, f *far) *shaker {
	const seed = 20260731
	s := &shaker{far: f, rand: rand.New(rand.NewPCG(seed, 1))}
	t.Cleanup(func() {
		t.Logf("%d carriers were cut and %d fell silent", s.cuts.Load(), s.quiet.Load())
		if s.cuts.Load() == 0 || s.quiet.Load() == 0 {
			t.Error("the tunnel was not shaken")
		}
	})
	return s
}

func (s *shaker) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	c, err := s.far.Dial(ctx, silent)
	if err != nil {
		return nil, err
	}
	carrier := c.(tunnel.Carrier)
	s.mu.Lock()
	s.dials++
	life, lag, hushed := time.Duration(100+s.rand.IntN(1500))*time.Millisecond,
		time.Duration(s.rand.IntN(3000))*time.Microsecond, s.dials%7 == 3
	s.mu.Unlock()
	shaken := &shakyConn{Conn: carrier.Conn, lag: lag, hushed: make(chan struct{}), closed: make(chan struct{})}
	time.AfterFunc(life, func() {
		if hushed {
			s.quiet.Add(1)
			close(shaken.hushed)
			return
		}
		s.cuts.Add(1)
		shaken.Close()
	})
	carrier.Conn = shaken
	return carrier, nil
}

// shakyConn is a connection that lags, and that may fall silent: then it takes
// what is written and gives nothing.
type shakyConn struct {
	net.Conn
	lag    time.Duration
	hushed chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (c *shakyConn) silent() bool {
	select {
	case <-c.hushed:
		return true
	default:
		return false
	}
}

func (c *shakyConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.silent() {
		<-c.closed
		return 0, net.ErrClosed
	}
	time.Sleep(c.lag)
	return n, err
}

func (c *shakyConn) Write(p []byte) (int, error) {
	if c.silent() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *shakyConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
