package demo

import (
	"context"
	"net"
	"sync"

	"slipway/tunnel"
)

// Lid is the lid of a laptop, which has no connections while it is closed. Its methods are safe for concurrent use. The
// zero value is open.
type Lid struct {
	mu     sync.Mutex // guards the fields below
	closed bool
	open   map[*lidConn]struct{}
}

// Close cuts all connections and prevents new ones until [Lid.Open].
func (l *Lid) Close() {
	l.mu.Lock()
	l.closed = true
	cut := l.open
	l.open = nil
	l.mu.Unlock()
	for conn := range cut {
		_ = conn.Conn.Close()
	}
}

// Open allows new connections.
func (l *Lid) Open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = false
}

// Closed reports whether the lid is closed.
func (l *Lid) Closed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// Through returns a dialer whose connections the lid cuts.
func (l *Lid) Through(d tunnel.Dialer) tunnel.Dialer { return &lidDialer{l, d} }

type lidDialer struct {
	lid    *Lid
	dialer tunnel.Dialer
}

func (d *lidDialer) Dial(ctx context.Context, silent bool) (net.Conn, error) {
	if d.lid.Closed() {
		return nil, shut()
	}
	conn, err := d.dialer.Dial(ctx, silent)
	if err != nil {
		return nil, err
	}
	return d.lid.admit(conn)
}

func shut() error {
	return &tunnel.Fault{Code: tunnel.CodeUnreachable, Message: "The lid of the laptop is closed.",
		Hint: "Open it: the button stands beside the mark of the demo."}
}

// admit adds a new connection unless the lid was closed in the meantime.
func (l *Lid) admit(conn net.Conn) (net.Conn, error) {
	carrier, proved := conn.(tunnel.Carrier)
	if proved {
		conn = carrier.Conn
	}
	through := &lidConn{Conn: conn, lid: l}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		_ = conn.Close()
		return nil, shut()
	}
	if l.open == nil {
		l.open = map[*lidConn]struct{}{}
	}
	l.open[through] = struct{}{}
	l.mu.Unlock()
	if proved {
		return tunnel.Carrier{Conn: through, Peer: carrier.Peer}, nil
	}
	return through, nil
}

type lidConn struct {
	net.Conn
	lid *Lid
}

func (c *lidConn) Close() error {
	c.lid.mu.Lock()
	delete(c.lid.open, c)
	c.lid.mu.Unlock()
	return c.Conn.Close()
}

// NetConn returns the underlying connection, for options of its socket.
func (c *lidConn) NetConn() net.Conn { return c.Conn }
