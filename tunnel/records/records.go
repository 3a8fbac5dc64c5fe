// Package records sends the records of one write of TLS together.
//
// crypto/tls writes each record, of at most 16 KiB, by a system call of its own. On a fast network that is most of what
// a relay does. So a connection below TLS keeps what TLS writes while a large [Conn.Write] is under way, and writes it
// at once when TLS has encrypted all of it.
package records

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

const (
	least   = 1 << 10   // a shorter write has one record, which needs no company
	keeping = 512 << 10 // the largest buffer that is kept, in bytes
)

// Lower is a connection below TLS.
type Lower struct {
	net.Conn

	mu      sync.Mutex // guards the following
	holding bool
	held    []byte
	failed  error // of an earlier write; TLS was told that it succeeded
}

// Below returns a connection that owns raw, to be handed to [tls.Client] or [tls.Server].
func Below(raw net.Conn) *Lower { return &Lower{Conn: raw} }

// NetConn returns the connection that it owns.
func (l *Lower) NetConn() net.Conn { return l.Conn }

// Write keeps p while a [Conn.Write] is under way, else it writes p. Once a write has failed all do.
func (l *Lower) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.failed != nil:
		return 0, l.failed
	case l.holding:
		l.held = append(l.held, p...)
		return len(p), nil
	}
	n, err := l.Conn.Write(p)
	l.failed = err
	return n, err
}

func (l *Lower) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding = true
}

// release writes what was kept.
func (l *Lower) release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holding = false
	if l.failed != nil || len(l.held) == 0 {
		return l.failed
	}
	_, l.failed = l.Conn.Write(l.held)
	if l.held = l.held[:0]; cap(l.held) > keeping {
		l.held = nil
	}
	return l.failed
}

// Conn is a connection of TLS above a [Lower].
type Conn struct {
	*tls.Conn
	lower *Lower

	writing sync.Mutex  // held by the Write that is under way
	under   atomic.Bool // a Write is
}

// Of returns a connection that owns c. What is not above a [Lower] writes each record by itself.
func Of(c *tls.Conn) *Conn {
	lower, _ := c.NetConn().(*Lower)
	return &Conn{Conn: c, lower: lower}
}

// Write returns when all of p is written. Where the network takes only a part, none of p counts as written, and nothing
// more can be.
func (c *Conn) Write(p []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.lower == nil || len(p) <= least {
		return c.Conn.Write(p)
	}
	c.under.Store(true)
	defer c.under.Store(false)
	c.lower.hold()
	n, err := c.Conn.Write(p)
	if failed := c.lower.release(); failed != nil {
		return 0, failed
	}
	return n, err
}

// Close says goodbye to the peer, unless a [Conn.Write] is under way, which it ends.
func (c *Conn) Close() error {
	if c.under.Load() { // else the goodbye would wait for the write
		_ = c.lower.Conn.Close()
	}
	return c.Conn.Close()
}
