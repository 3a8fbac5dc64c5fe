package server_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/server"
	"slipway/backend/session"
)

// The suite of a hostile page: whatever a page in the person's browser may send,
// which has their cookies, from another site, another port of this computer, an
// app's own name, or a name of its own that it points at this computer.

// attempt is one request of a page, or of a program without the token.
type attempt struct {
	method, path, host, body string
	headers                  map[string]string
}

// send sends an attempt. PORT stands for the server's, COOKIE for a good one.
func (w *world) send(t *testing.T, a attempt) (*http.Response, string) {
	t.Helper()
	fill := strings.NewReplacer("PORT", w.port, "COOKIE", w.cookie(t)).Replace
	r := w.request(t, a.method, a.path, a.body)
	r.Header.Del("Authorization")
	if a.host != "" {
		r.Host = fill(a.host)
	}
	for name, value := range a.headers {
		r.Header.Set(name, fill(value))
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return do(t, &http.Client{CheckRedirect: stay}, r)
}

// get asks for a path with headers, given by name and value.
func (w *world) get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	a := attempt{method: "GET", path: path, headers: map[string]string{}}
	for i := 0; i+1 < len(headers); i += 2 {
		a.headers[headers[i]] = headers[i+1]
	}
	return w.send(t, a)
}

// cookie is that of a browser that is logged in.
func (w *world) cookie(t *testing.T) string {
	t.Helper()
	if w.seal != "" {
		return w.seal
	}
	response, _ := do(t, http.DefaultClient, w.request(t, "GET", "/login?code="+w.server.LoginCode(time.Minute), ""))
	if len(response.Cookies()) != 1 {
		t.Fatalf("login answers %s", response.Status)
	}
	cookie := response.Cookies()[0]
	w.seal = cookie.Name + "=" + cookie.Value
	return w.seal
}

// pages are what a page cannot hide of itself; each has the person's cookie where
// a browser may send it.
func pages() map[string]attempt {
	fetched := func(site, mode, dest, origin string) attempt {
		headers := map[string]string{
			"Cookie": "COOKIE", "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest,
		}
		if origin != "" {
			headers["Origin"] = origin
		}
		return attempt{headers: headers}
	}
	form := fetched("cross-site", "navigate", "document", "https://evil.example")
	form.headers["Content-Type"] = "text/plain"
	rebound := fetched("same-origin", "cors", "empty", "http://evil.example:PORT")
	rebound.host = "evil.example:PORT"
	old := attempt{headers: map[string]string{"Cookie": "COOKIE", "Origin": "https://evil.example"}}
	quiet := attempt{host: "evil.example:PORT", headers: map[string]string{"Cookie": "COOKIE"}}
	app := fetched("same-origin", "cors", "empty", "http://notebook-aaaaaaaaaaaa.localhost:PORT")
	app.host = "notebook-aaaaaaaaaaaa.localhost:PORT"
	return map[string]attempt{
		"nobody":                           {},
		"a wrong token":                    {headers: map[string]string{"Authorization": "Bearer x"}},
		"a forged cookie":                  {headers: map[string]string{"Cookie": "slipway_PORT=a.b"}},
		"another site":                     fetched("cross-site", "cors", "empty", "https://evil.example"),
		"another site's picture":           fetched("cross-site", "no-cors", "image", ""),
		"another site's form":              form,
		"another site's link":              fetched("cross-site", "navigate", "document", ""),
		"another site's frame":             fetched("cross-site", "navigate", "iframe", ""),
		"another port":                     fetched("same-site", "cors", "empty", "http://127.0.0.1:8888"),
		"another port's picture":           fetched("same-site", "no-cors", "image", ""),
		"another port's script":            fetched("same-site", "no-cors", "script", ""),
		"another port's link":              fetched("same-site", "navigate", "document", ""),
		"the other name of this address":   fetched("cross-site", "cors", "empty", "http://localhost:PORT"),
		"a page without an origin":         fetched("cross-site", "cors", "empty", "null"),
		"a file":                           {headers: map[string]string{"Cookie": "COOKIE", "Origin": "null"}},
		"an old browser, another site":     old,
		"an app, by its own name":          app,
		"an app, by our name":              fetched("same-site", "cors", "empty", "http://"+app.host),
		"a name pointed at this computer":  rebound,
		"such a name, in an old browser":   quiet,
		"https of the same name":           fetched("cross-site", "cors", "empty", "https://127.0.0.1:PORT"),
		"a site that Sec-Fetch cannot say": fetched("unheard-of", "cors", "empty", ""),
	}
}

