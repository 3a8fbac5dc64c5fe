package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway/tunnel"
	"slipway/tunnel/records"
)

// ListenConfig configures a [Listener]. A limit that is zero has the default in its comment.
type ListenConfig struct {
	Identity *Identity
	Clients  *Clients
	Pairings *Pairings // nil: nobody can pair
	Name     string    // of this agent, for clients that pair

	// Observe is called for each event, by many goroutines. The connection waits for it. nil: nobody observes.
	Observe func(Event)

	Handshake  time.Duration // from the first byte until the client is known; 10 s
	PerAddress int           // connections in their handshake from one address; 16
	PerClient  int           // connections of one client; 16
}

func (c ListenConfig) withDefaults() ListenConfig {
	c.Handshake = cmp.Or(c.Handshake, 10*time.Second)
	c.PerAddress = cmp.Or(c.PerAddress, 16)
	c.PerClient = cmp.Or(c.PerClient, 16)
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return c
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventConnected EventKind = "connected"  // a paired client
	EventRefused   EventKind = "refused"    // a client that is not paired, or has too many connections
	EventPaired    EventKind = "paired"     // a client, with a code
	EventWrongCode EventKind = "wrong-code" // a client used a wrong code for an offer, which was counted
	EventNoCode    EventKind = "no-code"    // a client used a code of no offer
	EventKeyMoved  EventKind = "key-moved"  // a paired client has changed its key
)

// Event is an event at a listener. It holds no secret.
type Event struct {
	Kind    EventKind
	Key     string
	Name    string // of the client in the list; with a wrong code as it calls itself
	Address string
	Before  string // the previous key, with EventKeyMoved
}

const (
	maxPending = 128 // connections in their handshake
	maxWaiting = 64  // carriers that wait to be accepted
	lingerTime = time.Second
	maxLinger  = 64 << 10 // bytes that are read after the end
)

// Listener accepts paired clients: by TLS, or by TLS inside a WebSocket inside TLS, on one port.
type Listener struct {
	config   ListenConfig
	identity atomic.Pointer[Identity]
	listener net.Listener
	gate     gate
	web      *webServer
	accepted chan tunnel.Carrier
	done     <-chan struct{}
	stop     context.CancelFunc // closes done
	working  sync.WaitGroup
}

// Listen listens at an address such as ":7442".
func Listen(address string, config ListenConfig) (*Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	config = config.withDefaults()
	l := &Listener{
		config: config, listener: listener,
		gate:     gate{total: maxPending, perAddress: config.PerAddress},
		accepted: make(chan tunnel.Carrier, maxWaiting),
	}
	l.identity.Store(config.Identity)
	ctx, stop := context.WithCancel(context.Background())
	l.done, l.stop = ctx.Done(), stop
	l.web = newWebServer(config.Handshake,
		func(inner, raw net.Conn, leave func()) { l.serveWeb(ctx, inner, raw, leave) })
	l.working.Go(func() { _ = l.web.server.Serve(l.web) })
	l.working.Go(func() { l.listen(ctx) })
	return l, nil
}

func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// SetIdentity changes the key that new connections show. Clients accept it if it succeeds the one they know, see
// [Identity.Rotate].
func (l *Listener) SetIdentity(identity *Identity) { l.identity.Store(identity) }

// Accept returns the next carrier of a paired client, net.ErrClosed after Close.
func (l *Listener) Accept() (tunnel.Carrier, error) {
	select {
	case carrier := <-l.accepted:
		return carrier, nil
	case <-l.done:
		return tunnel.Carrier{}, net.ErrClosed
	}
}

// Close stops listening and closes connections that were not accepted. Accepted ones stay open.
func (l *Listener) Close() error {
	l.stop()
	err := l.listener.Close()
	_ = l.web.server.Close()
	l.working.Wait()
	for {
		select {
		case carrier := <-l.accepted:
			_ = carrier.Close()
		default:
			return err
		}
	}
}

func (l *Listener) listen(ctx context.Context) {
	pause := time.Duration(0)
	for {
		conn, err := l.listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second) // out of descriptors, say
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
			continue
		}
		pause = 0
		leave := l.gate.enter(conn.RemoteAddr())
		if leave == nil {
			_ = conn.Close()
			continue
		}
		l.working.Go(func() { l.receive(ctx, conn, leave) })
	}
}

// receive makes the outermost handshake and passes the connection on by its protocol. leave ends its place among those
// in their handshake.
func (l *Listener) receive(life context.Context, raw net.Conn, leave func()) {
	ctx, cancel := context.WithTimeout(life, l.config.Handshake)
	defer cancel()
	conn := tls.Server(records.Below(raw), &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: l.choose})
	if err := conn.HandshakeContext(ctx); err != nil { // an absolute time: bytes that drip in do not lengthen it
		leave()
		_ = raw.Close()
		return
	}
	if protocol := conn.ConnectionState().NegotiatedProtocol; protocol == protoHTTP || protocol == "" {
		left := make(chan struct{})
		l.web.hand(&webConn{Conn: conn, raw: raw, leave: sync.OnceFunc(func() {
			leave()
			close(left)
		})})
		<-left // so that Close waits for it too
		return
	}
	defer leave()
	l.finish(ctx, conn, raw, "tls")
}

