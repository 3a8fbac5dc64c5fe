// Package client finds the control plane of a folder, or starts one, and calls it:
// the routes of api/route, transfers of files, and WebSockets.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// Client asks one control plane, over connections that it keeps open.
type Client struct {
	URL     string // http://127.0.0.1:PORT
	Token   string // bearer token
	Serving place.Serving
	Started bool // it was started by the call that made this client
	HTTP    *http.Client
}

// New returns a client of the control plane at an address.
func New(url, token string) *Client {
	return &Client{URL: url, Token: token, HTTP: &http.Client{Transport: &http.Transport{}}} // no proxy: it is here
}

// Refused is the error of a call that the control plane answered with a failure.
type Refused struct {
	Problem session.Error
	Status  int // of HTTP; 0: it came over a WebSocket
}

func (e *Refused) Error() string { return e.Problem.Error() }

// Lost is the error of a call for which the control plane was not reached, or no
// longer.
type Lost struct{ Err error }

func (e *Lost) Error() string { return "the control plane does not respond: " + e.Err.Error() }
func (e *Lost) Unwrap() error { return e.Err }

// IsLost reports whether trying again may help: the connection broke, and no
// answer of the control plane's did it.
func IsLost(err error) bool {
	var lost *Lost
	var closed *websocket.CloseError
	var network net.Error
	return errors.As(err, &lost) || errors.As(err, &closed) || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// lost is err of a connection, or why ctx has ended.
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Lost{err}
}

// Header returns what says to the control plane who asks.
func (c *Client) Header() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.Token}}
}

// Call makes one request of the API; see [slipway/backend/api/route.Caller]. It
// fails with a [Refused] or a [Lost].
func (c *Client) Call(ctx context.Context, method, target string, in, out any) error {
	var body io.Reader
	header := http.Header{}
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
		header.Set("Content-Type", "application/json")
	}
	response, err := c.Transfer(ctx, method, target, header, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return lost(ctx, err)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return session.NewError(session.CodeServerAnswer,
			fmt.Sprintf("Invalid answer of the control plane to %s %s: %v.", method, target, err),
			"The running control plane may be of another version: slipway shutdown, then try again.")
	}
	return nil
}

// Sized is a body of a known length, in bytes.
type Sized struct {
	io.Reader
	Length int64
}

// Transfer sends one request with a body that is nil, [Sized] or small, and
// returns the answer if it is a good one. The caller closes its body.
func (c *Client) Transfer(ctx context.Context, method, target string, header http.Header,
	body io.Reader) (*http.Response, error) {
	sized, isSized := body.(Sized)
	if isSized {
		body = sized.Reader // which may be a file that the system sends
	}
	request, err := http.NewRequestWithContext(ctx, method, c.URL+target, body)
	if err != nil {
		return nil, err
	}
	if isSized {
		if request.ContentLength = sized.Length; sized.Length == 0 {
			request.Body = http.NoBody
		}
	}
	request.Header = c.Header()
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return nil, lost(ctx, err)
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer response.Body.Close()
		return nil, readRefused(response)
	}
	return response, nil
}

// readRefused reads the failure that a response tells.
func readRefused(response *http.Response) error {
	refused := &Refused{Status: response.StatusCode}
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || json.Unmarshal(data, &refused.Problem) != nil || refused.Problem.Code == "" {
		refused.Problem = session.Error{Code: session.CodeServerAnswer, Message: "The control plane answered " +
			response.Status + "."}
	}
	return refused
}

const handshakeTimeout = 30 * time.Second

// MessageBuffer holds the longest frame of a terminal's protocol, so that each is
// written and read in one piece.
const MessageBuffer = terminal.MaxData + 1<<10

// Dial opens a WebSocket.
func (c *Client) Dial(ctx context.Context, target string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: handshakeTimeout, ReadBufferSize: MessageBuffer,
		WriteBufferSize: MessageBuffer}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(c.URL, "http")+target, c.Header())
	if err == nil {
		return conn, nil
	}
	if response != nil && ctx.Err() == nil {
		defer response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			return nil, readRefused(response)
		}
	}
	return nil, lost(ctx, err)
}

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
