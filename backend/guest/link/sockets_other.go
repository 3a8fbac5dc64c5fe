//go:build !linux

package link

import (
	"context"
	"errors"
	"net"
)

// sockets are handed over on Linux only.
type sockets struct{}

func receive(conn net.Conn) (net.Conn, *sockets) { return conn, nil }

func (*sockets) take() (socket *net.TCPConn, left int) { return nil, 0 }

func (*sockets) left() (left, came int) { return 0, 0 }

func (*sockets) connect(context.Context, *net.TCPConn, int) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// Giver hands nothing over.
type Giver struct{ net.Conn }

// NewGiver returns nil.
func NewGiver(net.Conn) *Giver { return nil }

// Give does nothing.
func (*Giver) Give(int) {}
