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
)

// ListenConfig is what a [Listener] needs. Zero limits mean the defaults.
type ListenConfig struct {
	Identity *Identity
	Clients  *Clients
	Pairings *Pairings // nil: nobody can pair
	Name     string    // what this side is called when it is paired with

	// Observe is told what happens, for a log of who came from where. It is called by many goroutines and holds its
	// connection up until it returns. Nil is nobody.
	Observe func(Event)

	Handshake  time.Duration // from the first byte until the client is known; 10 s
	MaxPending int           // connections that are being made; 128
	PerAddress int           // the same from one address; 16
	PerClient  int           // connections of one client; 16
}

func (c ListenConfig) withDefaults() ListenConfig {
	c.Handshake = cmp.Or(c.Handshake, 10*time.Second)
	c.MaxPending = cmp.Or(c.MaxPending, 128)
	c.PerAddress = cmp.Or(c.PerAddress, 16)
	c.PerClient = cmp.Or(c.PerClient, 16)
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return c
}

// EventKind says what happened at a listener.
type EventKind string

// The kinds of events.
const (
	EventConnected EventKind = "connected"  // a paired client
	EventRefused   EventKind = "refused"    // a client that is not paired, or has too many connections
	EventPaired    EventKind = "paired"     // a client, with a code
	EventWrongCode EventKind = "wrong-code" // a client tried one for an offer, and it was counted
	EventNoCode    EventKind = "no-code"    // a client tried one while there was no such offer
	EventKeyMoved  EventKind = "key-moved"  // a paired client has changed its key
)

// Event is something that happened at a listener. It holds no secret. Name is what the list calls the client, or with a
// wrong code what it calls itself.
type Event struct {
	Kind    EventKind
	Key     string
	Name    string
	Address string
	Before  string // the key before, of one that has moved
}

const (
	maxWaiting = 64 // carriers that wait to be accepted
	// What is read after the end, in time and bytes.
	lingerTime = time.Second
	maxLinger  = 64 << 10
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
	return NewListener(listener, config), nil
}

// NewListener listens on listener, which it owns from here on.
func NewListener(listener net.Listener, config ListenConfig) *Listener {
	config = config.withDefaults()
	l := &Listener{
		config: config, listener: listener,
		gate:     gate{total: config.MaxPending, perAddress: config.PerAddress},
		accepted: make(chan tunnel.Carrier, maxWaiting),
	}
	l.identity.Store(config.Identity)
	ctx, stop := context.WithCancel(context.Background())
	l.done, l.stop = ctx.Done(), stop
	l.web = newWebServer(config.Handshake,
		func(inner, raw net.Conn, leave func()) { l.serveWeb(ctx, inner, raw, leave) })
	l.working.Go(l.web.serve)
	l.working.Go(func() { l.listen(ctx) })
	return l
}

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.listener.Addr() }

// SetIdentity makes connections from now on show another key. Clients accept it if it follows the one they know, see
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

// Close stops listening and ends connections that nobody has accepted. Those that were accepted live on.
func (l *Listener) Close() error {
	l.stop()
	err := l.listener.Close()
	l.web.close()
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

// receive makes the outermost handshake and hands the connection on by what it speaks. leave gives the connection's
// place among the pending back.
func (l *Listener) receive(life context.Context, raw net.Conn, leave func()) {
	ctx, cancel := context.WithTimeout(life, l.config.Handshake)
	defer cancel()
	conn := tls.Server(raw, &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: l.choose})
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
		return outerServerConfig(identity), nil
	}
	return refusal(identity), nil
}

// refusal makes TLS answer that no protocol is common to both sides.
func refusal(identity *Identity) *tls.Config { return serverConfig(identity, protoTunnel) }

// serveWeb is what a WebSocket carries: the same handshake once more.
func (l *Listener) serveWeb(life context.Context, inner, raw net.Conn, leave func()) {
	defer leave()
	ctx, cancel := context.WithTimeout(life, l.config.Handshake)
	defer cancel()
	conn := tls.Server(inner, &tls.Config{MinVersion: tls.VersionTLS13,
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

// finish is what follows the handshake of keys.
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

// linger ends a connection so that the last bytes arrive: closing a socket with input unread may destroy what was sent
// before.
func linger(conn *tls.Conn, raw net.Conn) {
	_ = conn.CloseWrite()
	_ = raw.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, raw, maxLinger)
	_ = conn.Close()
	_ = raw.Close()
}

// observe tells what came of a connection that showed a key.
func (l *Listener) observe(peer proven, client Client, moved string, raw net.Conn, err error) {
	event := Event{Kind: EventConnected, Key: peer.fingerprint, Name: client.Name, Address: raw.RemoteAddr().String()}
	if err != nil {
		event.Kind = EventRefused
	}
	if err == nil && moved != "" {
		l.config.Observe(Event{Kind: EventKeyMoved, Key: event.Key, Name: event.Name, Address: event.Address,
			Before: moved})
	}
	l.config.Observe(event)
}

// admit hands a connection of a listed client to Accept.
func (l *Listener) admit(conn *tls.Conn, raw net.Conn, peer proven, transport string, stop func() bool) bool {
	c := &listened{Conn: conn, raw: raw, key: peer.fingerprint, clients: l.config.Clients}
	client, moved, err := l.config.Clients.admit(peer.fingerprint, peer.before, cut{c}, l.config.PerClient)
	status := byte(welcome)
	switch {
	case errors.Is(err, ErrUnknownClient):
		status = unpaired
	case err != nil:
		status = tooMany
	}
	l.observe(peer, client, moved, raw, err)
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
		Transport: transport, Key: client.Key, Name: client.Name, Address: raw.RemoteAddr().String(),
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

// gate bounds how many connections are being made, so that whoever is not paired can hold neither memory nor the places
// of those who are.
type gate struct {
	total, perAddress int

	mu      sync.Mutex // guards the following
	count   int
	byWhere map[netip.Prefix]int
}

// enter takes a place for a connection from an address. It returns how to give it back, which may be called more than
// once, or nil if there is none.
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

// neighbourhood is what one person has: an IPv4 address or 64 bits of IPv6.
func neighbourhood(address net.Addr) netip.Prefix {
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{} // not of the internet: all in one
	}
	ip := from.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
