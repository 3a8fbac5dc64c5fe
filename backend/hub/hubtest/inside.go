package hubtest

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"

	"slipway/backend/session"
)

type inside struct {
	sessions *sessions
	Attach   func(session.AttachRequest, net.Conn) // gets the far end of a terminal
	Wrap     func(net.Conn) net.Conn               // wraps the near end of a terminal; nil: it is the pipe itself
	Run      func(session.ExecRequest, net.Conn)   // gets the far end of a command
	// Dial connects to a port of a session.
	Dial func(ctx context.Context, id session.ID, port int) (net.Conn, error)

	apps   map[session.ID][]session.App // guarded by mu, like the fields below
	starts int
}

func (a *inside) SetApps(id session.ID, apps ...session.App) {
	a.sessions.do(func() { a.apps[id] = apps })
}

// Starts returns how many apps StartApp has started.
func (a *inside) Starts() int { return read(a.sessions.base, &a.starts) }

func (a *inside) running(ctx context.Context, id session.ID) error {
	s, err := a.sessions.get(ctx, id)
	if err == nil && s.Status != session.Running {
		err = failed(session.CodeSessionConflict, fmt.Sprintf("%s is %s.", s.Name, s.Status))
	}
	return err
}

// enterRunning is running for callers that do not hold mu.
func (a *inside) enterRunning(ctx context.Context, id session.ID) (err error) {
	a.sessions.do(func() { err = a.running(ctx, id) })
	return err
}

func (a *inside) listTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	return []session.Terminal{{ID: "t1", Title: "bash", Cols: 80, Rows: 24}}, a.running(ctx, id)
}

func (a *inside) openTerminal(ctx context.Context, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	return session.Terminal{ID: "t2", Title: req.Title, Kernel: req.Kernel, Cols: req.Cols, Rows: req.Rows},
		a.running(ctx, id)
}

func (a *inside) attachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	if err := a.enterRunning(ctx, id); err != nil {
		return nil, err
	}
	if a.Attach == nil {
		return nil, failed(session.CodeUseNotFound, fmt.Sprintf("There is no terminal %q.", req.Terminal))
	}
	near, far := net.Pipe()
	go a.Attach(req, far)
	if a.Wrap != nil {
		near = a.Wrap(near)
	}
	return near, nil
}

func (a *inside) closeTerminal(ctx context.Context, id session.ID, _ string) error {
	return a.running(ctx, id)
}

func (a *inside) exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	if err := a.enterRunning(ctx, id); err != nil {
		return nil, err
	}
	if len(req.Command) == 0 {
		return nil, session.Refused(session.CodeSessionInvalid, session.FieldError{Field: "command",
			Kind: session.KindInvalid, Message: "There is no command.", Hint: "Write one."})
	}
	near, far := net.Pipe()
	go a.Run(req, far)
	return near, nil
}

func (a *inside) listApps(ctx context.Context, id session.ID) ([]session.App, error) {
	return slices.Clone(a.apps[id]), a.running(ctx, id)
}

// startApp makes an app ready at once.
func (a *inside) startApp(ctx context.Context, id session.ID, req session.AppRequest) (session.App, error) {
	return a.setApp(ctx, id, req.App, session.AppReady)
}

func (a *inside) stopApp(ctx context.Context, id session.ID, app string) error {
	_, err := a.setApp(ctx, id, app, session.AppStopped)
	return err
}

func (a *inside) setApp(ctx context.Context, id session.ID, app string, state session.AppState) (session.App, error) {
	if err := a.running(ctx, id); err != nil {
		return session.App{}, err
	}
	i := slices.IndexFunc(a.apps[id], func(known session.App) bool { return known.ID == app })
	if i < 0 {
		return session.App{}, failed(session.CodeAppNotInstalled, app+" is not installed in this image.")
	}
	known := &a.apps[id][i]
	if state == session.AppReady {
		if known.State != session.AppReady {
			a.starts++
		}
		known.Port = cmp.Or(known.Port, 8888)
	}
	known.State = state
	return *known, nil
}

func (a *inside) dialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	if err := a.enterRunning(ctx, id); err != nil {
		return nil, err
	}
	if a.Dial == nil {
		return nil, failed(session.CodeAppUnavailable, fmt.Sprintf("Nothing listens on port %d.", port))
	}
	return a.Dial(ctx, id, port)
}
