// Package secure connects clients to agents that they are paired with, by mutually authenticated TLS 1.3. Each side
// knows the other by its key alone; names and certificate authorities do not count.
//
// An [Identity] is a computer's own key. [Clients] lists the clients that a [Listener] accepts. A [Dialer] expects one
// key at the other end and fails with a [KeyError] when another answers. [Pairings] and [Pair] exchange keys by a short
// code that a person carries from the agent to the client. Where a network passes only HTTPS, the same connection
// travels inside a WebSocket: whatever ends the outer TLS sees ciphertext.
package secure

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"slipway/tunnel"
	"slipway/tunnel/records"
)

// DialConfig says how to reach one agent.
type DialConfig struct {
	Identity *Identity
	Address  Address
	Key      string // fingerprint of the expected key
	// Fallback tries the WebSocket of the same port when the network blocks plain TLS. What worked is tried first from
	// then on.
	Fallback bool
	// Moved is called when the agent proves that it has changed its key, which is expected from now on. If it fails,
	// the dial does. nil: a new key is never accepted.
	Moved func(key string) error
	Proxy func(*http.Request) (*url.URL, error) // of a WebSocket; nil: http.ProxyFromEnvironment
	// Network opens connections; nil: a net.Dialer.
	Network func(ctx context.Context, network, address string) (net.Conn, error)
}

const (
	directTimeout    = 4 * time.Second  // for plain TLS where there is a fallback
	handshakeTimeout = 15 * time.Second // for each handshake
)

// Dialer opens carriers to one agent. It never asks a person, so silent makes no difference. It is safe for concurrent
// use.
type Dialer struct {
	config DialConfig

	mu  sync.Mutex // guards the following
	key string     // the expected key
	web bool       // the WebSocket worked last
}

var _ tunnel.Dialer = (*Dialer)(nil)

// NewDialer returns a Dialer. It connects to nothing yet.
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

// Dial opens a carrier, which is a [tunnel.Carrier]. Its errors are of type [tunnel.Fault]; a [KeyError] is in the
// chain when another key answered. The first read fails with a Fault of the code agent_connect_not-paired when the
// agent does not accept this client.
func (d *Dialer) Dial(ctx context.Context, _ bool) (net.Conn, error) {
	d.mu.Lock()
	key, web := d.key, d.web
	d.mu.Unlock()
	var moved string
	conn, raw, web, err := d.config.connectEither(ctx, web, protoTunnel, func(peer proven) (err error) {
		moved, err = peer.expected(key)
		return err
	})
	if err != nil {
		return nil, connectFault(ctx, d.config.Address.String(), err)
	}
	if err := d.worked(key, moved, web); err != nil {
		_ = raw.Close()
		return nil, connectFault(ctx, d.config.Address.String(), err)
	}
	peer := tunnel.Peer{Transport: "tls", Key: cmp.Or(moved, key), Address: raw.RemoteAddr().String()}
	if web {
		peer.Transport = "wss"
	}
	return tunnel.Carrier{Conn: &dialed{Conn: records.Of(conn), raw: raw}, Peer: peer}, nil
}

// connectEither connects by WebSocket if web, else by TLS. With a fallback it then tries the other, if the network may
// have blocked the first. It returns which one worked, or the first one's error.
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

// blocked reports whether the network may have caused an error.
func blocked(err error) bool {
	_, key := errors.AsType[*KeyError](err)
	_, unresolved := errors.AsType[*net.DNSError](err)
	return !key && !unresolved
}

