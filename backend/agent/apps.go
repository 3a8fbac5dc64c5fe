package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// program is an app that Slipway knows how to start where it is installed.
type program struct {
	id      string
	title   string
	command string // name of its program
	port    int    // in the container; see session.ReservedPort
	ready   string // path that answers when it is ready
	args    func(port int, root bool) []string
}

// programs is the table of apps. Each listens on the container's own loopback,
// where nothing but the guest's link reaches it; whoever comes that way has
// shown the server's ticket, and so the app asks for no token of its own.
var programs = []program{
	{id: "jupyterlab", title: "JupyterLab", command: "jupyter-lab", port: 7430, ready: "/api", args: func(port int, root bool) []string {
		return jupyterArgs([]string{"ServerApp"}, port, root)
	}},
	{id: "notebook", title: "Jupyter Notebook", command: "jupyter-notebook", port: 7431, ready: "/api", args: func(port int, root bool) []string {
		// Notebook 6 reads the first name, notebook 7 the second.
		return jupyterArgs([]string{"NotebookApp", "ServerApp"}, port, root)
	}},
}

// jupyterArgs are the arguments of a Jupyter server whose settings go by each
// of the given names. Pages of other origins and requests to other hosts stay
// shut out: the server in front makes both those of the app itself.
func jupyterArgs(names []string, port int, root bool) []string {
	args := []string{"--no-browser", "--ip=127.0.0.1", "--port=" + strconv.Itoa(port)}
	if root {
		args = append(args, "--allow-root")
	}
	for _, name := range names {
		dir := "root_dir"
		if name == "NotebookApp" {
			dir = "notebook_dir"
		}
		args = append(args,
			"--"+name+".port_retries=0", "--"+name+".token=", "--"+name+".password=", "--"+name+".base_url=/",
			"--"+name+"."+dir+"="+session.Home, "--"+name+".quit_button=False")
	}
	return args
}

const portPrefix = "port-"

// ListApps implements [session.Apps]: what is installed, and the preopened
// ports.
func (a *Agent) ListApps(ctx context.Context, id session.ID) ([]session.App, error) {
	g, err := a.guest(ctx, id)
	if err != nil {
		return nil, err
	}
	s, err := a.store.Get(id)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(programs))
	for i, p := range programs {
		names[i] = p.command
	}
	installed, err := g.Which(ctx, names)
	if err != nil {
		return nil, err
	}
	services, err := g.Services(ctx)
	if err != nil {
		return nil, err
	}
	apps := []session.App{}
	for _, p := range programs {
		if installed[p.command] == "" {
			continue
		}
		apps = append(apps, a.appOf(id, p, services))
	}
	for _, port := range s.Spec.Ports {
		apps = append(apps, portApp(ctx, g, port))
	}
	return apps, nil
}

func (a *Agent) appOf(id session.ID, p program, services []link.Service) session.App {
	app := session.App{ID: p.id, Title: p.title, Kind: "web", Port: p.port, State: session.AppStopped}
	if i := slices.IndexFunc(services, func(s link.Service) bool { return s.ID == p.id }); i >= 0 {
		app = withService(app, services[i])
	}
	a.mu.Lock()
	_, under := a.starts[string(id)+" "+p.id]
	a.mu.Unlock()
	if under && app.State != session.AppReady {
		app.State, app.Error = session.AppStarting, nil
	}
	return app
}

// withService returns app in the state of its service.
func withService(app session.App, s link.Service) session.App {
	app.Error = s.Error
	if s.Port != 0 {
		app.Port = s.Port
	}
	switch s.State {
	case link.ServiceReady:
		app.State = session.AppReady
	case link.ServiceStarting:
		app.State = session.AppStarting
	case link.ServiceExited, link.ServiceFailed:
		app.State = session.AppFailed
	}
	return app
}

// portApp is a preopened port, ready when something listens on it.
func portApp(ctx context.Context, g Guest, port int) session.App {
	app := session.App{ID: portPrefix + strconv.Itoa(port), Title: fmt.Sprintf("Port %d", port), Kind: "web", Port: port, State: session.AppStopped}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if conn, err := g.Dial(ctx, port); err == nil {
		conn.Close() //nolint:errcheck // it was only tried
		app.State = session.AppReady
	}
	return app
}

