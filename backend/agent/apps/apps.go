// Package apps starts and reaches apps of sessions: known programs, those that an image declares, and ports.
package apps

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/agent/host"
	"slipway/backend/guest/link"
	"slipway/backend/session"
)

// Guest is what apps need of the guest in a container.
type Guest interface {
	Which(ctx context.Context, names []string) (map[string]string, error)
	StartService(ctx context.Context, req link.ServiceRequest) (link.Service, error)
	StopService(ctx context.Context, id string) error
	Services(ctx context.Context) ([]link.Service, error)
	Listening(ctx context.Context) ([]int, error)
	Dial(ctx context.Context, port int) (net.Conn, error)
	Exec(ctx context.Context, req session.ExecRequest) (net.Conn, error)
}

// Config says how sessions are reached.
type Config struct {
	host.Host
	// Guest returns the guest of a running session's main kernel.
	Guest func(ctx context.Context, id session.ID) (Guest, error)
	// Use counts the traffic of an app as use of its session.
	Use interface {
		App(id session.ID, conn net.Conn) net.Conn
	}
	Limit time.Duration // until an app answers
}

// Apps are the apps of a machine's sessions.
type Apps struct {
	config Config

	mu       sync.Mutex               // guards everything below
	starts   map[string]*starting     // apps being started, by session and app
	declared map[session.ID][]program // apps of sessions' images, once they were read
}

// New returns the apps of a machine.
func New(config Config) *Apps {
	return &Apps{config: config, starts: map[string]*starting{}, declared: map[session.ID][]program{}}
}

func (a *Apps) Forget(id session.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.declared, id)
}

func (a *Apps) session(ctx context.Context, id session.ID) (Guest, session.Session, error) {
	g, err := a.config.Guest(ctx, id)
	if err != nil {
		return nil, session.Session{}, err
	}
	s, err := a.config.Records.Get(id)
	return g, s, err
}

const portPrefix = "port-"

// ListApps implements [session.Apps]: installed programs, those of the image, preopened ports, other open ports.
func (a *Apps) ListApps(ctx context.Context, id session.ID) ([]session.App, error) {
	g, s, err := a.session(ctx, id)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(installers)
	for _, p := range programs {
		names = append(names, p.command)
	}
	installed, err := g.Which(ctx, names)
	if err != nil {
		return nil, err
	}
	services, err := g.Services(ctx)
	if err != nil {
		return nil, err
	}
	open, err := listening(ctx, g)
	if err != nil {
		return nil, err
	}
	apps := []session.App{}
	for _, p := range programs {
		if installed[p.command] != "" {
			apps = append(apps, withKept(ctx, g, a.appOf(id, p, services, open), services))
		} else if p.installable(installed) {
			app := a.appOf(id, p, services, open)
			app.Installable = true
			apps = append(apps, app)
		}
	}
	for _, p := range a.declaredIn(ctx, s) {
		apps = append(apps, a.appOf(id, p, services, open))
	}
	for _, port := range s.Spec.Ports {
		apps = append(apps, portApp(ctx, g, port))
	}
	return append(apps, foundApps(open, apps, services)...), nil
}

// listening returns the ports on which something listens; none if the guest is too old to report them.
func listening(ctx context.Context, g Guest) ([]int, error) {
	ports, err := g.Listening(ctx)
	if session.CodeOf(err) == session.CodeGuestInvalid {
		return nil, nil
	}
	return ports, err
}

// maxFound is how many ports are shown that were not announced.
const maxFound = 32

// foundApps are the ports in open that belong to no app in apps and to no service of Slipway's own.
func foundApps(open []int, apps []session.App, services []link.Service) []session.App {
	var found []session.App
	for _, port := range open {
		known := session.ReservedPort(port) ||
			slices.ContainsFunc(apps, func(a session.App) bool { return a.Port == port }) ||
			slices.ContainsFunc(services, func(s link.Service) bool { return s.Port == port })
		if known || len(found) == maxFound {
			continue
		}
		app := appOfPort(port, session.AppReady)
		app.Found = true
		found = append(found, app)
	}
	return found
}

// appOf is an app in its present state.
func (a *Apps) appOf(id session.ID, p program, services []link.Service, open []int) session.App {
	app := p.app()
	if p.command == "" { // the image starts it itself
		if slices.Contains(open, p.port) {
			app.State = session.AppReady
		}
		return app
	}
	if i := slices.IndexFunc(services, func(s link.Service) bool { return s.ID == p.id }); i >= 0 {
		app = withService(app, services[i])
	}
	a.mu.Lock()
	under := a.starts[string(id)+" "+p.id]
	a.mu.Unlock()
	if under != nil && app.State != session.AppReady {
		app.State, app.Error, app.Progress = session.AppStarting, nil, under.output.last()
	}
	return app
}

