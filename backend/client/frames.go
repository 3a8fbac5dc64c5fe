package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/gorilla/websocket"

	"slipway/backend/terminal"
)

// frameConn carries the frames of the terminal's protocols over a WebSocket:
// one binary message each. A text message is a Problem that ends the stream.
type frameConn struct {
	conn *websocket.Conn

	mu sync.Mutex // held for each write of a message
}

var _ terminal.Conn = (*frameConn)(nil)

// NewFrames carries frames over an open WebSocket.
func NewFrames(conn *websocket.Conn) terminal.Conn { return &frameConn{conn: conn} }

// Frames opens a WebSocket that carries frames of the terminal's protocols.
// first, unless nil, is sent before them as text.
func (c *Client) Frames(ctx context.Context, target string, first any) (terminal.Conn, error) {
	conn, err := c.Dial(ctx, target)
	if err != nil {
		return nil, err
	}
	if first != nil {
		if err := conn.WriteJSON(first); err != nil {
			return nil, errors.Join(&Lost{err}, conn.Close())
		}
	}
	return NewFrames(conn), nil
}

// ReadFrame returns the next frame, the problem that ended the stream, or
// io.EOF when the other side closed it in good order.
func (c *frameConn) ReadFrame() (terminal.Frame, error) {
	kind, message, err := c.conn.ReadMessage()
	if err != nil {
		return terminal.Frame{}, CloseProblem(err)
	}
	if kind == websocket.TextMessage {
		problem := &Refused{}
		if err := json.Unmarshal(message, &problem.Problem); err != nil {
			return terminal.Frame{}, &terminal.ProtocolError{Reason: "a text message is no problem"}
		}
		return terminal.Frame{}, problem
	}
	return terminal.ParseMessage(message)
}

// CloseProblem reads the reason of a close: a Problem where something failed.
func CloseProblem(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return &Lost{err}
	}
	problem := &Refused{}
	if json.Unmarshal([]byte(closed.Text), &problem.Problem) == nil && problem.Problem.Code != "" {
		return problem
	}
	if closed.Code == websocket.CloseNormalClosure {
		return io.EOF
	}
	return &Lost{err}
}

func (c *frameConn) WriteFrame(f terminal.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.WriteMessage(websocket.BinaryMessage, f.Message()); err != nil {
		return &Lost{err}
	}
	return nil
}

func (c *frameConn) Close() error { return c.conn.Close() }