// starting is an app being started. Everyone who asks meanwhile waits for it.
type starting struct {
	done chan struct{}
	app  session.App
	err  error
}

// StartApp implements [session.Apps]. Asking again while it starts waits for
// the same start; one that died is started anew. A preopened port is awaited.
// It also fails with app_start_not-found and app_start_not-listening.
func (a *Agent) StartApp(ctx context.Context, id session.ID, app string) (session.App, error) {
	key := string(id) + " " + app
	a.mu.Lock()
	s, exists := a.starts[key]
	if !exists {
		s = &starting{done: make(chan struct{})}
		a.starts[key] = s
	}
	a.mu.Unlock()
	if !exists {
		// It goes on when the first who asked goes away: others may wait.
		ctx := context.WithoutCancel(ctx)
		go func() {
			limited, cancel := context.WithTimeout(ctx, a.limits.App+10*time.Second)
			defer cancel()
			s.app, s.err = a.startApp(limited, id, app)
			a.mu.Lock()
			delete(a.starts, key)
			a.mu.Unlock()
			close(s.done)
		}()
	}
	select {
	case <-s.done:
		return s.app, s.err
	case <-ctx.Done():
		return session.App{}, ctx.Err()
	}
}

func (a *Agent) startApp(ctx context.Context, id session.ID, name string) (session.App, error) {
	g, err := a.guest(ctx, id)
	if err != nil {
		return session.App{}, err
	}
	if text, ok := strings.CutPrefix(name, portPrefix); ok {
		return a.awaitPort(ctx, g, id, text)
	}
	i := slices.IndexFunc(programs, func(p program) bool { return p.id == name })
	if i < 0 {
		return session.App{}, unknownApp(name)
	}
	p := programs[i]
	app := session.App{ID: p.id, Title: p.title, Kind: "web", Port: p.port, State: session.AppStopped}
	installed, err := g.Which(ctx, []string{p.command})
	if err != nil {
		return app, err
	}
	path := installed[p.command]
	if path == "" {
		return app, &session.Error{Code: "app_start_not-installed", Message: p.title + " is not installed in this session.", Hint: "Install it in the session, or choose an image that has it."}
	}
	service, err := g.StartService(ctx, link.ServiceRequest{
		ID: p.id, Argv: append([]string{path}, p.args(p.port, a.config.UID == 0)...), Port: p.port, Ready: p.ready, Timeout: a.limits.App,
	})
	if err != nil {
		return app, err
	}
	return withService(app, service), nil
}

// awaitPort returns a preopened port as soon as something listens on it.
func (a *Agent) awaitPort(ctx context.Context, g Guest, id session.ID, text string) (session.App, error) {
	s, err := a.store.Get(id)
	if err != nil {
		return session.App{}, err
	}
	port, err := strconv.Atoi(text)
	if err != nil || !slices.Contains(s.Spec.Ports, port) {
		return session.App{}, unknownApp(portPrefix + text)
	}
	app := portApp(ctx, g, port)
	if app.State != session.AppReady {
		return app, &session.Error{Code: "app_start_not-listening", Message: fmt.Sprintf("Nothing in the session listens on port %d.", port), Hint: "Start your program there, on 127.0.0.1 or 0.0.0.0, and open it again."}
	}
	return app, nil
}

func unknownApp(name string) error {
	return &session.Error{Code: "app_start_not-found", Message: fmt.Sprintf("There is no app %q.", name), Hint: "List the session's apps."}
}

// StopApp implements [session.Apps]. An app that does not run is stopped already.
func (a *Agent) StopApp(ctx context.Context, id session.ID, app string) error {
	if !slices.ContainsFunc(programs, func(p program) bool { return p.id == app }) {
		return &session.Error{Code: "app_stop_not-found", Message: fmt.Sprintf("Slipway does not run an app %q.", app), Hint: "A program behind a preopened port is ended in the session itself."}
	}
	g, err := a.guest(ctx, id)
	if err != nil {
		return err
	}
	return g.StopService(ctx, app)
}
