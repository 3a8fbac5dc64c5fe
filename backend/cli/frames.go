package cli

import (
	"encoding/json"
	"errors"
	"io"
	"sync"

	"github.com/gorilla/websocket"

	"slipway/backend/session"
	"slipway/backend/terminal"
)

// frameConn carries the frames of the terminal's protocols over a WebSocket:
// one binary message each. A text message is a Problem that ends the stream.
type frameConn struct {
	conn *websocket.Conn

	mu sync.Mutex // held for each write of a message
}

var _ terminal.Conn = (*frameConn)(nil)

func newFrameConn(conn *websocket.Conn) *frameConn { return &frameConn{conn: conn} }

// ReadFrame returns the next frame, the problem that ended the stream, or
// io.EOF when the other side closed it in good order.
func (c *frameConn) ReadFrame() (terminal.Frame, error) {
	kind, message, err := c.conn.ReadMessage()
	if err != nil {
		return terminal.Frame{}, closeProblem(err)
	}
	if kind == websocket.TextMessage {
		problem := &problemError{}
		if err := json.Unmarshal(message, &problem.Problem); err != nil {
			return terminal.Frame{}, &terminal.ProtocolError{Reason: "a text message is no problem"}
		}
		problem.status = statusOf(problem.Problem)
		return terminal.Frame{}, problem
	}
	return terminal.ParseMessage(message)
}

// closeProblem reads the reason of a close: a Problem where something failed.
func closeProblem(err error) error {
	var closed *websocket.CloseError
	if !errors.As(err, &closed) {
		return &lostError{err}
	}
	problem := &problemError{}
	if json.Unmarshal([]byte(closed.Text), &problem.Problem) == nil && problem.Problem.Code != "" {
		problem.status = statusOf(problem.Problem)
		return problem
	}
	if closed.Code == websocket.CloseNormalClosure {
		return io.EOF
	}
	return &lostError{err}
}

// statusOf gives a problem that came without a status of HTTP the one that
// decides its exit code.
func statusOf(problem session.Error) int {
	for detail, status := range detailStatus {
		if hasDetail(problem.Code, detail) {
			return status
		}
	}
	return 0
}

func (c *frameConn) WriteFrame(f terminal.Frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.conn.WriteMessage(websocket.BinaryMessage, f.Message()); err != nil {
		return &lostError{err}
	}
	return nil
}

func (c *frameConn) Close() error { return c.conn.Close() }
