package sshstdio

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// carrier is the far command's input and output.
type carrier struct {
	net.Conn
	child *child
	ended func() // called once after the end; may be nil

	pending []byte // what came with the mark; only Read touches it after the start
	closing sync.Once
	closed  bool // guarded by mu
	mu      sync.Mutex
}

// awaitMark returns once the far command is about to start.
func (c *carrier) awaitMark(ctx context.Context, mark string, asking *questions) error {
	var refused <-chan struct{}
	if asking != nil {
		refused = asking.refused
	}
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
		case <-refused:
		case <-over:
			return
		}
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}()
	rest, err := skipNoise(c.Conn, mark)
	close(over)
	<-watched
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	c.pending = rest
	return c.SetReadDeadline(time.Time{})
}

// Read reads what the far command writes. When ssh has failed it returns a
// tunnel.Fault that says why rather than the end of the file.
func (c *carrier) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p)
	if n > 0 || c.isClosed() {
		return n, err
	}
	if errors.Is(err, syscall.ECONNRESET) { // ssh ended with input unread
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = c.child.lastFault(err)
	}
	return n, err
}

func (c *carrier) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// CloseWrite ends this side's bytes.
func (c *carrier) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close ends the connection and, soon after, ssh.
func (c *carrier) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		c.mu.Lock()
		c.closed = true
		c.mu.Unlock()
		err = c.Conn.Close()
		go func() {
			c.child.end(false)
			if c.ended != nil {
				c.ended()
			}
		}()
	})
	return err
}

// RemoteAddr and LocalAddr say no more than that it is ssh.
func (c *carrier) RemoteAddr() net.Addr { return sshAddr{} }

// LocalAddr implements net.Conn.
func (c *carrier) LocalAddr() net.Addr { return sshAddr{} }

type sshAddr struct{}

func (sshAddr) Network() string { return "ssh" }
func (sshAddr) String() string  { return "ssh" }
