// Package client finds or starts the control plane of a folder and calls it: the routes of api/route, file transfers,
// and WebSockets.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api/route"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// Client calls one control plane.
type Client struct {
	URL     string // http://127.0.0.1:PORT
	Token   string // bearer token
	Serving place.Serving
	Started bool // started by the call that returned this client
	HTTP    *http.Client
}

// New returns a client of the control plane at an address.
func New(url, token string) *Client {
	return &Client{URL: url, Token: token, HTTP: &http.Client{Transport: &http.Transport{}}} // no proxy: it is local
}

// Refused is the error of a call that the control plane refused.
type Refused struct {
	Problem session.Error
	Status  int // of HTTP; 0: it came over a WebSocket
}

func (e *Refused) Error() string { return e.Problem.Error() }

// Lost is the error of a call during which the control plane was not reached.
type Lost struct{ Err error }

func (e *Lost) Error() string { return "the control plane does not respond: " + e.Err.Error() }
func (e *Lost) Unwrap() error { return e.Err }

// IsLost reports whether a new attempt may help: the connection broke, rather than the control plane refusing.
func IsLost(err error) bool {
	var lost *Lost
	var closed *websocket.CloseError
	var network net.Error
	return errors.As(err, &lost) || errors.As(err, &closed) || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// lost returns why ctx has ended, or err as a [Lost].
func lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Lost{err}
}

// Header returns the header that authenticates a request.
func (c *Client) Header() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.Token}}
}

// Call sends one request of the API; see [slipway/backend/api/route.Caller]. It fails with a [Refused] or a [Lost].
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

// Transfer sends one request with a body that is nil, [Sized] or small, and returns a successful response. The caller
// closes its body.
func (c *Client) Transfer(ctx context.Context, method, target string, header http.Header,
	body io.Reader) (*http.Response, error) {
	sized, isSized := body.(Sized)
	if isSized {
		body = sized.Reader // possibly a file, which the system sends
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

// readRefused returns the error in a response.
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

// MessageBuffer fits the longest frame of the terminal's protocol, so that each is written and read at once.
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

// frameConn sends the frames of the terminal's protocols over a WebSocket, one binary message each. A text message is a
// Problem that ends the stream.
type frameConn struct {
	conn *websocket.Conn

	mu sync.Mutex // held for each write of a message
}

var _ terminal.Conn = (*frameConn)(nil)

// NewFrames sends frames over an open WebSocket.
func NewFrames(conn *websocket.Conn) terminal.Conn { return &frameConn{conn: conn} }

// Frames opens a WebSocket for frames of the terminal's protocols. It first sends first as text, unless that is nil.
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

// ReadFrame returns the next frame, the problem that ended the stream, or io.EOF after a normal close.
func (c *frameConn) ReadFrame() (terminal.Frame, error) {
	kind, message, err := c.conn.ReadMessage()
	if err != nil {
		return terminal.Frame{}, CloseProblem(err)
	}
	if kind == websocket.TextMessage {
		problem := &Refused{}
		if err := json.Unmarshal(message, &problem.Problem); err != nil {
			return terminal.Frame{}, &terminal.ProtocolError{Reason: "a text message is not an error in JSON"}
		}
		return terminal.Frame{}, problem
	}
	return terminal.ParseMessage(message)
}

// CloseProblem returns the error that a close reports.
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

// StartOptions configures a control plane that is started in the background.
type StartOptions struct {
	Executable string        // empty: this program
	Engine     string        // docker, slurm, sim or auto; empty: the default
	Port       int           // 0: the default
	Timeout    time.Duration // until it answers; 0: 30 s
	Starting   func()        // called before one is started; may be nil
}

var (
	// ErrNotServing means that no control plane responds.
	ErrNotServing = errors.New("no control plane is running")
	// ErrNotStarted means that a control plane was started and did not respond.
	ErrNotStarted = errors.New("the control plane was started in vain")
)

const (
	probeTimeout = 2 * time.Second
	startTimeout = 30 * time.Second
	probePause   = 20 * time.Millisecond
)

// Connect finds the control plane of the folder. It fails with [ErrNotServing] if none responds.
func Connect(ctx context.Context, h place.Home) (*Client, error) {
	var token string
	serving, err := h.Serving()
	if err == nil {
		token, err = h.Token()
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotServing
	}
	if err != nil {
		return nil, err
	}
	connection := New(serving.URL, token)
	connection.Serving = serving
	if err := probe(ctx, connection); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotServing, err)
	}
	// A control plane removes what a dead one left before it listens, often on the same port. So a changed file was not
	// of the one that answered.
	if now, err := h.Serving(); err != nil || now != serving {
		return nil, errors.Join(ErrNotServing, err)
	}
	return connection, nil
}

// probe asks a control plane for its version. If it accepts the token of this folder, it belongs to the folder.
func probe(ctx context.Context, c *Client) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	defer c.HTTP.CloseIdleConnections()
	return route.Version.Call(ctx, c, nil)
}

// ConnectOrStart finds the control plane of the folder, or starts one in the background and waits until it responds. Of
// several that are started at once, the lock lets one stay, and all callers connect to that.
func ConnectOrStart(ctx context.Context, h place.Home, opts StartOptions) (*Client, error) {
	connection, err := Connect(ctx, h)
	if !errors.Is(err, ErrNotServing) {
		return connection, err
	}
	if opts.Starting != nil {
		opts.Starting()
	}
	started, err := start(h, opts)
	if err != nil {
		return nil, err
	}
	opts.Timeout = cmp.Or(opts.Timeout, startTimeout)
	ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
	defer cancel()
	exited := started.Exited
	for {
		connection, err := Connect(ctx, h)
		if err == nil {
			connection.Started = connection.Serving.PID == started.PID()
			if !connection.Started { // it must not take the folder over later
				started.Kill()
			}
			return connection, nil
		}
		if !errors.Is(err, ErrNotServing) {
			return nil, err
		}
		select {
		case <-exited:
			exited = nil // it cannot respond any more, but another process may hold the folder
			if lock, err := h.Lock(); err == nil {
				return nil, errors.Join(startFault(h, started, "it ended at once"), lock.Close())
			}
		case <-ctx.Done():
			return nil, startFault(h, started, fmt.Sprintf("it did not answer within %s", opts.Timeout))
		case <-time.After(probePause):
		}
	}
}

// start runs serve in the background with its output in the log file.
func start(h place.Home, opts StartOptions) (*place.Background, error) {
	program, err := place.Program(opts.Executable)
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--quiet"} // its output is a log, which must not contain a login code
	if opts.Engine != "" {
		args = append(args, "--engine", opts.Engine)
	}
	if opts.Port != 0 {
		args = append(args, "--port", fmt.Sprint(opts.Port))
	}
	return h.Start(h.LogFile(), os.Environ(), program, args...)
}

// startFault returns the error of a control plane that did not respond, with the last line that it wrote.
func startFault(h place.Home, started *place.Background, what string) error {
	message := "The control plane was started but " + what + "."
	if said := started.Said(); said != "" {
		message += " It wrote: " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	return session.WrapError(ErrNotStarted, session.CodeServerFailed, message,
		"Its log is "+h.LogFile()+"; slipway serve shows the failure here.")
}
