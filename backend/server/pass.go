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

// passPath is the prefix of the path of a pass. Every user of the computer can read the arguments of a browser, so it
// is started with a pass: an address that leads to the login link, but only over a connection of a user who may use
// this server. If the operating system does not tell the user of a connection, there is no pass, and the browser gets
// the address in a file of the person's own.
const passPath = "/pass/"

// createPass returns a pass for an address of this server.
func (s *Server) createPass(r *http.Request, req api.PassRequest) (api.Pass, error) {
	if !s.own(req.URL, portOf(r)) {
		return api.Pass{}, session.NewError(session.CodeRequestInvalid, "This is not an address of this server.",
			"Use one that it has answered with.")
	}
	if !fromOwnUser(r.Context()) {
		return api.Pass{}, session.NewError(session.CodeServerFailed,
			"The operating system does not tell whose a connection is.",
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
