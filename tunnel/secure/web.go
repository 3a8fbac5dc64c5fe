package secure

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

const (
	maxWebHeader  = 8 << 10  // bytes of a request
	maxWebMessage = 64 << 10 // bytes
	maxWebWrite   = 32 << 10
)

// webConn is a connection that speaks HTTP.
type webConn struct {
	net.Conn
	raw   net.Conn
	leave func() // see [Listener.receive]
}

func (c *webConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// webServer opens WebSockets on the connections that it is handed. It is the net.Listener of its own HTTP server.
type webServer struct {
	server http.Server
	conns  chan net.Conn
	done   chan struct{}
}

type webConnKey struct{}

// newWebServer calls opened with each WebSocket, in a goroutine of its own.
func newWebServer(handshake time.Duration, opened func(inner, raw net.Conn, leave func())) *webServer {
	w := &webServer{conns: make(chan net.Conn), done: make(chan struct{})}
	upgrader := websocket.Upgrader{
		HandshakeTimeout: handshake,
		CheckOrigin:      func(r *http.Request) bool { return r.Header.Get("Origin") == "" }, // no web page
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
		ErrorLog: log.New(io.Discard, "", 0), // clients that are not paired could fill it
	}
	w.server.SetKeepAlivesEnabled(false)
	return w
}

// hand passes a connection to the server.
func (w *webServer) hand(conn net.Conn) {
	select {
	case w.conns <- conn:
	case <-w.done:
		_ = conn.Close()
	}
}

func (w *webServer) Accept() (net.Conn, error) {
	select {
	case conn := <-w.conns:
		return conn, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

// Close is called once by the HTTP server, when it is closed.
func (w *webServer) Close() error {
	close(w.done)
	return nil
}

func (w *webServer) Addr() net.Addr { return &net.TCPAddr{} }

// webSocket is the stream of bytes in a WebSocket's messages. As with TLS, a deadline that passes ends the connection
// for good.
type webSocket struct {
	*websocket.Conn
	reader io.Reader // of all messages
}

func newWebSocket(ws *websocket.Conn) *webSocket {
	ws.SetReadLimit(maxWebMessage)
	return &webSocket{Conn: ws, reader: websocket.JoinMessages(ws, "")}
}

// Read is for one goroutine at a time.
func (c *webSocket) Read(p []byte) (int, error) {
	n, err := c.reader.Read(p)
	if websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway) {
		err = io.EOF
	}
	return n, err
}

// Write is for one goroutine at a time, as TLS calls it.
func (c *webSocket) Write(p []byte) (int, error) {
	written := 0
	for part := range slices.Chunk(p, maxWebWrite) {
		if err := c.WriteMessage(websocket.BinaryMessage, part); err != nil {
			return written, err
		}
		written += len(part)
	}
	return written, nil
}

func (c *webSocket) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

var _ net.Conn = (*webSocket)(nil)
