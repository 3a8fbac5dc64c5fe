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
