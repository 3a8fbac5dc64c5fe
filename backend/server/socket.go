package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/session"
)

const (
	pingEvery = 20 * time.Second
	// silentMost is how long a client may go without an answer to pings.
	silentMost = 65 * time.Second
	// writeMost is how long one message may take to be taken by a client that
	// can come back and go on where it was.
	writeMost = 15 * time.Second
	// lingerMost is how long the server waits for the client to close after it
	// has said all, so that nothing that is still on its way is cut off.
	lingerMost = 5 * time.Second
	// messageMost is the longest message a client may send, in bytes.
	messageMost = 1 << 20
	// bufferMost is how much of that is kept for the next message, in bytes.
	bufferMost = 128 << 10
	// closeStatus is added to an HTTP status to make a close code.
	closeStatus = 4000
)

// socket is a WebSocket of one request. A patient one waits for its client as
// long as the connection stands: it neither pings nor limits a write.
type socket struct {
	*websocket.Conn
	cancel  context.CancelFunc
	patient bool
	in      bytes.Buffer // the reader's: the message read last
}

// sockets makes WebSockets of requests.
type sockets struct {
	log     *slog.Logger
	buffers sync.Pool // for what is written
}

// upgrade makes a WebSocket of a request. The context ends when the client no
// longer answers pings, when the server stops, or with close. The guard has
// judged host and origin before.
func (s *sockets) upgrade(w http.ResponseWriter, r *http.Request, patient bool) (*socket, context.Context, error) {
	if !websocket.IsWebSocketUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		return nil, nil, session.NewError(session.CodeWrongMethod, "This address speaks WebSocket only.",
			"Connect with ws:// in place of http://.")
	}
	upgrader := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 33 << 10, WriteBufferPool: &s.buffers,
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(w http.ResponseWriter, r *http.Request, _ int, reason error) {
			answerFailure(s.log, w, r, malformed("The WebSocket handshake is wrong.", reason))
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

// awake puts off the moment at which the client counts as gone.
func (k *socket) awake() error {
	if k.patient {
		return nil
	}
	return k.SetReadDeadline(time.Now().Add(silentMost))
}

// hurry limits how long the next message may take.
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

// ping asks for signs of life until ctx ends, and then breaks whatever read or
// write still waits for the client.
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

// next reads one message, which is valid until the next call. The client counts
// as silent from now on, not since the last message: the time in between was ours.
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

// discard reads until the client is gone, which ends ctx.
func (k *socket) discard() {
	defer k.cancel()
	for {
		if _, _, err := k.next(); err != nil {
			return
		}
	}
}

// reject closes because a message is against the protocol.
func (k *socket) reject() {
	message := websocket.FormatCloseMessage(closeStatus+http.StatusBadRequest, string(session.CodeRequestInvalid))
	_ = k.WriteControl(websocket.CloseMessage, message, time.Now().Add(time.Second)) // it is closed either way
}

// end closes in good order: a close message, then a moment for the client to
// take in what is on its way. gone is closed when the reader has seen its end.
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

// refuse tells a failure on an open socket: one text message with the Problem,
// then a close code of 4000 and the HTTP status.
func (k *socket) refuse(err error, gone <-chan struct{}) {
	e := asError(err)
	text, marshalErr := json.Marshal(e)
	if marshalErr != nil || k.hurry() != nil || k.WriteMessage(websocket.TextMessage, text) != nil {
		k.cancel()
		return
	}
	k.end(closeStatus+e.Code.Status(), string(e.Code), gone)
}

// stream is what a socket carries: messages to it and from it.
type stream interface {
	io.Closer
	// take writes what a client has sent; errBadMessage means that it is not valid.
	take(message []byte) error
	// send waits for the next piece and sends it; io.EOF is a regular end.
	send(to *socket) error
}

var errBadMessage = errors.New("invalid message")

// bridge opens a stream and carries it over the socket until either side ends.
// Each direction holds one message at a time and waits for the other side to take
// it.
func (k *socket) bridge(ctx context.Context, open func() (stream, error)) {
	gone := make(chan struct{})
	far, err := open()
	if err != nil {
		go func() { defer close(gone); k.discard() }()
		k.refuse(err, gone)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = far.Close() }) // frees whoever waits for the stream
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

// takeAll hands messages to the stream until the client is gone. Once the stream
// takes no more, messages are read and dropped: the client is about to learn of
// the end.
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
			k.reject()
			return
		}
		taking = err == nil
	}
}
