package secure

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// ended waits until a connection has been ended by the other side.
func ended(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err := io.Copy(io.Discard, conn)
	if isTimeout(err) {
		t.Error("it is still open after a minute")
	}
}

func TestSlowHandshakesEndInTime(t *testing.T) {
	const limit = 2 * time.Second // the handshakes of the test itself must be done in it
	a, laptop := startAgent(t, func(c *ListenConfig) { c.Handshake = limit }), newIdentity(t)
	a.pairWith(t, laptop)
	drip := func(conn net.Conn, data []byte) {
		for _, b := range data {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(limit / 20)
		}
	}
	outer := func(t *testing.T) net.Conn {
		conn, err := tls.Dial("tcp", a.Addr().String(),
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{protoHTTP}})
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	for name, slow := range map[string]func(t *testing.T) net.Conn{
		"silence": func(t *testing.T) net.Conn {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
		"bytes that drip": func(t *testing.T) net.Conn {
			conn, err := net.Dial("tcp", a.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			go drip(conn, append([]byte{22, 3, 1, 2, 0, 1}, make([]byte, 500)...))
			return conn
		},
		"a request that drips": func(t *testing.T) net.Conn {
			conn := outer(t)
			go drip(conn, []byte("GET "+webPath+" HTTP/1.1\r\nHost: x\r\n"+strings.Repeat("X-A: b\r\n", 100)))
			return conn
		},
		"a WebSocket that says nothing": func(t *testing.T) net.Conn {
			conn := outer(t)
			_, err := conn.Write([]byte("GET " + webPath + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " +
				"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := slow(t)
			defer conn.Close()
			ended(t, conn)
		})
	}
	t.Run("a connection that is made has no such end", func(t *testing.T) {
		conn, carrier := a.connect(t, a.dialer(t, laptop, nil))
		web, webCarrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { c.Address = a.address(true) }))
		time.Sleep(limit + limit/4)
		exchange(t, conn, carrier)
		exchange(t, web, webCarrier)
	})
}

func TestOneAddressCannotTakeAllPlaces(t *testing.T) {
	a, laptop := startAgent(t, func(c *ListenConfig) { c.PerAddress = 4; c.Handshake = time.Minute }), newIdentity(t)
	a.pairWith(t, laptop)
	settled, carrier := a.connect(t, a.dialer(t, laptop, nil)) // does not count any more
	pending := func() int {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		return a.gate.count
	}
	waitFor(t, "its place is free again", func() bool { return pending() == 0 })
	var held []net.Conn
	for range 4 {
		conn, err := net.Dial("tcp", a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		held = append(held, conn)
	}
	waitFor(t, "four pending", func() bool { return pending() == 4 })
	if _, err := a.dialer(t, laptop, nil).Dial(soon(t), false); err == nil {
		t.Error("a fifth was let in")
	}
	exchange(t, settled, carrier)
	_ = held[0].Close()
	waitFor(t, "three pending", func() bool { return pending() <= 3 })
	a.connect(t, a.dialer(t, laptop, nil))
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after a minute", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestPlacesAreGivenBack(t *testing.T) {
	g := &gate{total: 3, perAddress: 2}
	at := func(text string) net.Addr {
		address, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	first, second := g.enter(at("[2001:db8::1]:1")), g.enter(at("[2001:db8::2]:1"))
	if first == nil || second == nil || g.enter(at("[2001:db8::3]:1")) != nil {
		t.Error("64 bits of IPv6 are not one address")
	}
	third := g.enter(at("10.0.0.1:1"))
	if third == nil || g.enter(at("10.0.0.2:1")) != nil {
		t.Error("the total does not hold")
	}
	for _, leave := range []func(){first, first, second, third} {
		leave()
	}
	if g.count != 0 || len(g.byWhere) != 0 {
		t.Errorf("%d are left, %v", g.count, g.byWhere)
	}
}

func TestWhatIsNoSlipwayIsAnsweredAndEnded(t *testing.T) {
	a := startAgent(t, nil)
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout: time.Minute}
	defer web.CloseIdleConnections()
	for path, want := range map[string]int{"/": 404, webPath: 404, webPath + "/../x": 404} {
		response, err := web.Get("https://" + a.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s is answered %d", path, response.StatusCode)
		}
	}
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	page := http.Header{"Origin": {"https://example.org"}}
	if _, response, err := dialer.Dial("wss://"+a.Addr().String()+webPath, page); err == nil || response == nil ||
		response.StatusCode != 403 {
		t.Errorf("a page is answered %+v, %v", response, err)
	}
	for name, send := range map[string]func(*websocket.Conn) error{
		"text": func(ws *websocket.Conn) error { return ws.WriteMessage(websocket.TextMessage, []byte("hello")) },
		"an oversized message": func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.BinaryMessage, make([]byte, maxWebMessage+1))
		},
		"no TLS": func(ws *websocket.Conn) error {
			return ws.WriteMessage(websocket.BinaryMessage, []byte("GET / HTTP/1.1\r\n\r\n"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ws, _, err := dialer.Dial("wss://"+a.Addr().String()+webPath, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.Close()
			_ = send(ws) // the end may come while it is on its way
			ended(t, ws.NetConn())
		})
	}
	waitFor(t, "no connection is pending", func() bool {
		a.gate.mu.Lock()
		defer a.gate.mu.Unlock()
		return a.gate.count == 0
	})
}

// proxy is an HTTP proxy that passes CONNECT on and ends TLS, as a company's
// does, keeping what it can read of both directions.
type proxy struct {
	address string
	mu      sync.Mutex
	read    bytes.Buffer
	asked   []string
}

func startProxy(t *testing.T) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &proxy{address: listener.Addr().String()}
	own := &tls.Config{Certificates: []tls.Certificate{curveCertificate(t)}}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn, own)
		}
	}()
	return p
}

