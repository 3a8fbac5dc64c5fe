package secure

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"slipway/tunnel/records"
)

// The application protocols of the port (ALPN, RFC 7301).
const (
	protoTunnel = "slipway/1"
	protoPair   = "slipway-pair/1"
	protoHTTP   = "http/1.1"
)

// The byte with which the listener admits or refuses a client.
const (
	welcome  = 'W'
	unpaired = 'U'
	tooMany  = 'B'
)

// KeyError means that another key answered than the expected one: the agent was set up again, or another machine is in
// its place. Only a person can tell which.
type KeyError struct {
	Expected string // fingerprint that was pinned
	Got      string // fingerprint of the key that answered, which its owner need not have proved yet
}

func (e *KeyError) Error() string {
	return fmt.Sprintf("expected the key %s, and %s answered", e.Expected, e.Got)
}

var (
	errCertificate = errors.New("secure: the peer does not show exactly one ed25519 key")
	errProtocol    = errors.New("secure: the peer speaks another protocol")
)

// proven is the key at the other end of a connection.
type proven struct {
	fingerprint string
	before      []string // keys that it replaced, youngest first
}

// peerOf reads the peer's key. The handshake proves that the peer has it. Nothing else in the certificate counts but
// the successions.
func peerOf(state tls.ConnectionState) (proven, error) {
	if len(state.PeerCertificates) != 1 {
		return proven{}, errCertificate
	}
	cert := state.PeerCertificates[0]
	if _, ok := cert.PublicKey.(ed25519.PublicKey); !ok || cert.PublicKeyAlgorithm != x509.Ed25519 {
		return proven{}, errCertificate
	}
	return proven{fingerprintSPKI(cert.RawSubjectPublicKeyInfo), predecessors(cert)}, nil
}

// expected checks the key that answered against the pinned one. moved is the key if it succeeds the pinned one, or "".
func (p proven) expected(pinned string) (moved string, err error) {
	switch {
	case p.fingerprint == pinned:
		return "", nil
	case slices.Contains(p.before, pinned):
		return p.fingerprint, nil
	}
	return "", &KeyError{Expected: pinned, Got: p.fingerprint}
}

// baseConfig has the settings of both sides. Sessions are not resumed, so that every connection is checked in full.
func baseConfig(identity *Identity, protocol string) *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		Certificates:                []tls.Certificate{identity.certificate},
		NextProtos:                  []string{protocol},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true, // the tunnel chooses its frames by the path
	}
}

// clientConfig calls check with the peer's key during the handshake.
func clientConfig(identity *Identity, protocol string, check func(proven) error) *tls.Config {
	config := baseConfig(identity, protocol)
	config.InsecureSkipVerify = true // names and authorities say nothing here; VerifyConnection pins the key
	config.VerifyConnection = verify(protocol, check)
	return config
}

// verify checks the protocol of a connection and, by check unless nil, the peer's key.
func verify(protocol string, check func(proven) error) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return errProtocol
		}
		peer, err := peerOf(state)
		if err != nil || check == nil {
			return err
		}
		return check(peer)
	}
}

// serverConfig requires a key of the client, which is checked after the handshake.
func serverConfig(identity *Identity, protocol string) *tls.Config {
	config := baseConfig(identity, protocol)
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = verify(protocol, nil)
	return config
}

// listened is the listener's end of a carrier.
type listened struct {
	*records.Conn
	raw     net.Conn // of the network, below all encryption
	key     string
	clients *Clients
	closed  atomic.Bool
}

// Close sends what is still to be sent.
func (c *listened) Close() error {
	if c.closed.Swap(true) {
		return net.ErrClosed
	}
	defer c.clients.release(c.key, cut{c})
	return c.Conn.Close()
}

// NetConn lets the tunnel set options of the socket.
func (c *listened) NetConn() net.Conn { return c.raw }

// cut closes a connection at once, without sending anything more.
type cut struct{ c *listened }

func (k cut) Close() error {
	err := k.c.raw.Close()
	_ = k.c.Close()
	return err
}

// dialed is the dialer's end of a carrier.
type dialed struct {
	*records.Conn
	raw net.Conn

	mu       sync.Mutex // guards the following, also while the first byte is awaited
	admitted bool
	refused  error
}

func (c *dialed) NetConn() net.Conn { return c.raw } // as of listened

// Read reads the listener's admission first, so that it costs no round trip.
func (c *dialed) Read(p []byte) (int, error) {
	if err := c.admission(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *dialed) admission() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admitted || c.refused != nil {
		return c.refused
	}
	var status [1]byte
	if _, err := c.Conn.Read(status[:]); err != nil {
		return err // a deadline may have passed; the byte is still to come
	}
	switch status[0] {
	case welcome:
		c.admitted = true
	case unpaired:
		c.refused = notPaired()
	case tooMany:
		c.refused = busy()
	default:
		c.refused = errProtocol
	}
	return c.refused
}
