package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/api"
	"slipway/backend/session"
)

// A browser is started with the address that it is to open among its arguments,
// where every user of the computer can read them. So that address is a pass: it
// leads to the address that logs in, but only a connection of a user who may use
// this server, as the operating system says. Where it cannot say, there is no
// pass, and the address goes to the browser in a file of the person's own.

// passPath begins the path of a pass.
const passPath = "/pass/"

// createPass keeps an address of ours for the browser that is being started.
func (s *Server) createPass(r *http.Request, req api.PassRequest) (api.Pass, error) {
	_, port, _ := strings.Cut(r.Host, ":")
	if !s.own(req.URL, port) {
		return api.Pass{}, session.NewError(session.CodeRequestInvalid, "This is not an address of this server.",
			"Use one that it has answered with.")
	}
	if !fromOwnUser(r.Context()) {
		return api.Pass{}, session.NewError(session.CodeServerFailed,
			"The operating system does not tell whose a connection is.",
			"Hand the address to the browser in a file that only you can read.")
	}
	return api.Pass{URL: "http://127.0.0.1:" + port + passPath + s.passes.give(req.URL)}, nil
}

// own reports whether an address leads to this server or to a port that it has
// opened for an app.
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

// usePass goes on to the address that a pass stands for.
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
	showPage(w, http.StatusForbidden, linkOver())
}

// fromOwnUser reports whether the operating system says that a connection is of
// a user who may use this server.
func fromOwnUser(ctx context.Context) bool {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok || len(p.allowed) == 0 {
		return false
	}
	owner, known := ownerOf(p.remote, p.local)
	return known && slices.Contains(p.allowed, owner)
}
