package secure

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"slipway/tunnel"
)

// hosted makes tunnels of what the agent accepts, and echoes their streams.
func (a *agent) hosted(t *testing.T) *tunnel.Host {
	t.Helper()
	host := tunnel.NewHost(tunnel.Config{})
	t.Cleanup(func() { _ = host.Close() })
	go func() {
		for {
			carrier, err := a.Accept()
			if err != nil {
				return
			}
			go func() { _ = host.Serve(carrier) }()
		}
	}()
	go func() {
		for {
			far, err := host.Accept(t.Context())
			if err != nil {
				return
			}
			go func() {
				for {
					stream, err := far.Accept()
					if err != nil {
						return
					}
					go func() {
						_, _ = io.Copy(stream, stream)
						_ = stream.CloseWrite()
					}()
				}
			}()
		}
	}()
	return host
}

func TestATunnelHasTwoCarriersOfTheSameTransport(t *testing.T) {
	for name, web := range map[string]bool{"tls": false, "wss": true} {
		t.Run(name, func(t *testing.T) {
			a, laptop := startAgent(t, nil), newIdentity(t)
			a.pairWith(t, laptop)
			a.hosted(t)
			near, err := tunnel.Dial(soon(t), a.dialer(t, laptop, func(c *DialConfig) { c.Address = a.address(web) }),
				tunnel.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer near.Close()
			if p := near.Peer(); p.Transport != name || p.Key != a.identity.Fingerprint() {
				t.Errorf("the peer is %+v", p)
			}
			waitFor(t, "a second carrier", func() bool { return near.Stats().Carriers == 2 })
			if client, _ := a.clients.Find(laptop.Fingerprint()); client.Live != 2 {
				t.Errorf("the list says %+v", client)
			}
			for _, class := range []tunnel.Class{tunnel.Control, tunnel.Interactive, tunnel.Bulk} {
				stream, err := near.Open(soon(t), class)
				if err != nil {
					t.Fatal(err)
				}
				payload := bytes.Repeat([]byte("slipway "), 100_000)
				go func() {
					_, _ = stream.Write(payload)
					_ = stream.CloseWrite()
				}()
				_ = stream.SetReadDeadline(time.Now().Add(time.Minute))
				if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, payload) {
					t.Errorf("%v: %d bytes came back, %v", class, len(got), err)
				}
				_ = stream.Close()
			}
			if err := a.clients.Revoke(laptop.Fingerprint()); err != nil {
				t.Fatal(err)
			}
			select {
			case <-near.Done():
			case <-time.After(time.Minute):
				t.Error("the tunnel of a revoked client lives on")
			}
		})
	}
}

func TestATunnelOfAnUnpairedClientSaysSo(t *testing.T) {
	a := startAgent(t, nil)
	a.hosted(t)
	for range 20 { // whichever side is quicker
		_, err := tunnel.Dial(soon(t), a.dialer(t, newIdentity(t), nil), tunnel.Config{})
		wantCode(t, err, "agent_connect_not-paired")
		if !errors.Is(err, ErrUnknownClient) {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestAnotherClientCannotJoinATunnel(t *testing.T) {
	a, laptop, other := startAgent(t, nil), newIdentity(t), newIdentity(t)
	a.pairWith(t, laptop)
	a.pairWith(t, other)
	a.hosted(t)
	mixed := &mixedDialer{first: a.dialer(t, laptop, nil), then: a.dialer(t, other, nil),
		tried: make(chan struct{}, 16)}
	near, err := tunnel.Dial(soon(t), mixed, tunnel.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	<-mixed.tried
	waitFor(t, "the other's connection is gone", func() bool {
		client, _ := a.clients.Find(other.Fingerprint())
		return !client.Seen.IsZero() && client.Live == 0
	})
	if n := near.Stats().Carriers; n != 1 {
		t.Errorf("the tunnel has %d carriers", n)
	}
}

// mixedDialer dials as one client first and as another from then on.
type mixedDialer struct {
	first, then *Dialer
	tried       chan struct{}
}

var _ tunnel.Dialer = (*mixedDialer)(nil)

func (d *mixedDialer) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	if !silent {
		return d.first.Dial(ctx, silent)
	}
	defer func() { d.tried <- struct{}{} }()
	return d.then.Dial(ctx, silent)
}
