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

// peer is the other end of a connection. Every program that listens on this address sees our cookies, whatever its port
// and user, because cookies do not distinguish ports. So a connection must also be of a user who may use this server,
// if the operating system tells the user.
type peer struct {
	local, remote netip.AddrPort
	allowed       []int // user ids; empty: all

	once    sync.Once
	foreign bool // set by once
}

type peerKey struct{}

// withPeer adds the addresses of a connection to its context.
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

// fromStranger reports whether a request's connection is of a user who may not use this server.
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

// noOwner is the user id of a connection that no process holds any more.
const noOwner = -1

func strangerError() error {
	return session.NewError(session.CodeOriginForbidden, "This Slipway belongs to another user of this computer.",
		"Start your own: slipway serve")
}
