package router

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"slipway/backend/session"
)

// Dial opens a connection to a TCP port of a replica. The connection must support deadlines. An error means that no
// byte reached the replica.
type Dial func(ctx context.Context, replica session.ID, port int) (net.Conn, error)

// Config is what a router needs. Dial is required. The functions are called from the goroutines of requests, without a
// lock held, and must not block.
type Config struct {
	Dial    Dial
	Account func(Record)         // called once for each request, at its end
	Wake    func(service string) // called for each request that begins to wait for a ready replica
	// Refused reports that no connection to a replica could be opened. The replica gets no requests until the next Set.
	Refused func(service string, replica session.ID)
	// Named reports whether a name or address of a Host header, without its port, is accepted besides those of
	// loopback. nil: none is.
	Named func(host string) bool
	Log   *slog.Logger
}

// Router is safe for use by several goroutines.
type Router struct {
	config  Config
	writers sync.Pool // of *bufio.Writer
	buffers sync.Pool // of *[]byte

	mu    sync.Mutex // guards table, and all state and service values
	table table
}

// New returns a router without services.
func New(config Config) *Router {
	if config.Account == nil {
		config.Account = func(Record) {}
	}
	if config.Wake == nil {
		config.Wake = func(string) {}
	}
	if config.Refused == nil {
		config.Refused = func(string, session.ID) {}
	}
	if config.Named == nil {
		config.Named = func(string) bool { return false }
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	return &Router{
		config:  config,
		writers: sync.Pool{New: func() any { return bufio.NewWriter(io.Discard) }},
		buffers: sync.Pool{New: func() any { b := make([]byte, 8<<10); return &b }},
	}
}

// Set replaces the services. Requests under way continue. Those that wait are sent to replicas that became ready, in
// the order in which they came, and refused if their service or token is gone.
func (r *Router) Set(services []Service) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.table.replace(services, time.Now())
}

// Traffic returns the traffic of a service. That of an unknown one is empty.
func (r *Router) Traffic(service string) Traffic {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.table.named(service)
	if s == nil {
		return Traffic{}
	}
	return s.traffic(time.Now())
}

// Handler returns the handler of requests. [Router.Serve] adds the limits on their headers.
func (r *Router) Handler() http.Handler { return http.HandlerFunc(r.handle) }