// routePath is a route's path with values that exist.
func routePath(one route.Description) string {
	values := []string{"{id}", "aaaaaaaaaaaa", "{agent}", "local", "{terminal}", "t1", "{app}", "notebook",
		"{device}", "GPU-0"}
	return strings.NewReplacer(values...).Replace(one.Path())
}

// TestNoPageReachesAnyRoute takes every route of the API, so that a new one is
// judged as all others are.
func TestNoPageReachesAnyRoute(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.SetApps("aaaaaaaaaaaa", session.App{ID: "notebook", Title: "Notebook", Kind: "web",
		State: session.AppStopped})
	before := w.agent.Starts()
	for name, page := range pages() {
		t.Run(name, func(t *testing.T) {
			for _, one := range route.All() {
				a := page
				a.method, a.path, a.body = one.Method(), routePath(one), "{}"
				if one.Stream == route.WebSocket {
					a.headers = maps.Clone(page.headers)
					if a.headers == nil {
						a.headers = map[string]string{}
					}
					maps.Copy(a.headers, map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
						"Sec-Websocket-Version": "13", "Sec-Websocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
				}
				response, body := w.send(t, a)
				if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s (%s %s) answers %d: %.200s", one.Name, a.method, a.path, response.StatusCode, body)
				}
				for header := range response.Header {
					if strings.HasPrefix(header, "Access-Control-") || header == "Set-Cookie" {
						t.Errorf("%s answers with %s", one.Name, header)
					}
				}
			}
		})
	}
	if len(w.stopped) > 0 || w.agent.Starts() != before {
		t.Error("a request that was refused did something")
	}
}

// A preflight is refused, so that a browser does not even send what would follow.
func TestNoPreflightIsGranted(t *testing.T) {
	w := start(t)
	for _, method := range []string{"OPTIONS", "TRACE", "CONNECT", "HEAD"} {
		response, _ := w.send(t, attempt{method: method, path: "/api/v1/sessions", headers: map[string]string{
			"Origin": "https://evil.example", "Access-Control-Request-Method": "POST",
			"Access-Control-Request-Private-Network": "true",
		}})
		if response.StatusCode < 400 || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s is answered %d, %v", method, response.StatusCode, response.Header)
		}
	}
}

func TestNamesOfOtherHostsAreRefused(t *testing.T) {
	w := start(t)
	for _, host := range []string{
		"evil.example:PORT", "127.0.0.1.evil.example:PORT", "localhost.evil.example:PORT", "127.1:PORT",
		"2130706433:PORT", "0x7f.1:PORT",
		"0.0.0.0:PORT", "[::1]:PORT", "[::ffff:127.0.0.1]:PORT", "127.0.0.2:PORT", "localhost.:PORT", "127.0.0.1.:PORT",
		"127.0.0.1", "localhost:1",
		"x@127.0.0.1:PORT", "127.0.0.1:0PORT", "aaaaaaaaaaaa.localhost:PORT", "x.notebook-aaaaaaaaaaaa.localhost:PORT",
		".localhost:PORT", "-aaaaaaaaaaaa.localhost:PORT",
	} {
		for _, path := range []string{"/", "/login", "/api/v1/version", "/pass/x", "/assets/app-1.js"} {
			response, body := w.send(t, attempt{method: "GET", path: path, host: host, headers: map[string]string{
				"Cookie": "COOKIE", "X-Forwarded-Host": "127.0.0.1:" + w.port, "Forwarded": "host=127.0.0.1:" + w.port,
			}})
			if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusBadRequest {
				t.Errorf("%s by %q answers %d: %.100s", path, host, response.StatusCode, body)
			}
		}
	}
}

