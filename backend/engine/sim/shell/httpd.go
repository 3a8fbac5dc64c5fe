package shell

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"
)

// listener is one port of a world's loopback.
type listener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
	port  int
	world *World
}

// Listen takes a port of the world's loopback, which no other machine sees.
func (w *World) Listen(port int) (net.Listener, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports == nil {
		w.ports = map[int]*listener{}
	}
	if w.ports[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{}), port: port, world: w}
	w.ports[port] = l
	return l, nil
}

// Listening returns the ports that are taken, in their order.
func (w *World) Listening() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.ports))
}

// Dial connects to a port of the world's loopback.
func (w *World) Dial(ctx context.Context, port int) (net.Conn, error) {
	w.mu.Lock()
	l := w.ports[port]
	w.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.world.mu.Lock()
		delete(l.world.ports, l.port)
		l.world.mu.Unlock()
		close(l.done)
	})
	return nil
}

func (l *listener) Addr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port}
}

// serveFiles shows the directory that it is called in as web pages.
func serveFiles(c *command) int {
	f, operands, err := c.parse("p:", nil)
	if err != nil || len(operands) > 0 {
		return c.usage("[-p PORT]")
	}
	port, err := f.number('p', 8000)
	if err != nil || port < 1024 || port > 65535 {
		return c.fail("the port must be a number from 1024 to 65535")
	}
	m, rel := c.world.FS.resolve(c.dir)
	tree, err := fs.Sub(m.root.FS(), rel)
	if err != nil {
		return c.fail("%s: %s", c.dir, errText(err))
	}
	l, err := c.world.Listen(port)
	if err != nil {
		return c.fail("port %d: Address already in use", port)
	}
	c.printf("serving %s on port %d\n", c.dir, port)
	server := &http.Server{Handler: http.FileServerFS(tree),
		ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(c.ctx, func() { server.Close() }) //nolint:errcheck // it ends either way
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return c.fail("%v", err)
	}
	return 130
}
