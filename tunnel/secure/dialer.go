// Package secure connects clients to agents that they are paired with, by mutually
// authenticated TLS 1.3. Each side knows the other by its key alone; names and
// certificate authorities mean nothing.
//
// An [Identity] is a computer's own key. [Clients] is the list of those that a
// [Listener] accepts. A [Dialer] expects one key at the other end and fails with
// a [KeyError] when another answers. [Pairings] and [Pair] exchange keys by a short
// code that a person carries from the agent to the client. Where a network passes
// only HTTPS, the same connection travels inside a WebSocket: whatever ends the
// outer TLS sees ciphertext.
package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slipway/tunnel"
)

// DialConfig says how one agent is reached.
type DialConfig struct {
	Identity *Identity
	Address  Address
	Key      string // fingerprint that is expected there
	// Fallback tries the WebSocket of the same port when the network does not let
	// plain TLS through. What worked is tried first from then on.
	Fallback bool
	// Moved is told when the agent proves to have changed its key, so that the new
	// one is expected from now on. An error of it fails the dial. Nil means that a
	// new key is never accepted.
	Moved func(key string) error
	// Proxy chooses the proxy of a WebSocket, http.ProxyFromEnvironment if nil,
	// which is HTTPS_PROXY and NO_PROXY.
	Proxy func(*http.Request) (*url.URL, error)
	// Network opens connections, a net.Dialer if nil.
	Network func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	// directTimeout is how long plain TLS is tried where there is a fallback.
	directTimeout = 4 * time.Second
	// handshakeTimeout bounds each handshake, whatever the caller's context says.
	handshakeTimeout = 15 * time.Second
)

// Dialer opens carriers to one agent. It never asks anything, so silent makes no
// difference. It is safe for concurrent use.
type Dialer struct {
	config DialConfig

	mu  sync.Mutex // guards the following
	key string     // that is expected
	web bool       // the WebSocket is what works
}

var _ tunnel.Dialer = (*Dialer)(nil)

// NewDialer returns a Dialer; it connects to nothing yet.
func NewDialer(config DialConfig) (*Dialer, error) {
	if !ValidFingerprint(config.Key) {
		return nil, errors.New("secure: the expected key is not a fingerprint")
	}
	return &Dialer{config: config.withDefaults(), key: config.Key, web: config.Address.Web}, nil
}

func (c DialConfig) withDefaults() DialConfig {
	if c.Proxy == nil {
		c.Proxy = http.ProxyFromEnvironment
	}
	if c.Network == nil {
		c.Network = (&net.Dialer{KeepAlive: -1}).DialContext // the tunnel has its own heartbeat
	}
	return c
}

// Dial opens a carrier, which is a [tunnel.Carrier]. Its errors are of type [tunnel.Fault]; a [KeyError] is
// in the chain when another key answered. The first read
// fails with a Fault of the code agent_connect_not-paired when the agent does not
// accept this client.
func (d *Dialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	d.mu.Lock()
	key, web := d.key, d.web
	d.mu.Unlock()
	var moved string
	conn, raw, web, err := d.config.connectEither(ctx, web, protoTunnel, func(peer proven) (err error) {
		moved, err = peer.expected(key)
		return err
	})
	if err == nil && moved != "" {
		if err = d.move(key, moved); err != nil {
			_ = raw.Close()
		}
	}
	if err != nil {
		return nil, connectFault(ctx, d.config.Address.String(), err)
	}
	d.mu.Lock()
	d.web = web
	d.mu.Unlock()
	peer := tunnel.Peer{Transport: "tls", Key: cmp.Or(moved, key), Address: raw.RemoteAddr().String()}
	if web {
		peer.Transport = "wss"
	}
	return tunnel.Carrier{Conn: &dialed{Conn: conn, raw: raw}, Peer: peer}, nil
}

// connectEither is connect by WebSocket if web, else by TLS, and where there is a
// fallback by the other when the network may have been in the way. It returns the
// one that worked, or the first one's error.
func (c DialConfig) connectEither(ctx context.Context, web bool, protocol string,
	check func(proven) error) (conn *tls.Conn, raw net.Conn, byWeb bool, err error) {
	conn, raw, err = c.connect(ctx, web, protocol, check)
	if err == nil || !c.Fallback || c.Address.Web || ctx.Err() != nil || !blocked(err) {
		return conn, raw, web, err
	}
	if conn, raw, otherErr := c.connect(ctx, !web, protocol, check); otherErr == nil {
		return conn, raw, !web, nil
	}
	return nil, nil, web, err
}

// blocked reports whether an error may be the network's doing.
func blocked(err error) bool {
	var key *KeyError
	var unresolved *net.DNSError
	return !errors.As(err, &key) && !errors.As(err, &unresolved)
}

// move expects a new key from now on. The handshake has proved that the peer has
// it, and the old key's signature that it follows the old one.
func (d *Dialer) move(old, moved string) error {
	if d.config.Moved == nil {
		return &KeyError{Expected: old, Got: moved}
	}
	if err := d.config.Moved(moved); err != nil {
		return fmt.Errorf("secure: keep the agent's new key: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.key == old {
		d.key = moved
	}
	return nil
}

// connect opens a connection, by WebSocket if web, and makes the handshake of keys
// on it. raw is what ends it at once.
func (c DialConfig) connect(ctx context.Context, web bool, protocol string,
	check func(proven) error) (conn *tls.Conn, raw net.Conn, err error) {
	address, limit := c.Address, handshakeTimeout
	switch {
	case c.Fallback && !web:
		limit = directTimeout
	case web && !address.Web:
		address.Web, address.Path = true, webPath
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	below, raw, err := c.open(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	conn = tls.Client(below, clientConfig(c.Identity, protocol, check))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		_ = below.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// open opens what the handshake of keys goes over.
func (c DialConfig) open(ctx context.Context, address Address) (below, raw net.Conn, err error) {
	if !address.Web {
		raw, err = c.Network(ctx, "tcp", address.hostPort())
		return raw, raw, err
	}
	dialer := websocket.Dialer{
		Proxy: c.Proxy,
		NetDialContext: func(ctx context.Context, network, target string) (net.Conn, error) {
			conn, err := c.Network(ctx, network, target)
			raw = conn
			return conn, err
		},
		// The outer TLS is for the network's eyes: a proxy may end it and look
		// inside, where the handshake of keys goes on between client and agent.
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{protoHTTP},
			InsecureSkipVerify: true},
		ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
	}
	ws, response, err := dialer.DialContext(ctx, address.url().String(), nil)
	if response != nil {
		defer response.Body.Close() // gorilla has read what there is of it
	}
	if err != nil {
		if raw != nil {
			_ = raw.Close()
		}
		if response != nil {
			err = fmt.Errorf("%w: %w (HTTP %d)", errProtocol, err, response.StatusCode)
		}
		return nil, nil, err
	}
	return newWebSocket(ws), raw, nil
}