// A cookie is shared by all ports of an address, and any page there may set more.
func TestCookiesOfOtherPagesDoNotLogOut(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	upstream := w.upstream(t)
	defer upstream.Close()
	app, flood := w.enter(t), ""
	for i := range 180 { // as many as a browser keeps for one host, of the longest kind
		flood += fmt.Sprintf("; junk%d=%s", i, strings.Repeat("x", 4000))
	}
	own := w.cookie(t)
	for name, c := range map[string]struct {
		cookies func(good, name string) string
		in      bool
	}{
		"alone":           {func(good, _ string) string { return good }, true},
		"after a bad one": {func(good, name string) string { return name + "=x; " + good }, true},
		"before one":      {func(good, name string) string { return good + "; " + name + "=x" }, true},
		"among many": {func(good, name string) string {
			return strings.Repeat(name+"=a.b; ", 100) + good + strings.Repeat("; "+name+"=", 50)
		}, true},
		"in a flood": {func(good, _ string) string { return good + flood }, true},
		"with odd bytes": {func(good, name string) string { return name + "=\"\\\"; ;;=;" + name + "; " + good },
			true},
		"only a bad one":  {func(_, name string) string { return name + "=a.b" }, false},
		"its half":        {func(good, _ string) string { return good[:len(good)-1] }, false},
		"and more of it":  {func(good, _ string) string { return good + "0" }, false},
		"in capitals":     {func(good, _ string) string { return strings.ToUpper(good) }, false},
		"of another name": {func(good, _ string) string { return "x" + good }, false},
		"two halves":      {func(good, name string) string { return good[:20] + "; " + name + "=" + good[20:] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			ownName, _, _ := strings.Cut(own, "=")
			cookie := c.cookies(own, ownName)
			response, _ := w.get(t, "/api/v1/version", "Cookie", cookie)
			if (response.StatusCode == 200) != c.in {
				t.Errorf("the interface answers %d", response.StatusCode)
			}
			response, _ = w.get(t, "/login?next=/sessions", "Cookie", cookie)
			if (response.StatusCode == 200) != c.in {
				t.Errorf("/login answers %d", response.StatusCode)
			}
			response = w.visit(t, "GET", "/lab", nil, "Cookie", c.cookies(app, "slipway_app"))
			if (response.StatusCode == 200) != c.in {
				t.Errorf("the app answers %d", response.StatusCode)
			}
		})
	}
	t.Run("one for another purpose", func(t *testing.T) {
		_, seal, _ := strings.Cut(own, "=")
		if response := w.visit(t, "GET", "/lab", nil, "Cookie", "slipway_app="+seal); response.StatusCode != 403 {
			t.Errorf("the app takes the interface's cookie: %d", response.StatusCode)
		}
		_, seal, _ = strings.Cut(app, "=")
		response, _ := w.get(t, "/api/v1/version", "Cookie", "slipway_PORT="+seal)
		if response.StatusCode != 401 {
			t.Errorf("the interface takes an app's cookie: %d", response.StatusCode)
		}
	})
}

func TestTheTokenIsNoAddress(t *testing.T) {
	w := start(t)
	for _, path := range []string{"?token=", "?access_token=", "?Authorization=Bearer%20", "?key=", "?code=", "#"} {
		if response, body := w.get(t, "/api/v1/sessions"+path+token); response.StatusCode != 401 {
			t.Errorf("%s answers %d %s", path, response.StatusCode, body)
		}
	}
	withUser, err := url.Parse(w.url + "/api/v1/sessions")
	if err != nil {
		t.Fatal(err)
	}
	withUser.User = url.UserPassword("slipway", token)
	response, err := http.Get(withUser.String())
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 401 {
		t.Errorf("as a password it answers %d", response.StatusCode)
	}
}

