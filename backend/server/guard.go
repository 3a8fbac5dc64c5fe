package server

import (
	"crypto/hmac"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/session"
)

// ServeHTTP authorizes a request and passes it to the app, the API or the user interface.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	if fromStranger(r) {
		s.fail(w, r, strangerError())
		return
	}
	name, ok := s.hostName(r)
	if !ok {
		s.fail(w, r, session.NewError(session.CodeOriginForbidden, fmt.Sprintf("%q is not a name of this server.",
			clip(r.Host)), "Use http://127.0.0.1 with the port that slipway serve names."))
		return
	}
	if app, isApp := parseAppHost(name); isApp {
		s.apps.serve(w, r, app)
		return
	}
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	api := strings.HasPrefix(r.URL.Path, "/api/")
	if !fromOwnPage(r) && (api || !isNavigation(r)) {
		s.fail(w, r, session.NewError(session.CodeOriginForbidden, "This request comes from another page.",
			"Open Slipway itself: slipway login --open"))
		return
	}
	switch {
	case r.URL.Path == "/login":
		s.login(w, r)
	case strings.HasPrefix(r.URL.Path, passPath):
		s.usePass(w, r)
	case !api:
		s.ui.ServeHTTP(w, r)
	case !s.known(r):
		s.fail(w, r, session.NewError(session.CodeLoginRequired, "You are not logged in here.",
			"Run slipway login for a link that logs you in."))
	default:
		s.serveAPI(w, r)
	}
}

// hostName returns the host that a request names, in lower case and without the port. It must be one of ours with the
// port that the request arrived at, which stops DNS rebinding.
func (s *Server) hostName(r *http.Request) (string, bool) {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return "", false
	}
	_, localPort, err := net.SplitHostPort(local.String())
	if err != nil {
		return "", false
	}
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil || port != localPort {
		return "", false
	}
	host = strings.ToLower(host)
	if host == "127.0.0.1" || host == "localhost" {
		return host, true
	}
	_, ok = parseAppHost(host)
	return host, ok
}

// appHost identifies an app of a session, as its host name does.
type appHost struct {
	app     string
	session session.ID
}

var appHostRule = regexp.MustCompile(`^([a-z0-9]+(?:-[a-z0-9]+)*)-([a-z0-9]{12})\.localhost$`)

func parseAppHost(name string) (appHost, bool) {
	match := appHostRule.FindStringSubmatch(name)
	if match == nil {
		return appHost{}, false
	}
	return appHost{app: match[1], session: session.ID(match[2])}, true
}

// valid reports whether the host name of the app can be parsed back: its parts come from agents.
func (a appHost) valid() bool {
	parsed, ok := parseAppHost(a.name())
	return ok && parsed == a && len(a.app) <= longestApp
}

// longestApp keeps the first label of the host name within the 63 bytes of DNS.
const longestApp = 63 - len("-") - 12

func (a appHost) name() string { return a.app + "-" + string(a.session) + ".localhost" }

// fromOwnPage reports whether a request comes from a page of the host that it names or, as those of the command line,
// from no page at all.
func fromOwnPage(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" && !strings.EqualFold(origin, "http://"+r.Host) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	}
	return false
}

// isNavigation reports whether a request only opens a page, as any link on any page may.
func isNavigation(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	mode, dest := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	return r.Header.Get("Origin") == "" && mode == "navigate" && (dest == "" || dest == "document")
}

// known reports whether a request carries the token or a login cookie.
func (s *Server) known(r *http.Request) bool {
	if header := r.Header.Get("Authorization"); header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		return ok && subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) == 1
	}
	return s.hasSeal(r, cookieName(r), "login")
}

// hasSeal reports whether a request has a valid cookie of a name. There may be several: any page on this address can
// set one of that name with a path of its own, which then comes first.
func (s *Server) hasSeal(r *http.Request, name, purpose string) bool {
	return slices.ContainsFunc(r.CookiesNamed(name), func(c *http.Cookie) bool {
		text, signature, ok := strings.Cut(c.Value, ".")
		return ok && hmac.Equal([]byte(signature), []byte(s.sign(purpose, text)))
	})
}

// cookieName includes the port because cookies do not distinguish ports: otherwise two servers would log each other's
// browsers out.
func cookieName(r *http.Request) string {
	return ownCookies + portOf(r)
}

func portOf(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host, ":")
	return port
}

// seal returns a cookie's value for one purpose: a random text and its signature. It is valid as long as the token is,
// also after a restart.
func (s *Server) seal(purpose string) string {
	text := randomText()
	return text + "." + s.sign(purpose, text)
}

func (s *Server) sign(purpose, text string) string {
	return hex.EncodeToString(derive(string(s.key), strconv.Itoa(len(purpose))+" "+purpose+" "+text))
}
