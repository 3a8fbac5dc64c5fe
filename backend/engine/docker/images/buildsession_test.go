package images

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine"
	"slipway/backend/engine/docker/daemon"
	"slipway/backend/session"
)

// caller is the end of a session that the daemon has.
type caller struct {
	t *testing.T
	http.Client
	methods []string // that the session offers
}

// openTestSession opens a session with a fake daemon, and returns what that calls.
func openTestSession(t *testing.T, b engine.Build) (c *caller, end func()) {
	t.Helper()
	c = &caller{t: t}
	taken := make(chan net.Conn, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.methods = r.Header["X-Docker-Expose-Session-Grpc-Method"]
		if r.URL.Path != "/session" || r.Header.Get("Upgrade") != "h2c" ||
			r.Header.Get("X-Docker-Expose-Session-Uuid") == "" {
			t.Errorf("the session begins with %s %v", r.URL, r.Header)
		}
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		buffered.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
		if err := buffered.Flush(); err != nil {
			t.Error(err)
		}
		taken <- rest{conn, buffered.Reader}
		close(taken) // there is no other connection
	}))
	t.Cleanup(server.Close)
	d, err := daemon.Open("tcp://"+server.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() }) //nolint:errcheck // nothing to lose
	_, end, err = New(d, "").openSession(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	transport := &http.Transport{Protocols: new(http.Protocols),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if conn, open := <-taken; open {
				return conn, nil
			}
			return nil, net.ErrClosed
		}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	c.Transport = transport
	return c, end
}

// rest is a connection of which a part was read.
type rest struct {
	net.Conn
	from *bufio.Reader
}

func (r rest) Read(to []byte) (int, error) { return r.from.Read(to) }

// call sends what should be a frame, and returns the code and the body of the answer.
func (c *caller) call(method string, frame []byte) (code string, body []byte) {
	c.t.Helper()
	answer, err := c.Post("http://session"+method, "application/grpc", bytes.NewReader(frame))
	if err != nil {
		return err.Error(), nil
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return err.Error(), nil
	}
	return answer.Trailer.Get("Grpc-Status"), body
}

// frameOf is the frame of a message with one text.
func frameOf(text string) []byte {
	message := textField(nil, 1, text)
	return append([]byte{0, 0, 0, 0, byte(len(message))}, message...)
}

func testOffer() engine.Build {
	return engine.Build{Secrets: []session.EnvVar{{Name: "TOKEN", Value: "hush"}},
		Logins: []session.RegistryLogin{{Server: "r.test:5000", User: "ada", Password: "hush too"},
			{Server: session.DockerHub, User: "eve", Password: "hush three"}}}
}

func TestABuildAsksItsSession(t *testing.T) {
	c, _ := openTestSession(t, testOffer())
	both := func(user, password string) string {
		return string(textField(textField(nil, 1, user), 2, password))
	}
	for _, one := range []struct{ method, asks, code, answer string }{
		{methodHealth, "", "0", "\x08\x01"},
		{methodSecret, "TOKEN", "0", string(textField(nil, 1, "hush"))},
		{methodSecret, "OTHER", "5", ""},
		{methodSecret, "", "5", ""},
		{methodCredentials, "r.test:5000", "0", both("ada", "hush too")},
		{methodCredentials, "registry-1.docker.io", "0", both("eve", "hush three")},
		{methodCredentials, "r.test", "0", ""},
		{"/moby.filesync.v1.Auth/FetchToken", "r.test:5000", "12", ""},
		{"/moby.filesync.v1.FileSync/DiffCopy", "/etc/passwd", "12", ""},
	} {
		code, body := c.call(one.method, frameOf(one.asks))
		if one.code == "0" {
			body = bytes.TrimPrefix(body, []byte{0, 0, 0, 0, byte(len(one.answer))})
		}
		if code != one.code || string(body) != one.answer {
			t.Errorf("%s of %q: %s %q, want %s %q", one.method, one.asks, code, body, one.code, one.answer)
		}
	}
	if want := []string{methodHealth, methodSecret, methodCredentials}; !slices.Equal(c.methods, want) {
		t.Errorf("the session offers %q, want %q", c.methods, want)
	}
}

func TestASessionRefusesWhatIsNoFrame(t *testing.T) {
	c, end := openTestSession(t, testOffer())
	good := frameOf("TOKEN")
	for name, frame := range map[string][]byte{
		"nothing":             nil,
		"half of a header":    good[:3],
		"a cut message":       good[:len(good)-1],
		"more than one frame": slices.Concat(good, good),
		"a length of 4 GiB":   slices.Concat([]byte{0, 255, 255, 255, 255}, good[5:]),
		"compression":         slices.Concat([]byte{1}, good[1:]),
		"no message":          {0, 0, 0, 0, 3, 10, 200, 1},
		"a group":             {0, 0, 0, 0, 1, 11},
		"too much":            make([]byte, maxCall+1),
	} {
		if code, body := c.call(methodSecret, frame); code != "3" || len(body) > 0 {
			t.Errorf("%s: %s %q", name, code, body)
		}
	}
	huge, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://session"+methodSecret,
		bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	huge.Header.Set("X", strings.Repeat("x", 2*maxCallHeader))
	if answer, err := c.Do(huge); err == nil {
		if answer.StatusCode == http.StatusOK {
			t.Error("a header of any size is read")
		}
		answer.Body.Close()
	}
	if code, _ := c.call(methodSecret, good); code != "0" {
		t.Errorf("after all that, a frame: %s", code)
	}
	end()
	if code, body := c.call(methodSecret, good); code == "0" || len(body) > 0 {
		t.Errorf("after the end of the build: %s %q", code, body)
	}
}

func TestADaemonWithoutSessionsSaysSo(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	d, err := daemon.Open("tcp://"+server.Listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, _, err = New(d, "").openSession(t.Context(), testOffer())
	if session.CodeOf(err) == "" || strings.Contains(err.Error(), "hush") {
		t.Errorf("it fails with %v", err)
	}
}
