//go:build !linux

package peer

import "net"

// Known says that this operating system does not tell who is at the other end: the modes of sockets and of their
// directories keep others out. Containers run in a virtual machine here, from which no socket of this machine is
// reached.
const Known = false

type end struct{}

func of(*net.UnixConn) (*Process, error) { return nil, ErrUnknown }

// Close does nothing.
func (*Process) Close() error { return nil }

// Beside always fails.
func (*Process) Beside() error { return ErrUnknown }

// Capable reports false.
func (*Process) Capable(int) bool { return false }

// Users is unknown.
func (*Process) Users() uint64 { return 0 }
