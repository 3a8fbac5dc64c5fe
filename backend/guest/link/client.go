package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"slipway/backend/session"
	"slipway/tunnel"
)

// Client calls the guest of one container. All methods are safe for concurrent use. They fail with a [session.Error]:
// the guest's, session_use_unavailable if the link is lost, or operation_run_timeout if ctx expires.
type Client struct {
	mux     *tunnel.Mux
	hello   Hello
	sockets *sockets // nil: the link carries the bytes of every connection

	mu        sync.Mutex    // guards the rest
	filling   chan struct{} // closed when the guest has answered for more sockets; nil: it is not asked
	noSockets bool          // it has none
}

// Connect makes a link over conn, which it owns even if it fails with session_use_unavailable or guest_connect_version.
func Connect(ctx context.Context, conn net.Conn) (*Client, error) {
	conn, sockets := receive(conn)
	mux, err := tunnel.NewMux(conn, tunnel.Opener)
	if err != nil {
		return nil, unavailable(err)
	}
	c := &Client{mux: mux, sockets: sockets}
	if err := c.call(ctx, Request{Op: OpHello, Version: Version}, &c.hello); err != nil {
		_ = mux.Close()
		if session.CodeOf(err) == session.CodeGuestVersion {
			return nil, err
		}
		return nil, unavailable(err)
	}
	if c.hello.Version != Version {
		_ = mux.Close()
		return nil, session.NewError(session.CodeGuestVersion,
			fmt.Sprintf("The session's guest speaks version %d of the link and this program version %d.",
				c.hello.Version, Version),
			"The session was started by another version of Slipway. Terminate it and start a new one.")
	}
	return c, nil
}

// Hello returns the guest's answer to hello.
func (c *Client) Hello() Hello { return c.hello }

// Done is closed when the link is lost or closed.
func (c *Client) Done() <-chan struct{} { return c.mux.Done() }

// Close closes the link. The guest continues.
func (c *Client) Close() error { return c.mux.Close() }

// Events calls fn for each event, beginning with the current state, until ctx ends, fn fails, or the link is lost. It
// returns nil after the exit, which is the last event: the guest may end once its caller has closed the stream.
func (c *Client) Events(ctx context.Context, fn func(Event) error) error {
	stream, err := c.open(ctx, Request{Op: OpEvents}, nil)
	if err != nil {
		return err
	}
	defer stream.Close()
	defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
	for {
		var event Event
		if err := ReadMessage(stream, &event); err != nil {
			return callError(ctx, err)
		}
		event.check()
		if err := fn(event); err != nil || event.Exit != nil {
			return err
		}
	}
}

// ListTerminals returns the terminals in the order of their opening, including exited ones that are not closed.
func (c *Client) ListTerminals(ctx context.Context) ([]session.Terminal, error) {
	return ask[[]session.Terminal](ctx, c, Request{Op: OpTerminalList})
}

// OpenTerminal starts a shell; guest_call_internal-error if the image has none, process_start_not-found.
func (c *Client) OpenTerminal(ctx context.Context, req session.TerminalRequest) (session.Terminal, error) {
	return ask[session.Terminal](ctx, c, Request{Op: OpTerminalOpen, Open: &req})
}

// AttachTerminal joins a shell; the stream speaks the attach protocol of package terminal. session_use_not-found.
func (c *Client) AttachTerminal(ctx context.Context, req session.AttachRequest) (net.Conn, error) {
	return c.open(ctx, Request{Op: OpTerminalAttach, Attach: &req}, nil)
}

// CloseTerminal ends a shell and removes its terminal; session_use_not-found.
func (c *Client) CloseTerminal(ctx context.Context, id string) error {
	return c.call(ctx, Request{Op: OpTerminalClose, ID: id}, nil)
}

// Exec starts one command; the stream speaks the exec protocol of package terminal, and closing it ends the command.
// process_start_not-found, process_start_forbidden, guest_call_internal-error.
func (c *Client) Exec(ctx context.Context, req session.ExecRequest) (net.Conn, error) {
	return c.open(ctx, Request{Op: OpExec, Exec: &req}, nil)
}

