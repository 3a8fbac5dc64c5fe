package agentrpc

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// muxTunnel is a tunnel of one carrier and plain streams.
type muxTunnel struct{ *tunnel.Mux }

type muxStream struct {
	net.Conn
	class tunnel.Class
}

func (s muxStream) Class() tunnel.Class { return s.class }
func (s muxStream) CloseWrite() error   { return errors.New("a stream of a mux ends both ways") }

func (m muxTunnel) Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error) {
	conn, err := m.Mux.Open(ctx)
	if err != nil {
		return nil, err
	}
	return muxStream{conn, class}, nil
}

func (m muxTunnel) Accept() (tunnel.Stream, error) {
	conn, err := m.Mux.Accept()
	if err != nil {
		return nil, err
	}
	return muxStream{conn, 0}, nil
}

func (m muxTunnel) Peer() tunnel.Peer { return tunnel.Peer{Transport: "unix", Name: "ada"} }

// connect joins both ends of a connection over a unix socket.
func connect(t testing.TB) (near, far net.Conn) {
	t.Helper()
	near, far, err := socketPair(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

func socketPair(ctx context.Context, dir string) (near, theirs net.Conn, err error) {
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if near, err = new(net.Dialer).DialContext(ctx, "unix", listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	theirs, err = listener.Accept()
	return near, theirs, err
}

// serve answers over a fresh mux and returns its other end.
func serve(t testing.TB, h *Handler, near, far net.Conn) muxTunnel {
	t.Helper()
	return serveAs(t, h, near, far, muxTunnel{}.Peer())
}

// tunnelOf is a tunnel of one peer.
type tunnelOf struct {
	muxTunnel
	peer tunnel.Peer
}

func (t tunnelOf) Peer() tunnel.Peer { return t.peer }

// serveAs is serve for a caller who is that peer.
func serveAs(t testing.TB, h *Handler, near, far net.Conn, peer tunnel.Peer) muxTunnel {
	t.Helper()
	opener, err := tunnel.NewMux(near, tunnel.Opener)
	if err != nil {
		t.Fatal(err)
	}
	accepter, err := tunnel.NewMux(far, tunnel.Accepter)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	serving.Go(func() { h.Serve(ctx, tunnelOf{muxTunnel{accepter}, peer}) })
	t.Cleanup(func() {
		opener.Close()
		cancel()
		serving.Wait()
	})
	return muxTunnel{opener}
}

func handlerFor(agent *scripted) *Handler { return handlerOf(session.AgentOf(agent, nil)) }

func handlerOf(agent session.Agent) *Handler {
	return NewHandler(HandlerConfig{Program: "test", Resolve: func(tunnel.Peer) (session.Agent, error) {
		return agent,
			nil
	}})
}

// pair is a client and a handler for an agent.
func pair(t testing.TB, agent *scripted) (*Client, *Handler) {
	t.Helper()
	near, far := connect(t)
	h := handlerFor(agent)
	return NewClient(ClientConfig{Name: func() string { return "lab" }, Opener: serve(t, h, near, far)}), h
}

// scripted is an agent of which a test writes what it needs.
type scripted struct {
	session.Agent
	machine func(context.Context) (session.Machine, error)
	open    func(context.Context, session.ID, session.TerminalRequest) (session.Terminal, error)
	rename  func(context.Context, session.ID, string) (session.Session, error)
	launch  func(context.Context, session.LaunchRequest) (session.Session, error)
	watch   func(context.Context, session.Cursor, func(session.Event) error) error
	logs    func(context.Context, session.ID, session.LogOptions) (io.ReadCloser, error)
	dial    func(context.Context, session.ID, int) (net.Conn, error)
	attach  func(context.Context, session.ID, session.AttachRequest) (io.ReadWriteCloser, error)
}

func (s *scripted) AttachTerminal(ctx context.Context, id session.ID,
	r session.AttachRequest) (io.ReadWriteCloser, error) {
	return s.attach(ctx, id, r)
}

func (s *scripted) Machine(ctx context.Context) (session.Machine, error) { return s.machine(ctx) }

func (s *scripted) OpenTerminal(ctx context.Context, id session.ID,
	r session.TerminalRequest) (session.Terminal, error) {
	return s.open(ctx, id, r)
}

func (s *scripted) Rename(ctx context.Context, id session.ID, name string) (session.Session, error) {
	return s.rename(ctx, id, name)
}

func (s *scripted) Launch(ctx context.Context, r session.LaunchRequest) (session.Session, error) {
	return s.launch(ctx, r)
}

func (s *scripted) Watch(ctx context.Context, c session.Cursor, fn func(session.Event) error) error {
	return s.watch(ctx, c, fn)
}

func (s *scripted) Logs(ctx context.Context, id session.ID, o session.LogOptions) (io.ReadCloser, error) {
	return s.logs(ctx, id, o)
}

func (s *scripted) DialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	return s.dial(ctx, id, port)
}

// links is an opener whose tunnels a test cuts and makes.
type links struct {
	t       testing.TB
	handler *Handler

	mu      sync.Mutex // guards what follows
	up      *muxTunnel
	changed chan struct{}
	opened  int
}

func newLinks(t testing.TB, h *Handler) *links {
	l := &links{t: t, handler: h, changed: make(chan struct{})}
	l.join()
	return l
}

func (l *links) join() {
	near, far := connect(l.t)
	up := serve(l.t, l.handler, near, far)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up = &up
	close(l.changed)
	l.changed = make(chan struct{})
}

// cut ends the tunnel without a word.
func (l *links) cut() {
	l.mu.Lock()
	up := l.up
	l.up = nil
	l.mu.Unlock()
	up.Close()
}

func (l *links) Open(ctx context.Context, class tunnel.Class) (tunnel.Stream, error) {
	l.mu.Lock()
	up := l.up
	l.opened++
	l.mu.Unlock()
	if up == nil {
		return nil, &tunnel.DownError{LineStatus: tunnel.LineStatus{State: tunnel.LineDown, Since: time.Now()}}
	}
	return up.Open(ctx, class)
}

func (l *links) WaitUp(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, changed := l.up, l.changed
		l.mu.Unlock()
		if up != nil {
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
