package lend

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"testing"
)

const token = "TESTTESTTESTTESTTESTTESTTE"

// steps lends a connection to a build: the listener that its steps connect to is the agent's.
func steps(t *testing.T, config Config) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if config.Via == nil {
		config.Via = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	config.Token = token
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- Serve(ctx, config, func(context.Context) (net.Conn, error) { return listener.Accept() })
	}()
	t.Cleanup(func() {
		cancel()
		listener.Close()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended as %v", err)
		}
	})
	return listener.Addr().String()
}

// to dials one address, whatever is asked for.
func to(address string, asked chan<- string) Dial {
	return func(ctx context.Context, network, name string) (net.Conn, error) {
		asked <- name
		return new(net.Dialer).DialContext(ctx, network, address)
	}
}

// client is a program of a step that uses the proxy with a password.
func client(t *testing.T, proxy, password string, trusted *x509.CertPool) *http.Client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, ServerName: "example.com"},
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy, User: url.UserPassword("slipway", password)})}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, address string) (status int, body string) {
	t.Helper()
	said, err := c.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Body.Close()
	text, err := io.ReadAll(said.Body)
	if err != nil {
		t.Fatal(err)
	}
	return said.StatusCode, string(text)
}

// mirror answers with the headers of the request.
func mirror(w http.ResponseWriter, r *http.Request) { _ = r.Header.Write(w) }

func TestOnlyWhoHasTheTokenIsServed(t *testing.T) {
	asked := make(chan string, 10)
	proxy := steps(t, Config{Dial: to("127.0.0.1:1", asked)})
	for _, password := range []string{"", "wrong", token[:25], token + "A"} {
		if status, body := get(t, client(t, proxy, password, nil), "http://packages.invalid/"); status != 407 {
			t.Errorf("with the password %q: %d %s", password, status, body)
		}
		if _, err := client(t, proxy, password, nil).Get("https://packages.invalid/"); err == nil ||
			!strings.Contains(err.Error(), "Proxy Authentication Required") {
			t.Errorf("with the password %q, CONNECT ends as %v", password, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("it connected to %s", <-asked)
	}
}

func TestAPlainRequestArrivesWithoutWhatIsForTheProxy(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(mirror))
	defer server.Close()
	asked := make(chan string, 10)
	proxy := steps(t, Config{Dial: to(server.Listener.Addr().String(), asked)})
	request, err := http.NewRequest(http.MethodGet, "http://packages.invalid/simple", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header = http.Header{"Accept": {"text/html"}, "Proxy-Connection": {"keep-alive"}, "X-Own": {"1"},
		"Connection": {"X-Hop"}, "X-Hop": {"1"}}
	said, err := client(t, proxy, token, nil).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer said.Body.Close()
	body, err := io.ReadAll(said.Body)
	headers := string(body)
	if name := <-asked; err != nil || name != "packages.invalid:80" || !strings.Contains(headers, "X-Own: 1") {
		t.Errorf("of %s came %s, %v", name, headers, err)
	}
	for _, name := range []string{"Proxy", "X-Hop", "Forwarded", "Via", token} {
		if strings.Contains(headers, name) {
			t.Errorf("the server got %s", headers)
		}
	}
}

func TestAnEncryptedRequestGoesThroughUnread(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(mirror))
	defer server.Close()
	asked := make(chan string, 10)
	proxy := steps(t, Config{Dial: to(server.Listener.Addr().String(), asked)})
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	status, headers := get(t, client(t, proxy, token, trusted), "https://packages.invalid/simple")
	if name := <-asked; status != 200 || name != "packages.invalid:443" || strings.Contains(headers, "Proxy") {
		t.Errorf("of %s came %d %s", name, status, headers)
	}
}

// through connects to an address by CONNECT.
func through(t *testing.T, proxy, address string) (net.Conn, *bufio.Reader, *http.Response) {
	t.Helper()
	conn, err := net.Dial("tcp", proxy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address,
		Header: http.Header{}}
	asking := &http.Request{Header: http.Header{}}
	asking.SetBasicAuth("slipway", token)
	request.Header.Set("Proxy-Authorization", asking.Header.Get("Authorization"))
	if err := request.Write(conn); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(conn)
	said, err := http.ReadResponse(reader, request)
	if err != nil {
		t.Fatal(err)
	}
	return conn, reader, said
}

func TestEachDirectionEndsByItself(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		conn, err := server.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn) // its end is what is tested
		fmt.Fprintf(conn, "%d bytes", len(all))
	}()
	proxy := steps(t, Config{Dial: to(server.Addr().String(), make(chan string, 1))})
	conn, reader, said := through(t, proxy, "packages.invalid:9418")
	if said.StatusCode != 200 {
		t.Fatalf("CONNECT is answered with %s", said.Status)
	}
	if _, err := conn.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(reader); err != nil || string(answer) != "1048576 bytes" {
		t.Errorf("after the end of what was sent came %q, %v", answer, err)
	}
}

