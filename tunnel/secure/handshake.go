package secure

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// The application protocols of the port (ALPN, RFC 7301).
const (
	protoTunnel = "slipway/1"
	protoPair   = "slipway-pair/1"
	protoHTTP   = "http/1.1"
)

// What the listener says, in one byte, once it knows who is there.
const (
	welcome  = 'W'
	unpaired = 'U'
	tooMany  = 'B'
)

// KeyError says that another key answered than the one expected: the agent was set up again, or another machine is in
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
	before      []string // keys that it followed, youngest first
}

// peerOf reads the key that the peer showed. The handshake proves that the peer has it; nothing else in the certificate
// counts but the successions.
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

// expected checks the key that answered against the pinned one. moved is the pinned key's successor when that is who
// answered, or "".
func (p proven) expected(pinned string) (moved string, err error) {
	switch {
	case p.fingerprint == pinned:
		return "", nil
	case slices.Contains(p.before, pinned):
		return p.fingerprint, nil
	}
	return "", &KeyError{Expected: pinned, Got: p.fingerprint}
}

// baseConfig is what both sides have in common. Nothing is resumed, so that every connection is checked whole.
func baseConfig(identity *Identity, protocol string) *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		Certificates:                []tls.Certificate{identity.certificate},
		NextProtos:                  []string{protocol},
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true, // the tunnel chooses its frames by the path
	}
}

// clientConfig checks the peer's key by check, during the handshake.
func clientConfig(identity *Identity, protocol string, check func(proven) error) *tls.Config {
	config := baseConfig(identity, protocol)
	config.InsecureSkipVerify = true // names and authorities say nothing here; VerifyConnection pins the key
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return errProtocol
		}
		peer, err := peerOf(state)
		if err != nil {
			return err
		}
		return check(peer)
	}
	return config
}

// serverConfig demands a key of the client; which one is looked at afterwards.
func serverConfig(identity *Identity, protocol string) *tls.Config {
	config := baseConfig(identity, protocol)
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != protocol {
			return errProtocol
		}
		_, err := peerOf(state)
		return err
	}
	return config
}

// outerServerConfig is for connections that only look like the web's. The client need not have a key, for the proxy
// that may be in between has none.
func outerServerConfig(identity *Identity) *tls.Config { return baseConfig(identity, protoHTTP) }