// choose picks the protocol by what the client offers.
func (l *Listener) choose(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	identity := l.identity.Load()
	switch {
	case slices.Contains(hello.SupportedProtos, protoTunnel):
		return serverConfig(identity, protoTunnel), nil
	case slices.Contains(hello.SupportedProtos, protoPair) && l.config.Pairings.open():
		return serverConfig(identity, protoPair), nil
	case slices.Contains(hello.SupportedProtos, protoHTTP), len(hello.SupportedProtos) == 0: // many a proxy offers none
		return baseConfig(identity, protoHTTP), nil // asks for no key, since a proxy in between has none
	}
	return refusal(identity), nil
}

// refusal makes TLS answer that the two sides have no protocol in common.
func refusal(identity *Identity) *tls.Config { return serverConfig(identity, protoTunnel) }

// serveWeb makes the same handshake again inside a WebSocket.
func (l *Listener) serveWeb(life context.Context, inner, raw net.Conn, leave func()) {
	defer leave()
	ctx, cancel := context.WithTimeout(life, l.config.Handshake)
	defer cancel()
	conn := tls.Server(records.Below(inner), &tls.Config{MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if !slices.Contains(hello.SupportedProtos, protoTunnel) &&
				!slices.Contains(hello.SupportedProtos, protoPair) {
				return refusal(l.identity.Load()), nil // no web inside the web
			}
			return l.choose(hello)
		}})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = inner.Close()
		return
	}
	l.finish(ctx, conn, raw, "wss")
}

func (l *Listener) finish(ctx context.Context, conn *tls.Conn, raw net.Conn, transport string) {
	deadline, _ := ctx.Deadline()
	_ = raw.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	peer, err := peerOf(conn.ConnectionState())
	switch {
	case err != nil:
	case conn.ConnectionState().NegotiatedProtocol == protoPair:
		l.config.Pairings.serve(conn, peer, l.identity.Load(), l.config)
	default:
		if l.admit(conn, raw, peer, transport, stop) {
			return
		}
	}
	stop()
	linger(conn, raw)
}

// linger closes a connection so that the last bytes arrive: closing a socket with unread input may discard them.
func linger(conn *tls.Conn, raw net.Conn) {
	_ = conn.CloseWrite()
	_ = raw.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, raw, maxLinger)
	_ = conn.Close()
	_ = raw.Close()
}

// admit passes a connection of a listed client to Accept. It reports false if it has refused the client.
func (l *Listener) admit(conn *tls.Conn, raw net.Conn, peer proven, transport string, stop func() bool) bool {
	c := &listened{Conn: records.Of(conn), raw: raw, key: peer.fingerprint, clients: l.config.Clients}
	client, moved, err := l.config.Clients.admit(peer.fingerprint, peer.before, cut{c}, l.config.PerClient)
	event := Event{Key: peer.fingerprint, Name: client.Name, Address: raw.RemoteAddr().String(), Before: moved}
	if err == nil && moved != "" {
		event.Kind = EventKeyMoved
		l.config.Observe(event)
	}
	status := byte(welcome)
	event.Kind, event.Before = EventConnected, ""
	switch {
	case errors.Is(err, ErrUnknownClient):
		event.Kind, status = EventRefused, unpaired
	case err != nil:
		event.Kind, status = EventRefused, tooMany
	}
	l.config.Observe(event)
	_, writeErr := conn.Write([]byte{status})
	if err != nil {
		return false
	}
	if writeErr == nil {
		writeErr = raw.SetDeadline(time.Time{})
	}
	if writeErr != nil || !stop() {
		_ = cut{c}.Close()
		return true
	}
	carrier := tunnel.Carrier{Conn: c, Peer: tunnel.Peer{
		Transport: transport, Key: client.Key, Name: client.Name, Address: event.Address,
	}}
	select {
	case l.accepted <- carrier:
		select {
		case <-l.done: // Close may have emptied the channel already
			_ = cut{c}.Close()
		default:
		}
	default:
		_ = cut{c}.Close()
	}
	return true
}

// gate bounds how many connections are in their handshake, so that clients that are not paired can use up neither the
// memory nor the places of those that are.
type gate struct {
	total, perAddress int

	mu      sync.Mutex // guards the following
	count   int
	byWhere map[netip.Prefix]int
}

// enter admits a connection from an address, until leave is called, which may be done more than once. leave is nil if
// there are too many.
func (g *gate) enter(address net.Addr) (leave func()) {
	where := neighbourhood(address)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= g.total || g.byWhere[where] >= g.perAddress {
		return nil
	}
	if g.byWhere == nil {
		g.byWhere = map[netip.Prefix]int{}
	}
	g.count++
	g.byWhere[where]++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.count--
		if g.byWhere[where]--; g.byWhere[where] == 0 {
			delete(g.byWhere, where)
		}
	})
}

// neighbourhood is what one person may have: an IPv4 address or 64 bits of IPv6. All other addresses are one.
func neighbourhood(address net.Addr) netip.Prefix {
	from, _ := netip.ParseAddrPort(address.String())
	ip, bits := from.Addr().Unmap().WithZone(""), 64
	if ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits) // zero if ip is
	return prefix
}
