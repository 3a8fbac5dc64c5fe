package secure

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/tunnel"
)

// clock is a time that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// agent is a listener with what it needs.
type agent struct {
	*Listener
	identity *Identity
	clients  *Clients
	pairings *Pairings
	clock    *clock
	path     string // of the client list
}

func newIdentity(t testing.TB) *Identity {
	t.Helper()
	i, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func startAgent(t testing.TB, change func(*ListenConfig)) *agent {
	t.Helper()
	a := &agent{identity: newIdentity(t), clock: newClock(), path: filepath.Join(t.TempDir(), "clients.json")}
	var err error
	if a.clients, err = OpenClients(a.path, a.clock.now); err != nil {
		t.Fatal(err)
	}
	a.pairings = NewPairings(a.clock.now)
	config := ListenConfig{Identity: a.identity, Clients: a.clients, Pairings: a.pairings, Name: "lab"}
	if change != nil {
		change(&config)
	}
	a.Listener, err = Listen("127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return a
}

// pairWith lists a client as if it had been paired.
func (a *agent) pairWith(t testing.TB, i *Identity) {
	t.Helper()
	if err := a.clients.Add(Client{Key: i.Fingerprint(), Name: "laptop", Owner: "ann", Role: RoleUser}); err != nil {
		t.Fatal(err)
	}
}

func (a *agent) address(web bool) Address {
	address := Address{Host: "127.0.0.1", Port: a.Addr().(*net.TCPAddr).Port, Web: web}
	if web {
		address.Path = webPath
	}
	return address
}

func (a *agent) dialer(t testing.TB, i *Identity, change func(*DialConfig)) *Dialer {
	t.Helper()
	config := DialConfig{Identity: i, Address: a.address(false), Key: a.identity.Fingerprint()}
	if change != nil {
		change(&config)
	}
	d, err := NewDialer(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// connect dials and accepts.
func (a *agent) connect(t testing.TB, d *Dialer) (net.Conn, tunnel.Carrier) {
	t.Helper()
	conn, err := d.Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	carrier, err := a.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = carrier.Close() })
	return conn, carrier
}

func codeOf(err error) string {
	var fault *tunnel.Fault
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if codeOf(err) != code {
		t.Errorf("the error is %v, not %s", err, code)
	}
}

// exchange checks that bytes go both ways.
func exchange(t *testing.T, a, b net.Conn) {
	t.Helper()
	payload := bytes.Repeat([]byte("slipway "), 20_000) // more than one record, frame or message
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		sent := make(chan error, 1)
		go func() {
			_, err := pair[0].Write(payload)
			sent <- err
		}()
		got := make([]byte, len(payload))
		if err := pair[1].SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(pair[1], got); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("received %d bytes otherwise than sent, %v", len(got), err)
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if err := pair[1].SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPairedClientsConnect(t *testing.T) {
	for _, web := range []bool{false, true} {
		t.Run(map[bool]string{false: "tls", true: "wss"}[web], func(t *testing.T) {
			a, laptop := startAgent(t, nil), newIdentity(t)
			a.pairWith(t, laptop)
			conn, carrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { c.Address = a.address(web) }))
			exchange(t, conn, carrier)
			want := map[bool]string{false: "tls", true: "wss"}[web]
			if p := carrier.Peer; p.Transport != want || p.Key != laptop.Fingerprint() || p.Name != "laptop" ||
				p.Address == "" {
				t.Errorf("the peer is %+v", p)
			}
			if client, _ := a.clients.Find(laptop.Fingerprint()); client.Live != 1 ||
				!client.Seen.Equal(a.clock.now()) {
				t.Errorf("the list says %+v", client)
			}
			if _, ok := conn.(tunnel.Carrier).Conn.(interface{ NetConn() net.Conn }).NetConn().(*net.TCPConn); !ok {
				t.Error("the socket below is not to be had")
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if _, err := carrier.Read(make([]byte, 1)); err == nil {
				t.Error("the listener's end reads on after the end")
			}
			_ = carrier.Close()
			if client, _ := a.clients.Find(laptop.Fingerprint()); client.Live != 0 {
				t.Errorf("after the end %d connections are live", client.Live)
			}
		})
	}
}

func TestATunnelGoesThroughEachTransport(t *testing.T) {
	for _, web := range []bool{false, true} {
		a, laptop := startAgent(t, nil), newIdentity(t)
		a.pairWith(t, laptop)
		conn, carrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { c.Address = a.address(web) }))
		near, err := tunnel.NewMux(conn, tunnel.Opener)
		if err != nil {
			t.Fatal(err)
		}
		defer near.Close()
		far, err := tunnel.NewMux(carrier, tunnel.Accepter)
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		s, err := near.Open(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			s, err := far.Accept()
			if err == nil {
				_, _ = io.Copy(s, s)
			}
		}()
		if _, err := s.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello" {
			t.Errorf("web %v: %q, %v", web, got, err)
		}
	}
}

func TestAnotherKeyIsNeverSilent(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	expected := newIdentity(t).Fingerprint()
	for _, web := range []bool{false, true} {
		_, err := a.dialer(t, laptop, func(c *DialConfig) {
			c.Address, c.Key, c.Fallback = a.address(web), expected, true
			c.Moved = func(string) error { t.Error("a stranger counts as moved"); return nil }
		}).Dial(soon(t), false)
		wantCode(t, err, "agent_connect_host-key")
		var key *KeyError
		if !errors.As(err, &key) || key.Expected != expected || key.Got != a.identity.Fingerprint() {
			t.Errorf("the error holds %+v", key)
		}
	}
}

func TestUnpairedClientsStayOut(t *testing.T) {
	a := startAgent(t, nil)
	conn, err := a.dialer(t, newIdentity(t), nil).Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for range 2 { // the second time as the first
		_, err = conn.Read(make([]byte, 1))
		wantCode(t, err, "agent_connect_not-paired")
	}
	if len(a.accepted) != 0 {
		t.Error("a stranger's connection was accepted")
	}
}

func TestOnlyTLS13AndOurProtocolsAreSpoken(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	good := func() *tls.Config {
		return clientConfig(laptop, protoTunnel, func(proven) error { return nil })
	}
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.2": func(c *tls.Config) {
			c.MinVersion, c.MaxVersion = tls.VersionTLS12,
				tls.VersionTLS12
		},
		"another protocol":      func(c *tls.Config) { c.NextProtos = []string{"slipway/99"} },
		"no key":                func(c *tls.Config) { c.Certificates = nil },
		"pairing without codes": func(c *tls.Config) { c.NextProtos = []string{protoPair} },
		"an ECDSA key":          func(c *tls.Config) { c.Certificates = []tls.Certificate{curveCertificate(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			config := good()
			change(config)
			conn, err := tls.Dial("tcp", a.Addr().String(), config)
			if err == nil { // a client hears of its own key's refusal only when it reads
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
				_, err = conn.Read(make([]byte, 1))
			}
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	for name, offer := range map[string][]string{"no protocol": nil, "the web's": {protoHTTP}} {
		config := good()
		config.NextProtos, config.VerifyConnection = offer, nil
		conn, err := tls.Dial("tcp", a.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte("hello\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		if answer, err := io.ReadAll(conn); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
			t.Errorf("%s is answered %q, %v", name, answer, err)
		}
		_ = conn.Close()
	}
	if len(a.accepted) != 0 {
		t.Error("a connection was accepted")
	}
}
