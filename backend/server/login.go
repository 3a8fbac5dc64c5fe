package server

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

const (
	codeLife = time.Minute // how long a login code or an app's ticket is valid
	// FirstCodeLife is how long the code that a control plane prints at its start is valid: the person may not be at
	// the screen.
	FirstCodeLife = 10 * time.Minute
	codesMost     = 64                  // the number of valid codes; the oldest is dropped first
	cookieLife    = 30 * 24 * time.Hour // how long a browser stays logged in
)

func randomText() string { return strings.ToLower(rand.Text()) }

// codes issues single-use codes, each for one purpose. They have 130 random bits. Wrong ones are not counted: any page
// could send some and lock the person out.
type codes struct {
	mu    sync.Mutex // guards what follows
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

// exchange consumes a code and returns its purpose.
func (c *codes) exchange(text string) (purpose string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.given[text]
	delete(c.given, text)
	return found.purpose, ok && time.Now().Before(found.expires)
}

// take consumes a code and reports whether it was for that purpose.
func (c *codes) take(text, purpose string) bool {
	found, ok := c.exchange(text)
	return ok && found == purpose
}

func (s *Server) createLoginLink(r *http.Request) (api.LoginLink, error) {
	return api.LoginLink{URL: homeOf(r) + "login?code=" + s.logins.give("login")}, nil
}

// LoginCode returns a code that logs a browser in once, at /login?code=, within life.
func (s *Server) LoginCode(life time.Duration) string { return s.logins.giveFor("login", life) }

// login exchanges a one-time code for a cookie and forwards to the requested page.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	if !s.onlyGet(w, r) {
		return
	}
	valid := s.logins.take(r.URL.Query().Get("code"), "login")
	if !s.hasSeal(r, cookieName(r), "login") {
		if !valid {
			showPage(w, http.StatusForbidden, linkOver)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.seal("login"), Path: "/",
			MaxAge: int(cookieLife.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	forward(w, localPath(r.URL.Query().Get("next")))
}

var linkOver = page{Title: "This link no longer works", Command: "slipway login",
	Text: "A login link works once and for a short time. Get a new one with this command."}

// localPath returns next if it is a path of this server, else "/". A path that a browser could take for another host is
// not.
func localPath(next string) string {
	parsed, err := url.Parse(next)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// passPath is the prefix of the path of a pass. Every user of the computer can read the arguments of a browser, so it
// is started with a pass: an address that leads to the login link, but only over a connection of a user who may use
// this server. If the operating system does not tell the user of a connection, there is no pass, and the browser gets
// the address in a file of the person's own.
const passPath = "/pass/"

func (s *Server) createPass(r *http.Request, req api.PassRequest) (api.Pass, error) {
	if !s.own(req.URL, portOf(r)) {
		return api.Pass{}, session.NewError(session.CodeRequestInvalid, "This is not an address of this server.",
			"Use one that it has answered with.")
	}
	if !fromOwnUser(r.Context()) {
		return api.Pass{}, session.NewError(session.CodeServerFailed,
			"The operating system does not report the owner of a connection.",
			"Hand the address to the browser in a file that only you can read.")
	}
	return api.Pass{URL: homeOf(r) + passPath[1:] + s.passes.give(req.URL)}, nil
}

// own reports whether an address is one of this server or of a port that it opened for an app.
func (s *Server) own(address, port string) bool {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" || parsed.User != nil ||
		strings.ContainsFunc(address, session.Unprintable) {
		return false
	}
	app, isApp := parseAppHost(parsed.Hostname())
	if isApp {
		if one := s.doors.of(app); one != nil && strconv.Itoa(one.port) == parsed.Port() {
			return true
		}
	}
	return parsed.Port() == port && (isApp || parsed.Hostname() == "127.0.0.1")
}

// usePass forwards to the address of a pass.
func (s *Server) usePass(w http.ResponseWriter, r *http.Request) {
	if !s.onlyGet(w, r) {
		return
	}
	if fromOwnUser(r.Context()) {
		if address, ok := s.passes.exchange(strings.TrimPrefix(r.URL.Path, passPath)); ok {
			forward(w, address)
			return
		}
	}
	showPage(w, http.StatusForbidden, linkOver)
}

// fromOwnUser reports whether a connection is certainly of a user who may use this server.
func fromOwnUser(ctx context.Context) bool {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok || len(p.allowed) == 0 {
		return false
	}
	owner, known := ownerOf(p.remote, p.local)
	return known && slices.Contains(p.allowed, owner)
}
