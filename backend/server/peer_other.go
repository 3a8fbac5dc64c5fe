//go:build !linux

package server

import "net/netip"

// ownerOf knows nothing on this operating system. What keeps other users of the
// computer out here is that they have neither the token, which is in a file that
// only its owner can read, nor a cookie or a one-time code, which are made for
// whoever shows the token. Neither is ever among the arguments of a process, see
// pass.go. What does not protect here: a program of another user that listens on
// 127.0.0.1 and is visited by the same browser is sent the cookie, because
// cookies do not tell ports apart.
func ownerOf(_, _ netip.AddrPort) (uid int, known bool) { return 0, false }
