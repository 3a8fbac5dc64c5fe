package tunnel

import (
	"context"
	"net"
)

// Class says how urgently the bytes of a stream want to travel. It is chosen by the side that opens the stream and
// known to both sides.
type Class uint8

// The classes. Control carries requests and small answers, Interactive carries key strokes and what a person watches,
// and Bulk carries files, images and logs: only bulk is paced, and it never delays the other two by more than a few
// milliseconds.
const (
	Control Class = iota + 1
	Interactive
	Bulk
)

func (c Class) String() string {
	names := [...]string{Control: "control", Interactive: "interactive", Bulk: "bulk"}
	if c < Control || c > Bulk {
		return "unknown"
	}
	return names[c]
}

// Stream is one stream of a tunnel. CloseWrite ends only this side's bytes, Close both directions.
type Stream interface {
	net.Conn
	Class() Class
	CloseWrite() error
}

// Dialer opens carriers to one peer. A carrier is a connection that is authenticated at both ends and encrypted, or
// protected by the operating system as a unix socket is. Unless silent, Dial may ask a person, for example for a
// password, until ctx ends. A silent Dial fails with [ErrWouldAsk] instead.
type Dialer interface {
	Dial(ctx context.Context, silent bool) (net.Conn, error)
}

// Peer says who is at the other end of a carrier, as the transport proved it.
type Peer struct {
	Transport string // "unix", "ssh", "tls" or "wss"
	Key       string // fingerprint of its key; empty where the operating system vouches
	Name      string // what the key was paired as, or the user of the unix socket
	Address   string // network address if known; for people, never for decisions
}

// Carrier is one accepted connection with its peer.
type Carrier struct {
	net.Conn
	Peer Peer
}