// withService returns app in the state of its service.
func withService(app session.App, s link.Service) session.App {
	app.Error = s.Error
	if s.Port != 0 {
		app.Port = s.Port
	}
	if s.Dir != "" {
		app.Dir = s.Dir
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

// portApp is a preopened port, ready if something listens on it.
func portApp(ctx context.Context, g Guest, port int) session.App {
	app := appOfPort(port, session.AppStopped)
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if conn, err := g.Dial(ctx, port); err == nil {
		conn.Close() //nolint:errcheck // it was only tried
		app.State = session.AppReady
	}
	return app
}

func appOfPort(port int, state session.AppState) session.App {
	return session.App{ID: portPrefix + strconv.Itoa(port), Title: fmt.Sprintf("Port %d", port), Kind: "web",
		Port: port, State: state}
}

// starting is the start of an app, for which all its callers wait.
type starting struct {
	cancel context.CancelCauseFunc
	done   chan struct{}
	output output // of its installer
	app    session.App
	err    error
}

// StartApp implements [session.Apps]. A call while the app starts waits for the same start. An app that died, or shows
// another directory, is started again. A port is awaited. It also fails with app_open_not-found and app_start_timeout,
// and with app_open_conflict if StopApp came before the app answered.
func (a *Apps) StartApp(ctx context.Context, id session.ID, req session.AppRequest) (session.App, error) {
	key := string(id) + " " + req.App
	a.mu.Lock()
	s, exists := a.starts[key]
	if !exists {
		// It continues when the first caller is gone, because others may wait.
		limit := a.config.Limit + 10*time.Second
		if req.Install {
			limit += installLimit
		}
		limited, release := context.WithTimeout(context.WithoutCancel(ctx), limit)
		under, cancel := context.WithCancelCause(limited)
		s = &starting{cancel: cancel, done: make(chan struct{})}
		a.starts[key] = s
		go func() {
			defer release()
			s.app, s.err = a.startApp(under, id, req, &s.output)
			a.mu.Lock()
			delete(a.starts, key)
			a.mu.Unlock()
			if why := context.Cause(under); session.CodeOf(why) == session.CodeAppConflict {
				s.err = why
			}
			cancel(nil)
			close(s.done)
		}()
	}
	a.mu.Unlock()
	select {
	case <-s.done:
		return s.app, s.err
	case <-ctx.Done():
		return session.App{}, ctx.Err()
	}
}

func (a *Apps) startApp(ctx context.Context, id session.ID, req session.AppRequest, said *output) (session.App,
	error) {
	g, s, err := a.session(ctx, id)
	if err != nil {
		return session.App{}, err
	}
	if text, ok := strings.CutPrefix(req.App, portPrefix); ok {
		return awaitPort(ctx, g, s, text)
	}
	p, known := a.programOf(ctx, s, req.App)
	switch {
	case !known:
		return session.App{}, unknownApp(req.App)
	case p.command == "":
		return awaitDeclared(ctx, g, p)
	}
	if req.Install {
		if err := install(ctx, g, p, said); err != nil {
			return p.app(), err
		}
	}
	return a.startProgram(ctx, g, p, req.Dir)
}

// programOf returns the app of that name that Slipway or the image can start.
func (a *Apps) programOf(ctx context.Context, s session.Session, name string) (program, bool) {
	all := slices.Concat(programs, a.declaredIn(ctx, s))
	if i := slices.IndexFunc(all, func(p program) bool { return p.id == name }); i >= 0 {
		return all[i], true
	}
	return program{}, false
}

func (a *Apps) startProgram(ctx context.Context, g Guest, p program, asked string) (session.App, error) {
	app := p.app()
	dir, err := p.chosenDir(asked)
	if err != nil {
		return app, err
	}
	installed, err := g.Which(ctx, []string{p.command, link.Program})
	if err != nil {
		return app, err
	}
	at := installed[p.command]
	if at == "" {
		return app, session.NewError(session.CodeAppNotInstalled, p.title+" is not installed in this session.",
			"Install it in the session, or choose an image that has it.")
	}
	if dir != "" {
		if dir, err = showing(ctx, g, p.id, dir, asked != ""); err != nil {
			return app, err
		}
	}
	how := setting{port: p.port, root: a.config.UID == 0, dir: dir}
	req := link.ServiceRequest{ID: p.id, Argv: append([]string{at}, p.args(how)...), Port: p.port, Ready: p.ready,
		Dir: dir, Timeout: a.config.Limit}
	if p.sockets {
		how.socket = link.Socket
		req.Private = append([]string{at}, p.args(how)...)
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	if p.keeps && installed[link.Program] != "" { // which a simulated container has not
		beside.Go(func() { a.startKeeper(ctx, g, p) })
		beside.Go(func() {
			if err := installLab(ctx, g); err != nil {
				a.config.Log.Warn("pages do not show what cells print that run already", "app", p.id, "err", err)
			}
		})
	}
	service, err := g.StartService(ctx, req)
	if err != nil {
		return app, err
	}
	return withService(app, service), nil
}

// keeperOf is the id of the service that keeps the output of a program's notebooks.
func keeperOf(id string) string { return id + "-keeper" }

// startKeeper starts what keeps the output of a program's notebooks, unless it runs. Without it the program works.
func (a *Apps) startKeeper(ctx context.Context, g Guest, p program) {
	port, own := strconv.Itoa(p.port), session.KeeperPort(p.port)
	_, err := g.StartService(ctx, link.ServiceRequest{ID: keeperOf(p.id), Port: own, Last: link.WritePath + "?ending=1",
		Argv:    []string{link.Program, "keep", port, strconv.Itoa(own)},
		Private: []string{link.Program, "keep", port, link.Socket}, Timeout: a.config.Limit})
	if err != nil {
		a.config.Log.Warn("the output of notebooks is not kept while no page is open", "app", p.id, "err", err)
	}
}

// showing returns the directory that a program is to show: dir if a person asked, else the one that it shows already.
func showing(ctx context.Context, g Guest, id, dir string, asked bool) (string, error) {
	services, err := g.Services(ctx)
	for _, s := range services {
		switch {
		case s.ID != id || s.Dir == dir:
		case asked:
			return dir, g.StopService(ctx, id)
		case s.Dir != "":
			return s.Dir, nil
		}
	}
	return dir, err
}

// awaitPort returns a port if something listens on it, whether it was preopened or found.
func awaitPort(ctx context.Context, g Guest, s session.Session, text string) (session.App, error) {
	port, err := strconv.Atoi(text)
	if err != nil {
		return session.App{}, unknownApp(portPrefix + text)
	}
	preopened := slices.Contains(s.Spec.Ports, port)
	if !preopened {
		open, err := listening(ctx, g)
		if err != nil {
			return session.App{}, err
		}
		if !slices.Contains(open, port) || session.ReservedPort(port) {
			return session.App{}, unknownApp(portPrefix + text)
		}
	}
	app := portApp(ctx, g, port)
	app.Found = !preopened
	if app.State != session.AppReady {
		return app, silent(fmt.Sprintf("port %d", port))
	}
	return app, nil
}

func awaitDeclared(ctx context.Context, g Guest, p program) (session.App, error) {
	app := p.app()
	app.State = portApp(ctx, g, p.port).State
	if app.State != session.AppReady {
		return app, silent(fmt.Sprintf("port %d, which is that of %s", p.port, p.title))
	}
	return app, nil
}

func silent(where string) error {
	return session.NewError(session.CodeAppTimeout, "Nothing in the session listens on "+where+".",
		"Start your program there, on 127.0.0.1 or 0.0.0.0, and open it again.")
}

func unknownApp(name string) error {
	return session.NewError(session.CodeAppNotFound, fmt.Sprintf("There is no app %q.", name),
		"List the session's apps.")
}

// StopApp implements [session.Apps]. Stopping again does no harm. A start under way is cancelled for all its callers.
func (a *Apps) StopApp(ctx context.Context, id session.ID, app string) error {
	g, s, err := a.session(ctx, id)
	if err != nil {
		return err
	}
	p, known := a.programOf(ctx, s, app)
	if !known || p.command == "" {
		return session.NewError(session.CodeAppNotFound, fmt.Sprintf("Slipway does not run an app %q.", app),
			"A program that you have started yourself is ended in the session itself.")
	}
	if err := a.cancelStart(ctx, id, p); err != nil {
		return err
	}
	if p.keeps {
		if err := g.StopService(ctx, keeperOf(app)); err != nil {
			return err
		}
	}
	return g.StopService(ctx, app)
}

// cancelStart cancels the start of an app, if any, and returns once it has ended.
func (a *Apps) cancelStart(ctx context.Context, id session.ID, p program) error {
	a.mu.Lock()
	s := a.starts[string(id)+" "+p.id]
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	s.cancel(session.NewError(session.CodeAppConflict, p.title+" was stopped before it answered.", "Start it again."))
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *Apps) DialPort(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	if port < 1 || port > 65535 {
		return nil, session.NewError(session.CodeSessionInvalid, "There is no such port.",
			"Use a port between 1 and 65535.")
	}
	g, err := a.config.Guest(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := g.Dial(ctx, port)
	return a.config.Use.App(id, conn), err
}
