package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
)

func TestGuard(t *testing.T) {
	w := start(t)
	const api403, api401 = 403, 401
	for name, c := range map[string]struct {
		method, path, host string
		headers            map[string]string
		anonymous          bool
		want               int
	}{
		"the command line":   {want: 200},
		"localhost":          {host: "localhost:PORT", want: 200},
		"a name in capitals": {host: "LOCALHOST:PORT", want: 200},
		"our own page": {headers: map[string]string{"Origin": "http://127.0.0.1:PORT",
			"Sec-Fetch-Site": "same-origin"}, want: 200},
		"a name bound to our address": {host: "evil.example:PORT", want: api403},
		"a name without a port":       {host: "127.0.0.1", want: api403},
		"another port":                {host: "127.0.0.1:1", want: api403},
		"another loopback address":    {host: "127.0.0.2:PORT", want: api403},
		"an address with a user":      {host: "x@127.0.0.1:PORT", want: api403},
		"localhost with a dot":        {host: "localhost.:PORT", want: api403},
		"a deeper name of localhost":  {host: "evil.localhost:PORT", want: api403},
		"a page of another site": {headers: map[string]string{"Origin": "https://evil.example"},
			want: api403},
		"a page of another port": {headers: map[string]string{"Origin": "http://127.0.0.1:8888"},
			want: api403},
		"a page of an app": {
			headers: map[string]string{"Origin": "http://notebook-aaaaaaaaaaaa.localhost:PORT"}, want: api403},
		"a page by the other name": {headers: map[string]string{"Origin": "http://localhost:PORT"},
			want: api403},
		"a page without an origin": {headers: map[string]string{"Origin": "null"}, want: api403},
		"a page by https": {headers: map[string]string{"Origin": "https://127.0.0.1:PORT"},
			want: api403},
		"a picture in a page of another site": {headers: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "no-cors"}, want: api403},
		"a page of a neighbour": {headers: map[string]string{"Sec-Fetch-Site": "same-site"},
			want: api403},
		"a link to the API": {headers: map[string]string{"Sec-Fetch-Site": "cross-site",
			"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, want: api403},
		"a link to the interface": {path: "/",
			headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "document"}, want: 200},
		"a frame around the interface": {path: "/",
			headers: map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate",
				"Sec-Fetch-Dest": "iframe"}, want: api403},
		"no token": {anonymous: true, want: api401},
		"a wrong token": {headers: map[string]string{"Authorization": "Bearer x"},
			want: api401},
		"a token of another kind": {headers: map[string]string{"Authorization": "Basic " + token},
			want: api401},
		"a forged cookie": {anonymous: true,
			headers: map[string]string{"Cookie": "slipway_PORT=a.b"}, want: api401},
		"an empty cookie": {anonymous: true,
			headers: map[string]string{"Cookie": "slipway_PORT=."}, want: api401},
		"the token in the address": {path: "/api/v1/version?token=" + token, anonymous: true,
			want: api401},
		"a form of another site": {method: "POST", path: "/api/v1/shutdown",
			headers: map[string]string{"Origin": "http://evil.example", "Content-Type": "text/plain"}, want: api403},
		"the events without a token": {path: "/api/v1/events", anonymous: true, want: api401},
		"an app without a ticket": {host: "notebook-aaaaaaaaaaaa.localhost:PORT", path: "/",
			anonymous: true, want: api403},
		"the API by an app's name":                 {host: "notebook-aaaaaaaaaaaa.localhost:PORT", want: api403},
		"a name that is like an app's and is none": {host: "aaaaaaaaaaaa.localhost:PORT", want: api403},
	} {
		t.Run(name, func(t *testing.T) {
			fill := func(text string) string { return strings.ReplaceAll(text, "PORT", w.port) }
			method, path := c.method, c.path
			if method == "" {
				method = "GET"
			}
			if path == "" {
				path = "/api/v1/version"
			}
			r := w.request(t, method, path, "")
			if c.host != "" {
				r.Host = fill(c.host)
			}
			if c.anonymous {
				r.Header.Del("Authorization")
			}
			for key, value := range c.headers {
				r.Header.Set(key, fill(value))
			}
			response, body := do(t, http.DefaultClient, r)
			if response.StatusCode != c.want {
				t.Errorf("status %d, want %d: %.200s", response.StatusCode, c.want, body)
			}
		})
	}
	if len(w.stopped) > 0 {
		t.Error("a form of another site has shut the server down")
	}
}

