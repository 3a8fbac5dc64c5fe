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

// String returns the name of the class in lower case.
func (c Class) String() string {
	switch c {
	case Control:
		return "control"
	case Interactive:
		return "interactive"
	case Bulk:
		return "bulk"
	}
	return "unknown"
}

// Stream is one stream of a tunnel. CloseWrite ends this side's bytes and lets the peer's still come; Close gives both
// directions up.
type Stream interface {
	net.Conn
	Class() Class
	CloseWrite() error
}

// Dialer opens carriers to one peer. A carrier is a connection that is authenticated at both ends and encrypted, or
// protected by the operating system as a unix socket is.
//
// Dial belongs to a tunnel's first carrier when silent is false: it may ask a person, for a password say, as long as
// ctx lives. A silent dial is for a further carrier of a tunnel that is up, or for a try while nobody watches: it fails
// with [ErrWouldAsk] rather than ask anything.
type Dialer interface {
	Dial(ctx context.Context, silent bool) (net.Conn, error)
}

// Peer says who is at the other end of a carrier, as the transport proved it.
type Peer struct {
	Transport string // "unix", "ssh", "tls" or "wss"
	Key       string // fingerprint of its key; empty where the operating system vouches
	Name      string // what the key was paired as, or the user of the unix socket
	Address   string // of the network, as far as known; for people, never for decisions
}

// Carrier is one accepted connection with its peer.
type Carrier struct {
	net.Conn
	Peer Peer
}
