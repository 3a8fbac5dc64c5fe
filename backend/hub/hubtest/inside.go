package hubtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"

	"slipway/backend/session"
)

func (a *Agent) ListTerminals(ctx context.Context, id session.ID) ([]session.Terminal, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	return []session.Terminal{{ID: "t1", Title: "bash", Cols: 80, Rows: 24}}, nil
}

func (a *Agent) OpenTerminal(ctx context.Context, id session.ID,
	req session.TerminalRequest) (session.Terminal, error) {
	if err := a.running(ctx, id); err != nil {
		return session.Terminal{}, err
	}
	return session.Terminal{ID: "t2", Title: req.Title, Kernel: req.Kernel, Cols: req.Cols, Rows: req.Rows}, nil
}

func (a *Agent) AttachTerminal(ctx context.Context, id session.ID,
	req session.AttachRequest) (io.ReadWriteCloser, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	if a.Attach == nil {
		return nil, &session.Error{Code: "terminal_attach_not-found", Message: fmt.Sprintf("There is no terminal %q.",
			req.Terminal), Hint: "List the terminals."}
	}
	near, far := net.Pipe()
	go a.Attach(req, far)
	if a.Wrap != nil {
		near = a.Wrap(near)
	}
	return near, nil
}

func (a *Agent) CloseTerminal(ctx context.Context, id session.ID, _ string) error {
	return a.running(ctx, id)
}

func (a *Agent) Exec(ctx context.Context, id session.ID, req session.ExecRequest) (io.ReadWriteCloser, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	if len(req.Command) == 0 {
		return nil, &session.Error{Code: "exec_start_invalid", Message: "There is no command.", Hint: "Write one.",
			Fields: []session.FieldError{{Field: "command", Code: "exec_start_invalid",
				Message: "There is no command."}}}
	}
	near, far := net.Pipe()
	go a.Run(req, far)
	return near, nil
}

func (a *Agent) running(ctx context.Context, id session.ID) error {
	s, err := a.Get(ctx, id)
	if err != nil {
		return err
	}
	if s.Status != session.Running {
		return &session.Error{Code: "session_enter_not-running", Message: fmt.Sprintf("%s is %s.", s.Name, s.Status),
			Hint: "Wait until it runs."}
	}
	return nil
}

func (a *Agent) SSHHost(ctx context.Context, id session.ID, _ string) (session.SSHHost, error) {
	return session.SSHHost{Key: a.HostKey}, a.running(ctx, id)
}

func (a *Agent) DialSSH(ctx context.Context, id session.ID, req session.SSHRequest) (net.Conn, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	if a.SSH == nil {
		return nil, &session.Error{Code: "ssh_open_forbidden", Message: "The session was launched without ssh.",
			Hint: "Use its terminal."}
	}
	return a.SSH(ctx, req)
}

func (a *Agent) ListApps(ctx context.Context, id session.ID) ([]session.App, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.apps[id]), nil
}

// StartApp implements [session.Agent]; the app is ready at once.
func (a *Agent) StartApp(ctx context.Context, id session.ID, req session.AppRequest) (session.App, error) {
	return a.setApp(ctx, id, req.App, session.AppReady)
}

func (a *Agent) StopApp(ctx context.Context, id session.ID, app string) error {
	_, err := a.setApp(ctx, id, app, session.AppStopped)
	return err
}

func (a *Agent) setApp(ctx context.Context, id session.ID, app string, state session.AppState) (session.App, error) {
	if err := a.running(ctx, id); err != nil {
		return session.App{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, known := range a.apps[id] {
		if known.ID != app {
			continue
		}
		if state == session.AppReady && known.State != session.AppReady {
			a.starts++
		}
		known.State = state
		if state == session.AppReady && known.Port == 0 {
			known.Port = 8888
		}
		a.apps[id][i] = known
		return known, nil
	}
	return session.App{}, &session.Error{Code: "app_start_not-installed",
		Message: fmt.Sprintf("%s is not installed in this image.", app), Hint: "Choose another image."}
}

func (a *Agent) DialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	if err := a.running(ctx, id); err != nil {
		return nil, err
	}
	if a.Dial == nil {
		return nil, &session.Error{Code: "app_dial_unavailable", Message: fmt.Sprintf("Nothing listens on port %d.",
			port), Hint: "Start it first."}
	}
	return a.Dial(ctx, id, port)
}