func (p *proxy) serve(conn net.Conn, own *tls.Config) {
	defer conn.Close()
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil || request.Method != http.MethodConnect {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, request.Host)
	p.mu.Unlock()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	near := tls.Server(conn, own)
	far, err := tls.Dial("tcp", request.Host, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protoHTTP}})
	if err != nil {
		return
	}
	defer far.Close()
	go func() {
		_, _ = io.Copy(io.MultiWriter(far, p), near)
		_ = far.Close()
	}()
	_, _ = io.Copy(io.MultiWriter(near, p), far)
}

// Write keeps what passes.
func (p *proxy) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.read.Write(data)
}

func TestAProxyThatEndsTLSSeesNothing(t *testing.T) {
	a, laptop, p := startAgent(t, nil), newIdentity(t), startProxy(t)
	through := func(c *DialConfig) {
		c.Address = a.address(true)
		c.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://" + p.address) }
	}
	config := DialConfig{Identity: laptop}
	through(&config)
	paired, err := Pair(soon(t), PairConfig{Dial: config, Code: a.offer(t).Code, Name: "laptop of ann"})
	if err != nil {
		t.Fatal(err)
	}
	conn, carrier := a.connect(t, a.dialer(t, laptop, func(c *DialConfig) { through(c); c.Key = paired.Key }))
	exchange(t, conn, carrier)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) != 2 || p.asked[0] != a.Addr().String() {
		t.Errorf("the proxy was asked for %v", p.asked)
	}
	if p.read.Len() < 100_000 || bytes.Contains(p.read.Bytes(), []byte("slipway slipway")) ||
		bytes.Contains(p.read.Bytes(), []byte("laptop of ann")) {
		t.Errorf("the proxy read %d bytes and what they say", p.read.Len())
	}
}

func TestTheWebSocketIsTheWayAroundANetworkThatBlocks(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	var mu sync.Mutex
	direct, proxied := 0, 0
	p := startProxy(t)
	d := a.dialer(t, laptop, func(c *DialConfig) {
		c.Fallback = true
		c.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse("http://" + p.address) }
		c.Network = func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if address != p.address {
				direct++
				return nil, errors.New("the firewall says no")
			}
			proxied++
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	})
	for range 3 {
		conn, carrier := a.connect(t, d)
		exchange(t, conn, carrier)
		if carrier.Peer.Transport != "wss" {
			t.Errorf("it came by %s", carrier.Peer.Transport)
		}
	}
	if direct != 1 || proxied != 3 {
		t.Errorf("%d tries were direct and %d by the proxy", direct, proxied)
	}
}

func TestCloseEndsWhatIsNotAccepted(t *testing.T) {
	a, laptop := startAgent(t, nil), newIdentity(t)
	a.pairWith(t, laptop)
	kept, carrier := a.connect(t, a.dialer(t, laptop, nil))
	waiting, err := a.dialer(t, laptop, nil).Dial(soon(t), false)
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	waitFor(t, "it waits to be accepted", func() bool { return len(a.accepted) == 1 })
	idle, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accepting gives %v", err)
	}
	ended(t, waiting)
	ended(t, idle)
	exchange(t, kept, carrier)
}

func TestAddressesAreRead(t *testing.T) {
	for text, want := range map[string]Address{
		"lab":                     {Host: "lab", Port: DefaultPort},
		"lab:1":                   {Host: "lab", Port: 1},
		"tls://lab:1/":            {Host: "lab", Port: 1},
		"[::1]:7":                 {Host: "::1", Port: 7},
		"2001:db8::1":             {Host: "2001:db8::1", Port: DefaultPort},
		"wss://lab":               {Host: "lab", Port: 443, Web: true, Path: webPath},
		"wss://lab:8443/behind/x": {Host: "lab", Port: 8443, Web: true, Path: "/behind/x"},
	} {
		got, err := ParseAddress(text)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		if again, err := ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q and read %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"", "lab:0", "lab:x", "http://lab", "tls://a:b@lab", "tls://lab/x", "wss://lab?x",
		"a b", "lab:99999", "://"} {
		if got, err := ParseAddress(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	f.Add("wss://lab:8443/x")
	f.Add("[fe80::1%25eth0]:7")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseAddress(text)
		if err != nil {
			return
		}
		if again, err := ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q is %+v, written %q, read %+v, %v", text, a, a, again, err)
		}
	})
}

func TestTheFormsOfErrorsHoldNoSecret(t *testing.T) {
	a := startAgent(t, nil)
	offer := a.offer(t)
	secret := strings.ReplaceAll(offer.Code[plateDigits+1:], "-", "")
	_, err := a.pair(t, newIdentity(t), wrong(offer.Code))
	if text := fmt.Sprintf("%v %+v", err, err); strings.Contains(text, secret[:4]+"-") ||
		strings.Contains(text, secret[:7]) {
		t.Errorf("the error is %s", text)
	}
}
