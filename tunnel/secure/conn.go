package secure

import (
	"crypto/tls"
	"net"
	"sync"
)

// listened is the listener's end of a carrier.
type listened struct {
	*tls.Conn
	raw     net.Conn // of the network, below all encryption
	key     string
	clients *Clients
	ending  sync.Once
}

// Close ends the connection with what is still to be sent.
func (c *listened) Close() error {
	err := net.ErrClosed
	c.ending.Do(func() {
		err = c.Conn.Close()
		c.clients.release(c.key, cut{c})
	})
	return err
}

// NetConn is the network's connection, for options of its socket.
func (c *listened) NetConn() net.Conn { return c.raw }

// cut ends a connection at once: nothing more is sent and nothing is waited for.
type cut struct{ c *listened }

// Close implements io.Closer.
func (k cut) Close() error {
	err := k.c.raw.Close()
	_ = k.c.Close()
	return err
}

// dialed is the dialer's end of a carrier.
type dialed struct {
	*tls.Conn
	raw net.Conn

	mu       sync.Mutex // guards the following, while the first byte is awaited too
	admitted bool
	refused  error
}

// NetConn is the network's connection, for options of its socket.
func (c *dialed) NetConn() net.Conn { return c.raw }

// Read takes in first whether the listener lets us in, so that finding out costs no round trip.
func (c *dialed) Read(p []byte) (int, error) {
	if err := c.admission(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *dialed) admission() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admitted || c.refused != nil {
		return c.refused
	}
	var status [1]byte
	if _, err := c.Conn.Read(status[:]); err != nil {
		return err // a deadline may have passed; the byte is still to come
	}
	switch status[0] {
	case welcome:
		c.admitted = true
	case unpaired:
		c.refused = notPaired()
	case tooMany:
		c.refused = busy()
	default:
		c.refused = errProtocol
	}
	return c.refused
}
