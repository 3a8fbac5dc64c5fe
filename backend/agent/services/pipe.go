package services

import (
	"context"
	"net"
	"sync"
)

// pipe is a listener in memory: each connection that is dialled is accepted at its other end.
type pipe struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

func newPipe() *pipe { return &pipe{accepted: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipe) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accepted <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.accepted:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "services" }
