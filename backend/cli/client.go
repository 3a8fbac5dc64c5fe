package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/pace"
	"slipway/backend/place"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// client speaks the API to one control plane.
type client struct {
	url   string
	token string
	http  *http.Client
}

func newClient(connection place.Connection) *client {
	// No proxy: the control plane is on this machine.
	return &client{url: connection.URL, token: connection.Token, http: &http.Client{Transport: &http.Transport{}}}
}

// connect finds the control plane or starts one, and says so on stderr.
func (p *program) connect(ctx context.Context) (*client, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	return p.connectOrStart(ctx, home, p.Env("SLIPWAY_ENGINE"),
		func() { p.notice("No control plane is running; starting one in the background.") })
}

func (p *program) connectOrStart(ctx context.Context, home place.Home, engine string,
	starting func()) (*client, error) {
	connection, err := home.ConnectOrStart(ctx, place.StartOptions{Executable: p.Executable, Engine: engine,
		Starting: starting})
	if err != nil {
		return nil, err
	}
	if connection.Serving.Demo {
		p.notice("DEMO: nothing of this is real.")
		if s := connection.Serving; s.Speed > 0 {
			p.Now = pace.New(s.Speed, s.Real, s.Shown).Now
		}
	}
	return newClient(connection), nil
}

// reconnect finds the control plane again after a connection was lost. One that
// was killed is started again, on the engine it had; one that stopped in good
// order is waited for.
func (p *program) reconnect(ctx context.Context) (*client, error) {
	home, err := place.FindHome(p.Env)
	if err != nil {
		return nil, err
	}
	if serving, err := home.Serving(); err == nil {
		return p.connectOrStart(ctx, home, serving.Engine, nil)
	}
	connection, err := home.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return newClient(connection), nil
}

// notice tells a person what goes on, on stderr.
func (p *program) notice(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// get reads path into out, if that is not nil, and returns the answer as it came.
func (c *client) get(ctx context.Context, path string, out any) (json.RawMessage, error) {
	return c.call(ctx, http.MethodGet, path, nil, out)
}

// call sends one request. The answer is returned as it came, so that it can be
// printed with whatever a newer server says.
func (c *client) call(ctx context.Context, method, path string, in, out any) (json.RawMessage, error) {
	response, err := c.send(ctx, method, path, in)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &lostError{err}
	}
	if out == nil {
		return raw, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, &failure{code: "cli_answer_invalid", exit: ExitFailure,
			message: fmt.Sprintf("The control plane's answer to %s %s is not understood: %v.", method, path, err),
			hint:    "The running control plane may be of another version: slipway shutdown, then try again."}
	}
	return raw, nil
}

// send sends one request and returns the answer if it is a good one. The caller
// closes its body.
func (c *client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return nil, err
	}
	request.Header = c.header()
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &lostError{err}
	}
	if response.StatusCode >= http.StatusBadRequest {
		defer response.Body.Close()
		return nil, readProblem(response)
	}
	return response, nil
}

func (c *client) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + c.token}}
}

// readProblem reads the failure that a response tells.
func readProblem(response *http.Response) error {
	problem := &problemError{status: response.StatusCode}
	data, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || json.Unmarshal(data, &problem.Problem) != nil || problem.Problem.Code == "" {
		problem.Problem = session.Error{Code: "cli_answer_invalid", Message: "The control plane answered " +
			response.Status + "."}
	}
	return problem
}

const handshakeTimeout = 30 * time.Second

// messageBuffer holds the longest frame of a terminal's protocol, so that each
// is written and read in one piece.
const messageBuffer = terminal.MaxData + 1<<10

// dial opens a WebSocket.
func (c *client) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: handshakeTimeout, ReadBufferSize: messageBuffer,
		WriteBufferSize: messageBuffer}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(c.url, "http")+path, c.header())
	if err == nil {
		return conn, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if response != nil {
		defer response.Body.Close()
		if response.StatusCode >= http.StatusBadRequest {
			return nil, readProblem(response)
		}
	}
	return nil, &lostError{err}
}

// frames opens a WebSocket that carries frames of the terminal's protocols.
// first, unless nil, is sent before them as text.
func (c *client) frames(ctx context.Context, path string, first any) (terminal.Conn, error) {
	conn, err := c.dial(ctx, path)
	if err != nil {
		return nil, err
	}
	if first != nil {
		if err := conn.WriteJSON(first); err != nil {
			return nil, errors.Join(&lostError{err}, conn.Close())
		}
	}
	return newFrameConn(conn), nil
}

// lostError means that the control plane was not reached, or no longer.
type lostError struct{ err error }

func (e *lostError) Error() string { return "the control plane does not answer: " + e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// isConnectionLost reports whether trying again may help: the connection broke,
// and no answer of the control plane's did it.
func isConnectionLost(err error) bool {
	var lost *lostError
	var closed *websocket.CloseError
	var network net.Error
	return errors.As(err, &lost) || errors.As(err, &closed) || errors.As(err, &network) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
}

// worthTrying reports whether a control plane that could not be reached may be
// reached a moment later.
func worthTrying(err error) bool {
	return isConnectionLost(err) || errors.Is(err, place.ErrNotServing)
}

func sessionPath[S ~string](ref S, rest ...string) string {
	path := "/api/v1/sessions/" + url.PathEscape(string(ref))
	for _, part := range rest {
		path += "/" + url.PathEscape(part)
	}
	return path
}