// Which returns the paths of the installed programs among names.
func (c *Client) Which(ctx context.Context, names []string) (map[string]string, error) {
	found, err := ask[map[string]string](ctx, c, Request{Op: OpWhich, Names: names})
	maps.DeleteFunc(found, func(name, _ string) bool { return !slices.Contains(names, name) })
	return found, err
}

// StartService starts a service and waits until it is ready, or returns the ready one with the same id.
// app_start_not-installed, app_start_exited, app_start_timeout, app_open_conflict.
func (c *Client) StartService(ctx context.Context, req ServiceRequest) (Service, error) {
	return ask[Service](ctx, c, Request{Op: OpServiceStart, Service: &req})
}

// StopService ends a service, if there is one.
func (c *Client) StopService(ctx context.Context, id string) error {
	return c.call(ctx, Request{Op: OpServiceStop, ID: id}, nil)
}

// Services returns the services in the order of their start.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	return ask[[]Service](ctx, c, Request{Op: OpServiceList})
}

// Listening returns the ports on which programs listen on the loopback, without ephemeral ones; guest_call_invalid.
func (c *Client) Listening(ctx context.Context) ([]int, error) {
	return ask[[]int](ctx, c, Request{Op: OpListening})
}

// Activity returns the foreground program of each terminal whose shell has not exited.
func (c *Client) Activity(ctx context.Context) ([]Foreground, error) {
	return ask[[]Foreground](ctx, c, Request{Op: OpActivity})
}

// Notice shows one line of text in every terminal that runs and that no full-screen program uses; guest_call_invalid.
func (c *Client) Notice(ctx context.Context, text string) error {
	return c.call(ctx, Request{Op: OpNotice, Text: text}, nil)
}

// SSHHost returns the host key of the guest's ssh server.
func (c *Client) SSHHost(ctx context.Context) (session.SSHHost, error) {
	return ask[session.SSHHost](ctx, c, Request{Op: OpSSHHost})
}

// DialSSH connects to the guest's ssh server; ssh_open_invalid, session_use_too-many. ctx applies to that only.
func (c *Client) DialSSH(ctx context.Context, req session.SSHRequest) (net.Conn, error) {
	return c.open(ctx, Request{Op: OpSSH, SSH: &req}, nil)
}

// SSHUse returns the use of the guest's ssh server.
func (c *Client) SSHUse(ctx context.Context) (session.SSHUse, error) {
	return ask[session.SSHUse](ctx, c, Request{Op: OpSSHUse})
}

// ask makes one request and returns its answer, zero if it fails.
func ask[T any](ctx context.Context, c *Client, req Request) (value T, err error) {
	if err = c.call(ctx, req, &value); err != nil {
		value = *new(T)
	}
	return value, err
}

// call makes one request and closes its stream.
func (c *Client) call(ctx context.Context, req Request, value any) error {
	stream, err := c.open(ctx, req, value)
	if err != nil {
		return err
	}
	_ = stream.Close()
	return nil
}

// open makes one request, reads the answer into value and returns the stream.
func (c *Client) open(ctx context.Context, req Request, value any) (net.Conn, error) {
	stream, err := c.mux.Open(ctx)
	if err != nil {
		return nil, callError(ctx, err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.Deadline = max(time.Until(deadline), time.Nanosecond)
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	err = WriteMessage(stream, req)
	if err == nil {
		err = readReply(stream, value)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = stream.Close()
		return nil, callError(ctx, err)
	}
	return stream, nil
}

// callError converts the failure of a call to a [session.Error], unless it is one from the guest.
func callError(ctx context.Context, err error) error {
	if _, known := errors.AsType[*session.Error](err); known {
		return err
	}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return session.WrapError(ctx.Err(), session.CodeOperationTimeout, "The session's guest did not answer in time.",
			"Try again. If it happens again, check the session's log.")
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, tunnel.ErrTooManyStreams):
		return session.WrapError(err, session.CodeSessionUnavailable, "The session has too many open connections.",
			"Close some of its apps or terminals.")
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return unavailable(err)
}

func unavailable(err error) error {
	return session.WrapError(err, session.CodeSessionUnavailable, "The connection to the session was lost.",
		"Slipway reconnects. Try again in a moment.")
}
