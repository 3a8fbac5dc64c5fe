package shell

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// listener is a port on a world's loopback, which only the world reaches.
type listener struct {
	conns chan net.Conn
	done  chan struct{}
	port  int
	close func()
}

func (w *World) listen(port int) (net.Listener, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ports[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &listener{conns: make(chan net.Conn), done: make(chan struct{}), port: port}
	l.close = sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.ports, port)
		close(l.done)
	})
	if w.ports == nil {
		w.ports = map[int]*listener{}
	}
	w.ports[port] = l
	return l, nil
}

// Listening returns the ports in use, sorted.
func (w *World) Listening() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.ports))
}

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
	l.close()
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }

// portOption is the port in the arguments of a server.
var portOption = regexp.MustCompile(`(?:^| )(?:-p |--port=)(\S*)`)

// serve serves a port until the command ends. It ignores all other arguments.
func (c *command) serve(handler http.Handler) int {
	port := 8000
	if option := portOption.FindStringSubmatch(strings.Join(c.operands, " ")); option != nil {
		port, _ = strconv.Atoi(option[1]) // 0 is refused
	}
	return c.serveOn(port, handler, "serving on port %d\n")
}

// serveOn prints greeting with the port once it listens.
func (c *command) serveOn(port int, handler http.Handler, greeting string) int {
	if port < 1024 || port > 65535 {
		return c.fail("the port must be a number from 1024 to 65535")
	}
	l, err := c.world.listen(port)
	if err != nil {
		return c.fail("port %d: Address already in use", port)
	}
	c.printf(greeting, port)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return c.ctx }}
	stop := context.AfterFunc(c.ctx, func() { server.Close() }) //nolint:errcheck // it ends either way
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return c.fail("%v", err)
	}
	return 130
}

// Install adds a program that serves pages on the port in its arguments.
func (w *World) Install(name string, handler http.Handler) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Servers == nil {
		w.Servers = map[string]http.Handler{}
	}
	w.Servers[name] = handler
}

func serveFiles(c *command) int {
	m, rel := c.world.FS.resolve(c.dir)
	tree, err := fs.Sub(m.root.FS(), rel)
	if err != nil {
		return c.fail("%s: %s", c.dir, errText(err))
	}
	return c.serve(http.FileServerFS(tree))
}

// servePages is a program of an image that serves pages. Small builds of Slipway, such as for agents, have no handler.
func servePages(handler http.Handler) utility {
	return utility{run: func(c *command) int {
		if handler == nil {
			c.fail("this build of Slipway has no notebook for simulated sessions. " +
				"Use the full program or a machine with Docker.")
			return 127
		}
		return c.serve(handler)
	}}
}
