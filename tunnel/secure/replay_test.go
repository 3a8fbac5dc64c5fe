package secure

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"
)

// TestARecordedConnectionCannotBePlayedAgain sends an agent, byte for byte, what
// a paired client has sent it.
func TestARecordedConnectionCannotBePlayedAgain(t *testing.T) {
	refused := make(chan Event, 16)
	a := startAgent(t, func(c *ListenConfig) { c.Observe = func(e Event) { refused <- e } })
	laptop := newIdentity(t)
	a.pairWith(t, laptop)
	recorded := &recorder{}
	d := a.dialer(t, laptop, func(c *DialConfig) {
		c.Network = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			recorded.Conn = conn
			return recorded, err
		}
	})
	near, far := a.connect(t, d)
	exchange(t, near, far)
	if e := <-refused; e.Kind != EventConnected {
		t.Fatalf("%+v", e)
	}
	sent := bytes.Join(recorded.written, nil)
	for name, at := range map[string]func() []byte{
		"whole":           func() []byte { return sent },
		"in one half":     func() []byte { return sent[:len(sent)/2] },
		"its second half": func() []byte { return sent[len(sent)/2:] },
		"twice":           func() []byte { return append(bytes.Clone(sent), sent...) },
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = conn.Write(at()) // it may be cut off in the middle
			_ = conn.(*net.TCPConn).CloseWrite()
			ended(t, conn)
			select {
			case e := <-refused:
				if e.Kind == EventConnected {
					t.Errorf("it was let in: %+v", e)
				}
			default:
			}
			if clients := a.clients.List(); len(clients) != 1 || clients[0].Live != 1 {
				t.Errorf("%+v", clients)
			}
		})
	}
}

// TestOldVersionsOfTLSAreRefused offers an agent what attackers of old versions
// offer.
func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	for _, version := range []uint16{tls.VersionTLS10, tls.VersionTLS11, tls.VersionTLS12} {
		for _, protocol := range []string{protoTunnel, protoHTTP} {
			conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", a.Addr().String(), &tls.Config{
				InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, NextProtos: []string{protocol},
				Certificates: []tls.Certificate{laptop.certificate},
			})
			if err == nil {
				_ = conn.Close()
				t.Errorf("%s with %s is taken", tls.VersionName(version), protocol)
			}
		}
	}
}