// login exchanges a fresh code for a cookie.
func (w *world) login(t *testing.T, client *http.Client) string {
	t.Helper()
	var link api.LoginLink
	if status := w.call(t, "POST", "/api/v1/login", "", &link); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	response, err := client.Get(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("login answers %d", response.StatusCode)
	}
	return link.URL
}

func TestLogin(t *testing.T) {
	t.Run("a code becomes a cookie that only our own page can use", func(t *testing.T) {
		w := start(t)
		client := browser(t)
		w.login(t, client)
		response, err := client.Get(w.url + "/api/v1/version")
		if err != nil || response.StatusCode != 200 {
			t.Fatalf("%v %v", response, err)
		}
		response.Body.Close()
		address, err := url.Parse(w.url)
		if err != nil {
			t.Fatal(err)
		}
		cookies := client.Jar.Cookies(address)
		if len(cookies) != 1 || cookies[0].Name != "slipway_"+w.port {
			t.Fatalf("cookies %v", cookies)
		}
	})
	t.Run("the cookie is out of reach of scripts and other sites", func(t *testing.T) {
		w := start(t)
		response, _ := do(t, http.DefaultClient, w.request(t, "GET", "/login?code="+w.server.LoginCode(time.Minute),
			""))
		header := response.Header.Get("Set-Cookie")
		for _, want := range []string{"HttpOnly", "SameSite=Strict", "Path=/"} {
			if !strings.Contains(header, want) {
				t.Errorf("%q lacks %s", header, want)
			}
		}
		if strings.Contains(header, "Domain") {
			t.Errorf("%q names a domain", header)
		}
	})
	t.Run("a code works once", func(t *testing.T) {
		w := start(t)
		link := w.login(t, browser(t))
		response, err := browser(t).Get(link)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 403 || len(response.Cookies()) > 0 {
			t.Errorf("the second use answers %d with cookies %v", response.StatusCode, response.Cookies())
		}
	})
	t.Run("who is logged in goes on with an old link", func(t *testing.T) {
		w := start(t)
		client := browser(t)
		link := w.login(t, client)
		response, err := client.Get(link + "&next=/sessions")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
	t.Run("it goes on to pages of our own only", func(t *testing.T) {
		w := start(t)
		for next, want := range map[string]string{"/sessions?tab=all": "/sessions?tab=all", "//evil.example": "/",
			"https://evil.example": "/", `/\evil.example`: "/", "sessions": "/", "": "/", "javascript:x": "/"} {
			link := "/login?code=" + w.server.LoginCode(time.Minute) + "&next=" + url.QueryEscape(next)
			_, body := do(t, http.DefaultClient, w.request(t, "GET", link, ""))
			if !strings.Contains(body, `content="0;url=`+want+`"`) {
				t.Errorf("next=%s goes on to: %s", next, body)
			}
		}
	})
	t.Run("wrong codes of other pages do not keep the person out", func(t *testing.T) {
		w := start(t)
		for range 50 {
			if response, _ := do(t, http.DefaultClient,
				w.request(t, "GET", "/login?code=guess", "")); response.StatusCode != 403 {
				t.Fatalf("a wrong code answers %d", response.StatusCode)
			}
		}
		response, _ := do(t, http.DefaultClient, w.request(t, "GET", "/login?code="+w.server.LoginCode(time.Minute),
			""))
		if response.StatusCode != 200 || len(response.Cookies()) != 1 {
			t.Errorf("a right code after wrong ones answers %d", response.StatusCode)
		}
	})
	t.Run("a cookie outlives a restart and not a new token", func(t *testing.T) {
		w := start(t)
		response, _ := do(t, http.DefaultClient, w.request(t, "GET", "/login?code="+w.server.LoginCode(time.Minute),
			""))
		cookie := response.Cookies()[0]
		other := start(t) // another process with the same token
		r := other.request(t, "GET", "/api/v1/version", "")
		r.Header.Del("Authorization")
		r.AddCookie(&http.Cookie{Name: "slipway_" + other.port, Value: cookie.Value})
		if response, _ := do(t, http.DefaultClient, r); response.StatusCode != 200 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
}

func TestSite(t *testing.T) {
	w := start(t)
	get := func(path string, headers ...string) (*http.Response, string) {
		r := w.request(t, "GET", path, "")
		r.Header.Del("Authorization")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		return do(t, &http.Client{Transport: &http.Transport{DisableCompression: true}}, r)
	}
	t.Run("every page of the interface is index.html", func(t *testing.T) {
		for _, path := range []string{"/", "/index.html", "/sessions/aaaaaaaaaaaa", "/launch?draft=x"} {
			response, body := get(path, "Accept", "text/html")
			if response.StatusCode != 200 || !strings.Contains(body, "root") ||
				response.Header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s: %d %s", path, response.StatusCode, body)
			}
		}
	})
	t.Run("its policy allows its own scripts and the one in the page", func(t *testing.T) {
		response, _ := get("/")
		policy := response.Header.Get("Content-Security-Policy")
		for _, want := range []string{"script-src 'self' 'sha256-", "frame-ancestors 'none'", "object-src 'none'",
			"base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%q lacks %s", policy, want)
			}
		}
		if strings.Contains(policy, "script-src 'self' 'unsafe-inline'") {
			t.Errorf("%q allows any script", policy)
		}
		for header, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer"} {
			if response.Header.Get(header) != want {
				t.Errorf("%s is %q", header, response.Header.Get(header))
			}
		}
	})
	t.Run("files with a digest in their name are kept by the browser", func(t *testing.T) {
		response, body := get("/assets/app-1.js")
		if response.StatusCode != 200 || !strings.Contains(response.Header.Get("Cache-Control"), "immutable") ||
			!strings.HasPrefix(response.Header.Get("Content-Type"), "text/javascript") ||
			!strings.Contains(body, "app") {
			t.Errorf("%d %v %s", response.StatusCode, response.Header, body)
		}
		sent, body := get("/assets/app-1.js", "Accept-Encoding", "br, gzip")
		if sent.Header.Get("Content-Encoding") != "gzip" || body != string(packed(t, appScript)) {
			t.Errorf("%v %s", sent.Header, body)
		}
	})
	t.Run("a file that is missing is no page", func(t *testing.T) {
		for _, path := range []string{"/assets/none.js", "/none.svg", "/assets/../../etc/passwd"} {
			if response, body := get(path); response.StatusCode == 200 && !strings.Contains(body, "root") ||
				strings.HasSuffix(path, ".js") && response.StatusCode != 404 {
				t.Errorf("%s: %d %s", path, response.StatusCode, body)
			}
		}
	})
	t.Run("a page that has not changed is not sent again", func(t *testing.T) {
		first, _ := get("/")
		second, body := get("/", "If-None-Match", first.Header.Get("ETag"))
		if second.StatusCode != 304 || body != "" {
			t.Errorf("%d %s", second.StatusCode, body)
		}
	})
	t.Run("nothing can be posted", func(t *testing.T) {
		if response, _ := do(t, http.DefaultClient, w.request(t, "POST", "/", "x")); response.StatusCode != 405 {
			t.Errorf("answers %d", response.StatusCode)
		}
	})
}