func TestNothingOfOursIsFramed(t *testing.T) {
	w := start(t)
	for _, path := range []string{
		"/", "/sessions", "/login?code=x", "/pass/x", "/api/v1/version", "/assets/app-1.js", "/icon.svg",
	} {
		response, _ := w.get(t, path, "Accept-Encoding", "identity")
		header := response.Header
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin-allow-popups",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s answers with %s %q", path, name, got)
			}
		}
		policy, isPage := header.Get("Content-Security-Policy"), strings.HasPrefix(header.Get("Content-Type"),
			"text/html")
		if isPage && !strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("the page %s may be framed: %q", path, policy)
		}
	}
}

// A code, a ticket and a pass each open one thing, once.
func TestCodesOpenNothingElse(t *testing.T) {
	w := startFor(t, os.Getuid())
	w.running("aaaaaaaaaaaa")
	defer w.upstream(t).Close()
	ticket, err := url.Parse(w.open(t))
	if err != nil {
		t.Fatal(err)
	}
	code := w.server.LoginCode(time.Minute)
	for name, other := range map[string]string{
		"a ticket": ticket.Query().Get("slipway_ticket"), "nothing": "", "the token": token,
	} {
		if response, _ := w.get(t, "/login?code="+other); response.StatusCode != 403 || len(response.Cookies()) > 0 {
			t.Errorf("%s logs in: %d", name, response.StatusCode)
		}
	}
	if response := w.visit(t, "GET", "/lab?slipway_ticket="+code, nil); response.StatusCode != 403 {
		t.Errorf("a login code opens an app: %d", response.StatusCode)
	}
	if response, _ := w.get(t, "/pass/"+code); response.StatusCode != 403 {
		t.Errorf("a login code is a pass: %d", response.StatusCode)
	}
	for _, method := range []string{"POST", "HEAD", "PUT"} {
		response, _ := w.send(t, attempt{method: method, path: "/login?code=" + code})
		if response.StatusCode != 405 || len(response.Cookies()) > 0 {
			t.Errorf("%s of a login link answers %d", method, response.StatusCode)
		}
	}
	for i, want := range []int{200, 403} {
		if response, _ := w.get(t, "/login?code="+code); response.StatusCode != want {
			t.Errorf("use %d of a code answers %d", i+1, response.StatusCode)
		}
	}
	late := w.server.LoginCode(0)
	if response, _ := w.get(t, "/login?code="+late); response.StatusCode != 403 {
		t.Errorf("a code whose time has passed answers %d", response.StatusCode)
	}
}

func TestAPassIsForConnectionsOfTheUser(t *testing.T) {
	ask := func(w *world, address string) (pass api.Pass, status int) {
		status = w.call(t, "POST", "/api/v1/login/pass", `{"url":"`+address+`"}`, &pass)
		return pass, status
	}
	if runtime.GOOS == "linux" {
		w := startFor(t, os.Getuid())
		link := w.url + "/login?code=" + w.server.LoginCode(time.Minute)
		pass, status := ask(w, link)
		if status != 201 || !strings.HasPrefix(pass.URL, w.url+"/pass/") || strings.Contains(pass.URL, "code=") {
			t.Fatalf("%d %+v", status, pass)
		}
		for i, want := range []int{200, 403} {
			response, body := w.get(t, strings.TrimPrefix(pass.URL, w.url))
			if response.StatusCode != want || strings.Contains(body, `content="0;url=`+link) != (want == 200) {
				t.Errorf("use %d answers %d: %s", i+1, response.StatusCode, body)
			}
		}
		for _, address := range []string{
			"https://evil.example/", "http://evil.example/", "http://127.0.0.1:1/", "//evil.example",
			"javascript:alert(1)", "",
			"http://x@127.0.0.1:" + w.port + "/", "http://127.0.0.1:" + w.port + ".evil.example/", "file:///etc/passwd",
			"http://localhost.evil.example:" + w.port + "/",
		} {
			if pass, status := ask(w, address); status < 400 {
				t.Errorf("%q is given the pass %+v", address, pass)
			}
		}
	}
	// Where nothing is known of a connection there is no pass.
	w := start(t)
	if pass, status := ask(w, w.url+"/login?code=x"); status < 400 {
		t.Errorf("it is given %+v", pass)
	}
}

