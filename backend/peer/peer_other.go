//go:build !linux

package peer

import "net"

// Known means that this operating system does not report the process at the other end. The modes of sockets and their
// directories exclude other users, and containers run in a virtual machine, which cannot reach sockets of this machine.
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
