//go:build !linux

package server

import "net/netip"

// ownerOf is not implemented on this operating system. Other users of the computer have neither the token, which is in
// a file that only its owner can read, nor a cookie or a one-time code; none of these is ever among the arguments of a
// process. One gap remains: a browser sends the cookie to a program of another user that listens on 127.0.0.1, because
// cookies do not distinguish ports.
func ownerOf(_, _ netip.AddrPort) (uid int, known bool) { return 0, false }
