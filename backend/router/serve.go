package router

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"slipway/tunnel/nonblock"
)

// The limits on what comes before a request is known.
const (
	longestHeaders = 64 << 10 // bytes
	headerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute // of a connection between requests
)

// Serve serves the connections of a listener until ctx ends or the listener is closed, cuts every request, and returns
// nil when all have ended. An error says why the listener failed.
func (r *Router) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns sync.WaitGroup
	server := &http.Server{
		Handler:           r.Handler(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		MaxHeaderBytes:    longestHeaders,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		ErrorLog:          slog.NewLogLogger(r.config.Log.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew: // before Serve returns
				conns.Add(1)
			case http.StateClosed, http.StateHijacked:
				conns.Done()
			}
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	err := server.Serve(nonblock.Listen(listener))
	if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
		err = nil
	}
	stop()
	cancel()
	_ = server.Close()
	conns.Wait()
	return err
}

// ServeConn serves the requests on one connection until it is closed or ctx ends, and closes it.
func (r *Router) ServeConn(ctx context.Context, c net.Conn) error {
	one := &single{conn: c, closed: make(chan struct{})}
	return r.Serve(ctx, one)
}

// single is a listener that accepts one connection, and ends with it.
type single struct {
	conn   net.Conn
	taken  bool
	once   sync.Once
	closed chan struct{}
}

// Accept is called by one goroutine.
func (s *single) Accept() (net.Conn, error) {
	if !s.taken {
		s.taken = true
		return &watched{Conn: s.conn, closed: s}, nil
	}
	<-s.closed
	return nil, net.ErrClosed
}

func (s *single) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// watched is a connection whose end ends its listener.
type watched struct {
	net.Conn
	closed *single
}

func (w *watched) Close() error {
	defer w.closed.Close()
	return w.Conn.Close()
}
