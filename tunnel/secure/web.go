package secure

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxWebHeader  = 8 << 10  // bytes of a request
	maxWebMessage = 64 << 10 // bytes; one write of TLS has at most 17 KiB after the handshake
	maxWebWrite   = 32 << 10
)

// webConn is a connection of the web's look, below HTTP.
type webConn struct {
	net.Conn
	raw   net.Conn
	leave func() // gives its place among the pending back
}

// Close implements net.Conn.
func (c *webConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// webServer speaks just enough HTTP to open WebSockets.
type webServer struct {
	server http.Server
	conns  chan net.Conn
	done   chan struct{}
	end    func()
}

type webConnKey struct{}

// newWebServer calls opened, in a goroutine of its own that close waits for, with each WebSocket.
func newWebServer(handshake time.Duration, opened func(inner, raw net.Conn, leave func())) *webServer {
	w := &webServer{conns: make(chan net.Conn), done: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.done) })
	upgrader := websocket.Upgrader{
		HandshakeTimeout: handshake,
		// no page has business here
		CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "" },
	}
	w.server = http.Server{
		ReadHeaderTimeout: handshake, ReadTimeout: handshake, WriteTimeout: handshake,
		MaxHeaderBytes: maxWebHeader,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, webConnKey{}, c)
		},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			conn, ok := r.Context().Value(webConnKey{}).(*webConn)
			if !ok || r.URL.Path != webPath || !websocket.IsWebSocketUpgrade(r) {
				http.NotFound(rw, r)
				return
			}
			ws, err := upgrader.Upgrade(rw, r, nil)
			if err != nil {
				return // it has answered
			}
			opened(newWebSocket(ws), conn.raw, conn.leave)
		}),
		ErrorLog: log.New(io.Discard, "", 0), // of who is not paired
	}
	w.server.SetKeepAlivesEnabled(false)
	return w
}

func (w *webServer) serve() { _ = w.server.Serve(webListener{w}) }

// hand gives the server a connection.
func (w *webServer) hand(conn net.Conn) {
	select {
	case w.conns <- conn:
	case <-w.done:
		_ = conn.Close()
	}
}

func (w *webServer) close() {
	w.end()
	_ = w.server.Close()
}

// webListener accepts what hand gives.
type webListener struct{ w *webServer }

// Accept implements net.Listener.
func (l webListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.w.conns:
		return conn, nil
	case <-l.w.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l webListener) Close() error {
	l.w.end()
	return nil
}

// Addr implements net.Listener.
func (webListener) Addr() net.Addr { return &net.TCPAddr{} }

// webSocket makes a stream of bytes of a WebSocket's messages. As with TLS, a deadline that passes ends the connection
// for good.
type webSocket struct {
	*websocket.Conn
	reader io.Reader // of all messages
}

func newWebSocket(ws *websocket.Conn) *webSocket {
	ws.SetReadLimit(maxWebMessage)
	return &webSocket{Conn: ws, reader: websocket.JoinMessages(ws, "")}
}

// Read implements net.Conn; one goroutine at a time.
func (c *webSocket) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		err = io.EOF
	}
	return n, err
}

// Write implements net.Conn; one goroutine at a time, which TLS sees to.
func (c *webSocket) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		part := p[:min(len(p), maxWebWrite)]
		if err := c.WriteMessage(websocket.BinaryMessage, part); err != nil {
			return written, err
		}
		written += len(part)
		p = p[len(part):]
	}
	return written, nil
}

// SetDeadline implements net.Conn.
func (c *webSocket) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

var _ net.Conn = (*webSocket)(nil)
