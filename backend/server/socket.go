package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/session"
)

const (
	pingEvery  = 20 * time.Second
	silentMost = 65 * time.Second // how long a client may leave pings unanswered
	writeMost  = 15 * time.Second // how long a client that can resume may take for one message
	// lingerMost is how long the server waits for the client to close after the last message, so that what is still on
	// its way arrives.
	lingerMost  = 5 * time.Second
	messageMost = 1 << 20   // the maximum length of a client's message, in bytes
	bufferMost  = 128 << 10 // the maximum size of a reused buffer, in bytes
	closeStatus = 4000      // added to an HTTP status to make a close code
)

// socket is the WebSocket of one request. A patient one waits for its client as long as the connection lasts: it
// neither pings nor limits a write.
type socket struct {
	*websocket.Conn
	cancel  context.CancelFunc
	patient bool
	in      bytes.Buffer // of the reader: the last message
}

type sockets struct {
	fail    func(http.ResponseWriter, *http.Request, error)
	buffers sync.Pool // of writers
}

// upgrade upgrades a request to a WebSocket. The context ends when the client no longer answers pings, when the server
// stops, or with cancel. ServeHTTP has checked host and origin.
func (s *sockets) upgrade(w http.ResponseWriter, r *http.Request, patient bool) (*socket, context.Context, error) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		return nil, nil, session.NewError(session.CodeWrongMethod, "This address speaks WebSocket only.",
			"Connect with ws:// in place of http://.")
	}
	upgrader := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 33 << 10, WriteBufferPool: &s.buffers,
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, r *http.Request, _ int, reason error) {
			s.fail(w, r, malformed("The WebSocket handshake is wrong.", reason))
		}}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return nil, nil, nil // Error has answered
	}
	ctx, cancel := context.WithCancel(r.Context())
	k := &socket{Conn: conn, cancel: cancel, patient: patient}
	conn.SetReadLimit(messageMost)
	conn.SetPongHandler(func(string) error { return k.awake() })
	go k.ping(ctx)
	return k, ctx, nil
}

// awake postpones the read deadline.
func (k *socket) awake() error {
	if k.patient {
		return nil
	}
	return k.SetReadDeadline(time.Now().Add(silentMost))
}

// hurry limits how long the next write may take.
func (k *socket) hurry() error {
	if k.patient {
		return k.SetWriteDeadline(time.Time{})
	}
	return k.SetWriteDeadline(time.Now().Add(writeMost))
}

// write sends one binary message.
func (k *socket) write(parts ...[]byte) error {
	if err := k.hurry(); err != nil {
		return err
	}
	writer, err := k.NextWriter(websocket.BinaryMessage)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := writer.Write(part); err != nil {
			return err
		}
	}
	return writer.Close()
}

// ping pings the client until ctx ends, and then closes the connection, which ends pending reads and writes.
func (k *socket) ping(ctx context.Context) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	defer k.Conn.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if !k.patient && k.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeMost)) != nil {
				k.cancel()
			}
		}
	}
}

// next reads one message, which is valid until the next call. The silence of the client is measured from this call, not
// from its last message.
func (k *socket) next() (kind int, message []byte, err error) {
	if err := k.awake(); err != nil {
		return 0, nil, err
	}
	kind, reader, err := k.NextReader()
	if err != nil {
		return 0, nil, err
	}
	if k.in.Cap() > bufferMost {
		k.in = bytes.Buffer{}
	}
	k.in.Reset()
	_, err = k.in.ReadFrom(reader)
	return kind, k.in.Bytes(), err
}

// discard reads until the client disconnects, and then cancels the context.
func (k *socket) discard() {
	defer k.cancel()
	for {
		if _, _, err := k.next(); err != nil {
			return
		}
	}
}

// end sends a close message and waits a moment for the client to receive what is on its way. gone is closed when the
// reader has ended.
func (k *socket) end(code int, reason string, gone <-chan struct{}) {
	defer k.cancel()
	message := websocket.FormatCloseMessage(code, reason)
	if k.WriteControl(websocket.CloseMessage, message, time.Now().Add(writeMost)) != nil {
		return
	}
	select {
	case <-gone:
	case <-time.After(lingerMost):
	}
}

// refuse reports a failure on an open socket: a text message with the Problem, then a close code of 4000 plus the HTTP
// status.
func (k *socket) refuse(err error, gone <-chan struct{}) {
	e := asError(err)
	text, marshalErr := json.Marshal(e)
	if marshalErr != nil || k.hurry() != nil || k.WriteMessage(websocket.TextMessage, text) != nil {
		k.cancel()
		return
	}
	k.end(closeStatus+e.Code.Status(), string(e.Code), gone)
}

// stream is what a socket carries in both directions.
type stream interface {
	io.Closer
	// take writes a message of the client; errBadMessage means that it is invalid.
	take(message []byte) error
	// send waits for the next piece and sends it; io.EOF is a regular end.
	send(to *socket) error
}

var errBadMessage = errors.New("invalid message")

// bridge upgrades a request and connects the socket with the stream that open opens.
func (s *sockets) bridge(w http.ResponseWriter, r *http.Request, patient bool,
	open func(context.Context) (stream, error)) error {
	conn, ctx, err := s.upgrade(w, r, patient)
	if conn == nil {
		return err
	}
	defer conn.cancel()
	conn.bridge(ctx, func() (stream, error) { return open(ctx) })
	return nil
}

// bridge opens a stream and connects it with the socket until either side ends. Each direction holds one message at a
// time and waits until the other side takes it.
func (k *socket) bridge(ctx context.Context, open func() (stream, error)) {
	gone := make(chan struct{})
	far, err := open()
	if err != nil {
		go func() { defer close(gone); k.discard() }()
		k.refuse(err, gone)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = far.Close() })
	defer stop()
	go func() {
		defer close(gone)
		k.takeAll(far)
		k.cancel()
	}()
	for err == nil {
		err = far.send(k)
	}
	switch {
	case errors.Is(err, io.EOF):
		k.end(websocket.CloseNormalClosure, "", gone)
	case ctx.Err() == nil:
		k.end(websocket.CloseInternalServerErr, "the stream broke", gone)
	}
	_ = far.Close()
}

// takeAll passes messages to the stream until the client disconnects. When the stream takes no more, it drops messages:
// the client is about to learn of the end.
func (k *socket) takeAll(far stream) {
	taking := true
	for {
		kind, message, err := k.next()
		if err != nil {
			return
		}
		if !taking || kind != websocket.BinaryMessage {
			continue
		}
		err = far.take(message)
		if errors.Is(err, errBadMessage) {
			_ = k.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(closeStatus+http.StatusBadRequest,
				string(session.CodeRequestInvalid)), time.Now().Add(time.Second))
			return
		}
		taking = err == nil
	}
}
