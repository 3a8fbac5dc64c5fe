package secure

import (
	"net"
	"net/netip"
	"sync"
)

// gate bounds how many connections are being made, so that whoever is not
// paired can hold neither memory nor the places of those who are.
type gate struct {
	total, perAddress int

	mu      sync.Mutex // guards the following
	count   int
	byWhere map[netip.Prefix]int
}

// enter takes a place for a connection from an address. It returns how to give
// it back, which may be called more than once, or nil if there is none.
func (g *gate) enter(address net.Addr) (leave func()) {
	where := neighbourhood(address)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count >= g.total || g.byWhere[where] >= g.perAddress {
		return nil
	}
	if g.byWhere == nil {
		g.byWhere = map[netip.Prefix]int{}
	}
	g.count++
	g.byWhere[where]++
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.count--
		if g.byWhere[where]--; g.byWhere[where] == 0 {
			delete(g.byWhere, where)
		}
	})
}

// neighbourhood is what one person has: an IPv4 address or 64 bits of IPv6.
func neighbourhood(address net.Addr) netip.Prefix {
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return netip.Prefix{} // not of the internet: all in one
	}
	ip := from.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
