//go:build !linux

package server

import "net/netip"

// ownerOf knows nothing on this operating system.
func ownerOf(_, _ netip.AddrPort) (uid int, known bool) { return 0, false }