func TestOversizeRequestsAreRefused(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	body := `{"name":"` + strings.Repeat("a", 8<<20) + `"}`
	for _, one := range route.All() {
		if one.Request == nil || one.Stream != "" {
			continue
		}
		r := w.request(t, one.Method(), routePath(one), body)
		response, text := do(t, http.DefaultClient, r)
		if response.StatusCode < 400 || response.StatusCode >= 500 || len(text) > 64<<10 {
			t.Errorf("%s answers %d with %d bytes", one.Name, response.StatusCode, len(text))
		}
	}
	response, _ := w.get(t, "/api/v1/version", "X", strings.Repeat("x", 2<<20))
	if response.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 2 MiB is answered %d", response.StatusCode)
	}
}

// A WebSocket is not bound by the rules for other requests: only its Origin says
// which page opens it.
func TestNoOtherPageOpensAWebSocket(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	cookie := w.cookie(t)
	dial := func(path string, header http.Header) int {
		t.Helper()
		conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://127.0.0.1:"+w.port+path, header)
		if err == nil {
			_ = conn.Close()
			return http.StatusSwitchingProtocols
		}
		if response == nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	own := http.Header{"Cookie": {cookie}, "Origin": {w.url}}
	if status := dial("/api/v1/events", own); status != http.StatusSwitchingProtocols {
		t.Fatalf("our own page is answered %d", status)
	}
	for _, origin := range []string{
		"https://evil.example", "http://127.0.0.1:8888", "http://localhost:" + w.port, "https://127.0.0.1:" + w.port,
		"null",
		"file://", "http://notebook-aaaaaaaaaaaa.localhost:" + w.port, w.url + ".evil.example", w.url + "@evil.example",
		"chrome-extension://x",
	} {
		for _, one := range route.All() {
			if one.Stream != route.WebSocket {
				continue
			}
			header := http.Header{"Cookie": {cookie}, "Origin": {origin}}
			if status := dial(routePath(one), header); status != http.StatusForbidden {
				t.Errorf("%s from %s is answered %d", one.Name, origin, status)
			}
		}
	}
}

// FuzzCookies has anything stand beside our cookie, or in its place.
func FuzzCookies(f *testing.F) {
	s := server.New(server.Config{Hub: &hub.Hub{}, Token: token})
	seal := s.Seal("login")
	f.Add("slipway_7421=x; ", "; slipway_7421=y", true)
	f.Add("a=b;slipway_7421=\"", "", false)
	f.Add("slipway_7421=", seal, false)
	f.Fuzz(func(t *testing.T, before, after string, good bool) {
		line := before + "; "
		if good {
			line += "slipway_7421=" + seal
		}
		line += "; " + after
		r := &http.Request{Host: net.JoinHostPort("127.0.0.1", "7421"), Header: http.Header{"Cookie": {line}}}
		named := slices.ContainsFunc(r.CookiesNamed("slipway_7421"),
			func(c *http.Cookie) bool { return c.Value == seal })
		if known := s.Known(r); known != named || good && strings.Count(line, ";") < 1000 && !known {
			t.Errorf("%q is known: %v", line, known)
		}
	})
}