func TestABuildReachesNothingOfThisComputer(t *testing.T) {
	served := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	proxy := steps(t, Config{})
	hosts := []string{"127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "127.8.8.8", "2130706433"}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if own := address.(*net.IPNet).IP; own.To4() != nil {
			hosts = append(hosts, own.String())
		}
	}
	for _, host := range hosts {
		at := fmt.Sprintf("%s:%d", host, port)
		status, body := get(t, client(t, proxy, token, nil), "http://"+at)
		if status != 403 && (host != "2130706433" || status != 502) ||
			status == 403 && !strings.Contains(body, "belongs to the computer that lends its connection") {
			t.Errorf("%s is answered with %d %s", at, status, body)
		}
		if _, _, said := through(t, proxy, at); said.StatusCode == 200 {
			t.Errorf("CONNECT to %s is answered with %s", at, said.Status)
		}
	}
	if served {
		t.Error("a service of this computer was reached")
	}
}

func TestWhatIsOutside(t *testing.T) {
	for address, want := range map[string]bool{
		"192.0.2.1": true, "10.255.255.1": true, "2001:db8::1": true, "::ffff:192.0.2.1": true,
		"127.0.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "169.254.169.254": false, "fe80::1%lo": false,
		"224.0.0.1": false, "ff02::1": false, "::ffff:127.0.0.1": false, "::ffff:169.254.1.1": false,
	} {
		if err := outside(netip.MustParseAddr(address)); (err == nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	for host, want := range map[string]bool{
		"packages.invalid": true, "192.0.2.1": true, "localhost": false, "LOCALHOST.": false, "a.localhost": false,
		"127.0.0.1": false, "::1": false,
	} {
		if err := outsideName(host); (err == nil) != want {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A computer whose own network has a proxy reaches the internet through that.
func TestTheProxyOfThisComputerIsUsed(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(mirror))
	defer server.Close()
	var seen bytes.Buffer
	asked := make(chan string, 10)
	company := steps(t, Config{Dial: to(server.Listener.Addr().String(), asked)})
	via := &url.URL{Scheme: "http", Host: company, User: url.UserPassword("ada", token)}
	proxy := steps(t, Config{
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			seen.WriteString(address)
			return nil, os.ErrPermission
		},
		Via: func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "near.invalid" {
				return nil, nil
			}
			return via, nil
		}})
	trusted := x509.NewCertPool()
	trusted.AddCert(server.Certificate())
	c := client(t, proxy, token, trusted)
	if status, body := get(t, c, "https://packages.invalid/"); status != 200 || <-asked != "packages.invalid:443" {
		t.Errorf("it is answered with %d %s", status, body)
	}
	if status, body := get(t, c, "http://packages.invalid/"); status != 400 || <-asked != "packages.invalid:80" {
		t.Errorf("the plain request to what is encrypted is answered with %d %s", status, body)
	}
	for _, inside := range []string{"localhost:1", "127.0.0.1:1"} {
		if status, body := get(t, c, "http://"+inside); status != 403 {
			t.Errorf("%s is answered with %d %s", inside, status, body)
		}
		if _, _, said := through(t, proxy, inside); said.StatusCode != 403 {
			t.Errorf("CONNECT to %s is answered with %s", inside, said.Status)
		}
	}
	if status, _ := get(t, c, "http://near.invalid/"); status != 502 || seen.String() != "near.invalid:80" {
		t.Errorf("what needs no proxy is answered with %d, and dialled was %q", status, seen.String())
	}
}

func TestItEndsWithTheBuild(t *testing.T) {
	over := errors.New("the build has ended")
	near, far := net.Pipe()
	conns := make(chan net.Conn, 1)
	conns <- near
	ended := make(chan error)
	go func() {
		ended <- Serve(t.Context(), Config{Token: token}, func(ctx context.Context) (net.Conn, error) {
			select {
			case conn, open := <-conns:
				if !open {
					return nil, over
				}
				return conn, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		})
	}()
	if _, err := io.WriteString(far, "GET http://"); err != nil { // it was accepted
		t.Fatal(err)
	}
	close(conns)
	if err := <-ended; !errors.Is(err, over) {
		t.Errorf("it ended as %v", err)
	}
	if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection ended as %v", err)
	}
}
