package server

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"slipway/backend/session"
)

// peer is whoever opened a connection. A cookie is seen by every program that
// listens on this address, whatever its port and its user, because cookies do
// not tell ports apart. So a connection must also come from a user who may use
// this server, where the operating system says whose it is.
type peer struct {
	local, remote netip.AddrPort
	allowed       []int // user ids; empty: anybody

	once    sync.Once
	foreign bool // set by once
}

type peerKey struct{}

// withPeer remembers whom to ask about when the first request comes.
func (s *Server) withPeer(ctx context.Context, conn net.Conn) context.Context {
	p := &peer{allowed: s.users}
	if local, ok := conn.LocalAddr().(*net.TCPAddr); ok {
		p.local = local.AddrPort()
	}
	if remote, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		p.remote = remote.AddrPort()
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// fromStranger reports whether a request comes over a connection of a user who
// may not use this server.
func fromStranger(r *http.Request) bool {
	p, ok := r.Context().Value(peerKey{}).(*peer)
	if !ok || len(p.allowed) == 0 {
		return false
	}
	p.once.Do(func() {
		owner, known := ownerOf(p.remote, p.local)
		p.foreign = known && !slices.Contains(p.allowed, owner)
	})
	return p.foreign
}

// noOwner is the user id of a connection that nobody holds any more.
const noOwner = -1

func strangerError() error {
	return session.NewError(session.CodeOriginForbidden, "This Slipway belongs to another user of this computer.",
		"Start your own: slipway serve")
}