// worked keeps which way worked and the agent's new key, unless moved is "". The handshake has proved that the peer has
// that key, and the old key's signature that it succeeds the old one.
func (d *Dialer) worked(old, moved string, web bool) error {
	if moved != "" && d.config.Moved == nil {
		return &KeyError{Expected: old, Got: moved}
	}
	if moved != "" {
		if err := d.config.Moved(moved); err != nil {
			return fmt.Errorf("secure: keep the agent's new key: %w", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.web = web
	if moved != "" && d.key == old {
		d.key = moved
	}
	return nil
}

// connect opens a connection, by WebSocket if web, and makes the handshake of keys on it. Closing raw ends it at once.
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
	conn = tls.Client(records.Below(below), clientConfig(c.Identity, protocol, check))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		_ = below.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// open opens the connection for the handshake of keys.
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
		// A proxy may end the outer TLS. What it sees inside is the handshake of keys between client and agent.
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

// DefaultPort is the default port of an agent.
const DefaultPort = 7442

// webPath is the path of the listener's WebSocket.
const webPath = "/slipway/1"

// Address is the address of a listener.
type Address struct {
	Host string
	Port int
	Web  bool   // by WebSocket
	Path string // of the WebSocket, where a proxy in front of the listener wants another
}

// ParseAddress reads "host", "host:port", "tls://host:port" or "wss://host:port/path". A wss address without a port
// means 443.
func ParseAddress(text string) (Address, error) {
	invalid := tunnel.NewFault(tunnel.CodeConnectInvalid, "The address of the agent is invalid.",
		"Use for example lab.example.org:7442, or wss://lab.example.org where only HTTPS passes.", nil)
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "://") {
		if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") { // an IPv6 address
			text = "[" + text + "]"
		}
		text = "tls://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !validHost(u.Hostname()) ||
		!webPaths.MatchString(u.Path) {
		return Address{}, invalid
	}
	a := Address{Host: u.Hostname(), Port: DefaultPort}
	path := strings.TrimSuffix(u.Path, "/")
	switch {
	case u.Scheme == "tls" && path == "":
	case u.Scheme == "wss" && path == "":
		a.Web, a.Port, a.Path = true, 443, webPath
	case u.Scheme == "wss":
		a.Web, a.Port, a.Path = true, 443, u.Path
	default:
		return Address{}, invalid
	}
	if port := u.Port(); port != "" {
		a.Port, err = strconv.Atoi(port)
		if err != nil || a.Port < 1 || a.Port > 65535 {
			return Address{}, invalid
		}
	}
	return a, nil
}

var (
	hostNames = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$`)
	webPaths  = regexp.MustCompile(`^(/[A-Za-z0-9._~/-]{0,200})?$`)
)

func validHost(name string) bool {
	if strings.Contains(name, ":") {
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	return hostNames.MatchString(name)
}

func (a Address) hostPort() string { return net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) }

// String returns the address as ParseAddress reads it.
func (a Address) String() string {
	if !a.Web {
		return strings.ReplaceAll(a.hostPort(), "%", "%25") // of a zone
	}
	return a.url().String()
}

func (a Address) url() *url.URL { return &url.URL{Scheme: "wss", Host: a.hostPort(), Path: a.Path} }

func notPaired() *tunnel.Fault {
	return tunnel.NewFault(tunnel.CodeNotPaired,
		"This computer is not paired with the agent, or its access was revoked.",
		"Run slipway agent pair on the agent's machine to get a pairing code.", ErrUnknownClient)
}

func busy() *tunnel.Fault {
	return tunnel.NewFault(tunnel.CodeUnreachable, "This computer has too many connections to the agent.",
		"Close another Slipway on this computer and try again.", errBusyClient)
}

// connectFault explains why a connection could not be made.
func connectFault(ctx context.Context, address string, err error) error {
	var already *tunnel.Fault
	var key *KeyError
	var unresolved *net.DNSError
	var notTLS tls.RecordHeaderError
	code, message, hint := tunnel.CodeUnreachable, fmt.Sprintf("The connection to %s failed.", address),
		"Check that the agent runs there and listens at this address."
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &key):
		code, message = tunnel.CodeConnectHostKey, "The agent's key is not the one that was paired."
		hint = "If the agent was set up again, pair again. Otherwise another machine may be answering."
	case errors.Is(err, context.Canceled):
		code, message, hint = tunnel.CodeConnectAuth, "Connecting was cancelled.", ""
	case errors.As(err, &unresolved):
		message, hint = "The agent's host name was not found.",
			"Check the spelling, and whether the name needs a VPN."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), ctx.Err() != nil,
		isTimeout(err):
		message = "The agent did not answer in time."
		hint = "Check that its machine is on and that this computer is in the right network or VPN."
	case errors.Is(err, syscall.ECONNREFUSED):
		message = "The machine answers, but no agent listens on that port."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		message, hint = "The machine cannot be reached.", "Check that this computer is in the right network or VPN."
	case isAlert(err), errors.As(err, &notTLS), errors.Is(err, errProtocol), errors.Is(err, errCertificate):
		code = tunnel.CodeConnectVersion
		message = "What answers there is not a Slipway agent, or its version does not match."
		hint = "Check the address and port, and upgrade the older side."
	}
	return tunnel.NewFault(code, message, hint, err)
}

// isAlert reports whether the peer refused the handshake.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
