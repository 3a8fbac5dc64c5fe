//go:build !linux

package tunnel

import "net"

// socket does nothing where the kernel's settings are not known.
type socket struct{}

func socketOf(net.Conn) socket { return socket{} }

func (socket) set(pathKind) {}

func (socket) pace(uint64) {}

func (socket) look() seen { return seen{} }
