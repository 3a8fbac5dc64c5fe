package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"slipway/backend/place"
	"slipway/backend/session"
)

const (
	// callTime is how long a question to the daemon may take.
	callTime = 10 * time.Second
	// answerMost bounds what is read of a request or an answer, in bytes.
	answerMost = 1 << 20
	// endTime is how long requests may go on when the daemon ends.
	endTime = time.Second
)

// ErrNotRunning means that nothing rules the agent of a folder at this moment.
var ErrNotRunning = errors.New("no agent is running")

// Serve answers on listener until ctx ends.
func Serve(ctx context.Context, listener net.Listener, d Daemon, log *slog.Logger) error {
	mux := http.NewServeMux()
	d.serve(mux)
	web := http.Server{Handler: mux, ReadHeaderTimeout: callTime, ReadTimeout: callTime, WriteTimeout: 2 * callTime,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	err := web.Shutdown(limited)
	if err != nil {
		err = web.Close()
	}
	<-ended //nolint:errcheck // it says that the server was closed
	return err
}

func answer(mux *http.ServeMux, pattern string, do func(*http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		value, err := do(r)
		if err != nil {
			w.WriteHeader(http.StatusConflict)
			value = session.AsError(err, session.CodeAgentInternal)
		}
		_ = json.NewEncoder(w).Encode(value) // whoever asked is gone if it fails
	})
}

// ask answers a request that says nothing.
func ask[T any](mux *http.ServeMux, pattern string, do func(context.Context) (T, error)) {
	answer(mux, pattern, func(r *http.Request) (any, error) { return do(r.Context()) })
}

// obey answers a request that has no result.
func obey(mux *http.ServeMux, pattern string, do func(*http.Request) error) {
	answer(mux, pattern, func(r *http.Request) (any, error) { return struct{}{}, do(r) })
}

// take answers a request with a body, which is decoded strictly.
func take[T any](mux *http.ServeMux, pattern string, do func(*http.Request, T) (any, error)) {
	answer(mux, pattern, func(r *http.Request) (any, error) {
		var body T
		decoder := json.NewDecoder(io.LimitReader(r.Body, answerMost))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&body); err != nil {
			return nil, session.WrapError(err, session.CodeAgentInvalid, "The request cannot be read.",
				"Use the same version on both sides.")
		}
		return do(r, body)
	})
}

// Client talks to what rules the agent of a folder.
type Client struct {
	home place.Home
	web  http.Client
}

// Connect finds what rules the agent of a folder; [ErrNotRunning] where nothing
// does.
func Connect(ctx context.Context, home place.Home) (*Client, error) {
	c := &Client{home: home}
	c.web.Transport = &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialUnix(ctx, home, controlSocket)
		}}
	_, err := c.Status(ctx)
	if err != nil && session.CodeOf(err) == "" {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return c, err
}

func (c *Client) Status(ctx context.Context) (status Status, err error) {
	return status, c.call(ctx, http.MethodGet, "/status", nil, &status)
}

func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/stop", nil, nil)
}

func (c *Client) EndSessions(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/end", nil, nil)
}

// StopAndWait asks for the end and returns when the folder is given up.
func (c *Client) StopAndWait(ctx context.Context) error {
	if err := c.Stop(ctx); err != nil {
		return err
	}
	err := c.home.WaitUnlocked(ctx)
	if err != nil && ctx.Err() != nil {
		err = session.WrapError(err, session.CodeAgentTimeout, "The agent did not end in time.",
			"Look at its log, "+LogFile(c.home)+".")
	}
	return err
}

// call asks one question. A failure that the daemon told is a [session.Error].
func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	response, err := c.web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	data, err = io.ReadAll(io.LimitReader(response.Body, answerMost))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		told := &session.Error{}
		if json.Unmarshal(data, told) != nil || told.Code == "" {
			return session.NewError(session.CodeAgentInvalid, "The agent answers "+response.Status+".",
				"It may be another version: slipway agent status")
		}
		return told
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}
