package server

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/session"
)

type appRoutes struct {
	hub     *hub.Hub
	apps    *gateway
	doors   *doors
	tickets *codes
}

func (s appRoutes) mount(m *mounts) {
	answer(m, route.Apps, inSession(s.hub,
		func(r *http.Request, agent session.Agent, id session.ID) ([]api.App, error) {
			return eachAs(func(a session.App) api.App { return s.appOut(r, id, a) })(agent.ListApps(r.Context(), id))
		}))
	take(m, route.AppOpen, sendInSession(s.hub, s.openApp))
	answer(m, route.AppStop, inSession(s.hub, func(r *http.Request, agent session.Agent, id session.ID) (none, error) {
		host := appHost{app: r.PathValue("app"), session: id}
		s.apps.forget(host)
		s.doors.shut(host)
		return none{}, agent.StopApp(r.Context(), id, host.app)
	}))
	answer(m, route.AppDoorClose, inSession(s.hub, func(r *http.Request, _ session.Agent, id session.ID) (none, error) {
		s.doors.shut(appHost{app: r.PathValue("app"), session: id})
		return none{}, nil
	}))
}

const ticketParam = "slipway_ticket"

func (s appRoutes) appOut(r *http.Request, id session.ID, a session.App) api.App {
	out := api.App{App: a}
	host := appHost{app: a.ID, session: id}
	if a.Kind == "web" && host.valid() {
		out.URL = appAddress(r, host, a.Path)
		out.Door, out.LostDoor = doorOut(s.doors.of(host), a.Path, 0), s.doors.lostOf(host)
	}
	return out
}

// appAddress returns the address of an app, which stays the same for the life of its session. Each app has its own host
// name because cookies do not distinguish ports.
func appAddress(r *http.Request, host appHost, path string) string {
	return "http://" + host.name() + ":" + portOf(r) + appPath(path)
}

// appPath returns the first path of an app. It comes from the agent, so it must not lead to another host.
func appPath(path string) string { return localPath("/" + strings.TrimPrefix(path, "/")) }

// pathOfFile returns the path of an app that shows a file, which Jupyter can.
func pathOfFile(app session.App, file string) string {
	at := map[string]string{"jupyterlab": "/lab/tree/", "notebook": "/notebooks/"}[app.ID]
	if file == "" || at == "" {
		return app.Path
	}
	return at + (&url.URL{Path: file}).EscapedPath()
}

// openApp starts an app, waits until it responds, and returns its address with a ticket.
func (s appRoutes) openApp(r *http.Request, agent session.Agent, id session.ID, req api.OpenRequest) (api.Opened,
	error) {
	wish, err := wishOf(req)
	if err != nil {
		return api.Opened{}, err
	}
	name := r.PathValue("app")
	app, err := agent.StartApp(r.Context(), id, session.AppRequest{App: name, Dir: req.Dir, Install: req.Install})
	if err != nil {
		return api.Opened{}, err
	}
	host := appHost{app: app.ID, session: id}
	if !host.valid() {
		return api.Opened{}, session.NewError(session.CodeSessionInvalid,
			"The app's name cannot be part of an address.",
			"Use lower-case letters, digits and single dashes, at most 50 characters.")
	}
	s.apps.forget(host)
	app.Path = pathOfFile(app, req.File)
	opened := api.Opened{App: s.appOut(r, id, app)}
	if opened.App.URL == "" {
		return opened, nil
	}
	if wish.public || wish.port != 0 {
		one, err := s.doors.ensure(host, wish)
		if err != nil {
			return api.Opened{}, err
		}
		opened.App.Door, opened.App.LostDoor = doorOut(one, app.Path, wish.port), nil
	}
	address := opened.App.URL
	if opened.App.Door != nil {
		address = opened.App.Door.Addresses[0]
	}
	if opened.URL, err = s.ticketed(address, host); err != nil {
		return api.Opened{}, err
	}
	if req.Window {
		title := app.Title
		if one, err := agent.Get(r.Context(), id); err == nil {
			title = fmt.Sprintf("%s · %s", app.Title, one.Name)
		}
		opened.Windowed = s.hub.OpenWindow(hub.Window{URL: opened.URL, Title: session.Printable(title)})
	}
	return opened, nil
}

func (s appRoutes) ticketed(address string, host appHost) (string, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	query := parsed.Query()
	query.Set(ticketParam, s.tickets.give(host.name()))
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}
