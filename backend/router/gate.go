package router

import (
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// guard refuses what a page of another origin can make a browser send, and host names that others can make resolve to
// this machine.
func (r *Router) guard(request *http.Request) *problem {
	if !r.ours(request.Host) {
		return refused(http.StatusForbidden, "forbidden_host", "The Host header names another machine.")
	}
	for _, origin := range request.Header.Values("Origin") {
		if page, err := url.Parse(origin); err != nil || !strings.EqualFold(page.Host, request.Host) {
			return foreign()
		}
	}
	switch site := request.Header.Get("Sec-Fetch-Site"); {
	case site == "" || site == "same-origin" || site == "none":
	case request.Method == http.MethodGet && request.Header.Get("Sec-Fetch-Mode") == "navigate":
	default:
		return foreign()
	}
	return nil
}

func foreign() *problem {
	return refused(http.StatusForbidden, "forbidden_origin", "This request comes from a page of another origin.")
}

func (r *Router) ours(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsLoopback() {
		return true
	}
	return strings.EqualFold(host, "localhost") || r.config.Named(host)
}

// visitor is what a request shows of its token.
type visitor struct {
	presented bool
	hash      [sha256.Size]byte
}

func visitorOf(header http.Header) visitor {
	token := header.Get("X-Api-Key")
	if scheme, rest, ok := strings.Cut(header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		token = strings.TrimSpace(rest)
	}
	return visitor{presented: token != "", hash: sha256.Sum256([]byte(token))}
}

// standing says what a visitor may use at all.
type standing struct {
	any    bool // at least one service
	late   bool // their token was valid once
	closed bool // there are services that need a token
}

func (t *table) standing(v visitor, now time.Time) (s standing) {
	for _, one := range t.services {
		_, verdict := one.admit(v, now)
		s.any = s.any || verdict == welcome
		s.late = s.late || verdict == expired
		s.closed = s.closed || !one.Public
	}
	return s
}

// refusal returns why a visitor may use nothing, or nil.
func (s standing) refusal(v visitor) *problem {
	switch {
	case s.any:
		return nil
	case s.late:
		return lateToken()
	case v.presented:
		return wrongToken()
	}
	return needsToken()
}

// find returns the first service that matches and accepts the visitor, if possible one that can answer. Services that
// do not accept a visitor with a token are reported as absent, so that their existence does not leak.
func (t *table) find(v visitor, now time.Time, absent *problem, match func(*service) bool) (
	*service, *Token, *problem) {
	var found *service
	var token *Token
	for _, one := range t.services {
		if !match(one) || found != nil && (found.answers() || !one.answers()) {
			continue
		}
		if its, verdict := one.admit(v, now); verdict == welcome {
			found, token = one, its
		}
	}
	if found != nil {
		return found, token, nil
	}
	s := t.standing(v, now)
	if p := s.refusal(v); p != nil {
		return nil, nil, p
	}
	if !v.presented && s.closed {
		return nil, nil, needsToken()
	}
	return nil, nil, absent
}
