// Package lend lends this computer's connection to the internet to a build on another machine: an HTTP proxy for the
// connections of its steps. Somebody else's code runs in the steps, so they reach nothing of this computer.
package lend

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

const (
	waiting  = 4   // connections that are asked for at any time
	mostOpen = 128 // connections at a time

	headWithin = time.Minute     // for the header of a request
	idleFor    = 5 * time.Minute // that a connection without requests stays open
)

// Dial connects to an address on the internet, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Config says how a connection is lent.
type Config struct {
	Token string // the password that each request must have
	Dial  Dial   // nil: [Outward]
	// Via returns the proxy that this computer uses for a request, nil for none; nil: [http.ProxyFromEnvironment].
	Via func(*http.Request) (*url.URL, error)
}

// Serve answers the requests of the connections that next returns, one at a time for each of several concurrent calls.
// It ends when ctx does, or with the first error of next, and closes all connections.
func Serve(ctx context.Context, config Config, next func(context.Context) (net.Conn, error)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := newProxy(ctx, config)
	defer p.direct.CloseIdleConnections()
	defer p.onward.CloseIdleConnections()
	silent := log.New(io.Discard, "", 0) // what breaks is the business of the build, whose steps say so
	server := &http.Server{Handler: p, ReadHeaderTimeout: headWithin, IdleTimeout: idleFor, ErrorLog: silent}
	arrivals := &arrivals{ctx: func() context.Context { return ctx }, conns: make(chan net.Conn)}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(arrivals) })
	open := make(chan struct{}, mostOpen)
	for range waiting {
		running.Go(func() { stop(arrivals.take(next, open)) })
	}
	<-ctx.Done()
	_ = server.Close()
	running.Wait()
	p.tunnels.Wait()
	return context.Cause(ctx)
}

// arrivals is a listener of connections that somebody else accepts.
type arrivals struct {
	ctx   func() context.Context
	conns chan net.Conn
}

// take passes connections on until next fails.
func (a *arrivals) take(next func(context.Context) (net.Conn, error), open chan struct{}) error {
	ctx := a.ctx()
	for {
		select {
		case open <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		conn, err := next(ctx)
		if err != nil {
			return err
		}
		counted := &counted{Conn: conn, closed: sync.OnceFunc(func() { <-open })}
		select {
		case a.conns <- counted:
		case <-ctx.Done():
			_ = counted.Close()
			return ctx.Err()
		}
	}
}

func (a *arrivals) Accept() (net.Conn, error) {
	select {
	case conn := <-a.conns:
		return conn, nil
	case <-a.ctx().Done():
		return nil, net.ErrClosed
	}
}

func (a *arrivals) Close() error   { return nil }
func (a *arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// counted is a connection that says when it is closed.
type counted struct {
	net.Conn
	closed func()
}

func (c *counted) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func (c *counted) CloseWrite() error { return closeWrite(c.Conn) }

// proxy is the HTTP proxy.
type proxy struct {
	life    func() context.Context
	config  Config
	direct  *http.Transport
	onward  *http.Transport // to the proxy of this computer
	plain   *httputil.ReverseProxy
	tunnels sync.WaitGroup
}

func newProxy(life context.Context, config Config) *proxy {
	if config.Dial == nil {
		config.Dial = Outward
	}
	if config.Via == nil {
		config.Via = http.ProxyFromEnvironment
	}
	p := &proxy{life: func() context.Context { return life }, config: config,
		direct: &http.Transport{DialContext: config.Dial, DisableCompression: true},
		onward: &http.Transport{Proxy: config.Via, DisableCompression: true}}
	// Without a rewriting of headers: the proxy removes those that are meant for it alone.
	p.plain = &httputil.ReverseProxy{Transport: p, Rewrite: func(*httputil.ProxyRequest) {},
		ErrorLog:     log.New(io.Discard, "", 0),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, err) }}
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	switch {
	case subtle.ConstantTimeCompare([]byte(password), []byte(p.config.Token)) != 1:
		w.Header().Set("Proxy-Authenticate", `Basic realm="slipway"`)
		w.Header().Set("Connection", "close")
		http.Error(w, "This proxy is for the steps of one build.", http.StatusProxyAuthRequired)
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.plain.ServeHTTP(w, r)
	default:
		http.Error(w, "This is a proxy: it needs the whole address of what is asked for.", http.StatusBadRequest)
	}
}

// refuse answers a request whose address was not reached.
func refuse(w http.ResponseWriter, err error) {
	status, text := http.StatusBadGateway, "The computer that lends its connection does not reach it: "+err.Error()
	if inside, ok := errors.AsType[*insideError](err); ok {
		status, text = http.StatusForbidden, inside.Error()
	}
	http.Error(w, text, status)
}

// RoundTrip makes a plain request, by the proxy of this computer if it has one.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	via, err := p.via(r)
	switch {
	case err != nil:
		return nil, err
	case via != nil:
		return p.onward.RoundTrip(r)
	}
	return p.direct.RoundTrip(r)
}

// via returns the proxy of this computer for a request, which is not one to this computer.
func (p *proxy) via(r *http.Request) (*url.URL, error) {
	via, err := p.config.Via(r)
	if via != nil {
		err = cmp.Or(err, outsideName(r.URL.Hostname()))
	}
	return via, err
}
