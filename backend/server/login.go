package server

import (
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"slipway/backend/api"
)

const (
	// codeLife is how long a login code or an app's ticket is good for.
	codeLife = time.Minute
	// FirstCodeLife is how long the code is good for that is printed when a control
	// plane starts: whoever started it may be away by then.
	FirstCodeLife = 10 * time.Minute
	// codesMost bounds how many are kept; the oldest goes first.
	codesMost = 64
	// cookieLife is how long a browser stays logged in.
	cookieLife = 30 * 24 * time.Hour
)

func randomText() string { return strings.ToLower(rand.Text()) }

func hexText(data []byte) string { return hex.EncodeToString(data) }

// codes hands out texts that are good once and for a while, each for one purpose.
// They have 130 random bits. Wrong ones are not counted: any page can show some,
// and would keep the person out by that.
type codes struct {
	// mu guards everything below.
	mu    sync.Mutex
	given map[string]code
	order []string
}

type code struct {
	purpose string
	expires time.Time
}

func newCodes() *codes { return &codes{given: map[string]code{}} }

func (c *codes) give(purpose string) string { return c.giveFor(purpose, codeLife) }

func (c *codes) giveFor(purpose string, life time.Duration) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.order) >= codesMost {
		delete(c.given, c.order[0])
		c.order = c.order[1:]
	}
	text := randomText()
	c.given[text] = code{purpose: purpose, expires: time.Now().Add(life)}
	c.order = append(c.order, text)
	return text
}

// exchange uses a code up and returns what it is for.
func (c *codes) exchange(text string) (purpose string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.given[text]
	delete(c.given, text)
	return found.purpose, ok && time.Now().Before(found.expires)
}

// drop uses a code up without judging it.
func (c *codes) drop(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.given, text)
}

// take uses a code up and reports whether it is for that purpose.
func (c *codes) take(text, purpose string) bool {
	found, ok := c.exchange(text)
	return ok && found == purpose
}

// createLoginLink makes the address that logs a browser in.
func (s *Server) createLoginLink(r *http.Request) (api.LoginLink, error) {
	_, port, _ := strings.Cut(r.Host, ":")
	return api.LoginLink{URL: "http://127.0.0.1:" + port + "/login?code=" + s.logins.give("login")}, nil
}

// LoginCode makes a code that logs a browser in through /login?code=, once, until
// life has passed.
func (s *Server) LoginCode(life time.Duration) string { return s.logins.giveFor("login", life) }

// login exchanges a one-time code for a cookie and goes on to the page wanted.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !s.onlyGet(w, r) {
		return
	}
	next := localPath(r.URL.Query().Get("next"))
	if s.hasSeal(r, cookieName(r), "login") {
		s.logins.drop(r.URL.Query().Get("code"))
		forward(w, next)
		return
	}
	if !s.logins.take(r.URL.Query().Get("code"), "login") {
		showPage(w, http.StatusForbidden, linkOver())
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.seal("login"), Path: "/",
		MaxAge:   int(cookieLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode})
	forward(w, next)
}

// loginCommand logs a browser in again.
const loginCommand = "slipway login"

func linkOver() page {
	return page{Title: "This link no longer works", Command: loginCommand,
		Text: "A login link works once and for a short time. Get a new one with this command."}
}

// localPath returns next if it is a path of this server, else "/". A path that
// a browser could read as another host is none.
func localPath(next string) string {
	parsed, err := url.Parse(next)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}
