package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

const (
	// appCookie admits to one app. It is set for that app's host name only.
	appCookie = ownCookies + "app"
	// ownCookies is the prefix of the names of our cookies. Apps do not see them.
	ownCookies = "slipway_"
	// portApp is the prefix of apps that are only ports. The person's own program listens there and may start at any
	// moment.
	portApp     = "port-"
	portLife    = 5 * time.Second  // how long the port of an app is cached
	restartMost = 20 * time.Second // how long a request waits for an app that restarts
	dialMost    = 10 * time.Second // how long a request retries a port that refuses connections
	dialPause   = 200 * time.Millisecond
	// requestPatience is how long a request waits for an unreachable agent. pagePatience is the same for a page, which
	// then shows why and reloads itself.
	requestPatience = 30 * time.Second
	pagePatience    = 5 * time.Second
	completeMost    = 10 * time.Second // how long a notebook may take to be completed before it is read
	connectionIdle  = 30 * time.Second // how long an unused connection into a session is kept
	connectionsIdle = 8                // the number of unused connections that are kept per app
)

// gateway forwards requests to the apps of sessions, each by its own host name.
type gateway struct {
	server    *Server
	transport *http.Transport
	log       *log.Logger

	requestPatience, pagePatience time.Duration

	mu    sync.Mutex // guards ports
	ports map[appHost]foundPort
}

type foundPort struct {
	port  int
	until time.Time
}

func newGateway(s *Server) *gateway {
	g := &gateway{server: s, log: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), ports: map[appHost]foundPort{},
		requestPatience: requestPatience, pagePatience: pagePatience}
	g.transport = &http.Transport{
		DialContext:         g.dial,
		IdleConnTimeout:     connectionIdle,
		MaxIdleConnsPerHost: connectionsIdle,
		DisableCompression:  true, // pass on compressed responses unchanged
	}
	return g
}

func (g *gateway) close() { g.transport.CloseIdleConnections() }

func (g *gateway) forget(host appHost) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ports, host)
}

// serve authorizes a request to the app that its host names, and forwards it.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request, host appHost) {
	if !fromOwnPage(r) && !isNavigation(r) {
		g.server.fail(w, r, session.NewError(session.CodeOriginForbidden, "This request comes from another page.",
			"Open the app from Slipway."))
		return
	}
	admitted := g.server.hasSeal(r, appCookie, "app "+host.name())
	if r.URL.Query().Has(ticketParam) {
		g.enter(w, r, host, admitted)
		return
	}
	if !admitted {
		g.explain(w, r, http.StatusForbidden, page{Title: "Open this app from Slipway", Link: homeOf(r),
			Text: "Its address alone does not let anybody in. Slipway opens it with a ticket that works once."})
		return
	}
	g.serveAdmitted(w, r, host)
}

func (g *gateway) serveAdmitted(w http.ResponseWriter, r *http.Request, host appHost) {
	port, err := g.reach(r, host)
	if err != nil {
		g.explainError(w, r, host, err)
		return
	}
	switch notebook := notebookOf(r, host); {
	case notebook != "":
		g.complete(r.Context(), host, port, notebook)
	case jupyter(host) && r.URL.Path == session.LivePath:
		port = session.KeeperPort(port)
	}
	g.forward(w, r, host, port)
}

// notebookOf returns the path of the notebook that a page of Jupyter is about to read, "" if it is another request. A
// page that only asks when a file was saved asks without its content.
func notebookOf(r *http.Request, host appHost) string {
	at, isFile := strings.CutPrefix(r.URL.Path, "/api/contents/")
	if !jupyter(host) || !isFile || r.Method != http.MethodGet || !strings.HasSuffix(at, ".ipynb") ||
		r.URL.Query().Get("content") == "0" {
		return ""
	}
	return at
}

// jupyter reports whether an app has notebooks, whose output a session may keep.
func jupyter(host appHost) bool { return host.app == "jupyterlab" || host.app == "notebook" }

// complete has a notebook written with what its cells printed while no page was open, where the session keeps that. See
// package keeper.
func (g *gateway) complete(ctx context.Context, host appHost, port int, notebook string) {
	ctx, cancel := context.WithTimeout(ctx, completeMost)
	defer cancel()
	agent, id, err := g.agentOf(ctx, host)
	if err != nil {
		return // so says the request itself
	}
	conn, err := agent.DialPort(ctx, id, session.KeeperPort(port))
	if err != nil {
		return // nothing keeps it
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if _, err := fmt.Fprintf(conn, "GET /write?path=%s HTTP/1.0\r\n\r\n", url.QueryEscape(notebook)); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // whatever it answers, the page shows what is there
	}
}

// enter exchanges a ticket for the app's cookie and continues without it, so that the ticket is in no history, log or
// address that the app sees.
func (g *gateway) enter(w http.ResponseWriter, r *http.Request, host appHost, admitted bool) {
	if !g.server.onlyGet(w, r) {
		return
	}
	query := r.URL.Query()
	ticket := query.Get(ticketParam)
	query.Del(ticketParam)
	next := (&url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: query.Encode()}).RequestURI()
	if !g.server.tickets.take(ticket, host.name()) && !admitted {
		g.explain(w, r, http.StatusForbidden, page{Title: "This ticket no longer works", Link: homeOf(r),
			Text: "A ticket opens an app once and for one minute. Open the app again from Slipway."})
		return
	}
	if !admitted {
		http.SetCookie(w, &http.Cookie{Name: appCookie, Value: g.server.seal("app " + host.name()), Path: "/",
			HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	forward(w, localPath(next))
}

// reach returns the port of an app. If the session's agent is unreachable, the request waits for a while.
func (g *gateway) reach(r *http.Request, host appHost) (int, error) {
	ctx, cancel := context.WithTimeout(r.Context(), g.patience(r))
	defer cancel()
	for {
		port, err := g.find(ctx, host, isNavigation(r))
		if err == nil || !unreached(err) {
			return port, err
		}
		remote, waitErr := g.server.hub.AwaitKeeper(ctx, g.server.hub.Heir(host.session))
		if !remote || waitErr != nil {
			return 0, err
		}
		select {
		case <-time.After(dialPause): // the loss of the agent may not have been noticed yet
		case <-ctx.Done():
			return 0, err
		}
	}
}

func (g *gateway) patience(r *http.Request) time.Duration {
	if isNavigation(r) {
		return g.pagePatience
	}
	return g.requestPatience
}

// patient is the context key of a request's patience, for dial.
type patient struct{}

func unreached(err error) bool {
	code := session.CodeOf(err)
	return code.Detail() == session.DetailUnavailable && strings.HasPrefix(string(code), "agent_")
}

// agentOf returns the session of an app, or the one that continues it, and its agent.
func (g *gateway) agentOf(ctx context.Context, host appHost) (session.Agent, session.ID, error) {
	return g.server.hub.Find(ctx, string(g.server.hub.Heir(host.session)))
}

// find returns the port of an app. It waits while the app starts and restarts it if it died, but not if a person
// stopped it. In a session that continues the one of the address, opening its page starts it.
func (g *gateway) find(ctx context.Context, host appHost, opens bool) (int, error) {
	g.mu.Lock()
	found, ok := g.ports[host]
	g.mu.Unlock()
	if ok && time.Now().Before(found.until) {
		return found.port, nil
	}
	ctx, cancel := context.WithTimeout(ctx, restartMost)
	defer cancel()
	agent, id, err := g.agentOf(ctx, host)
	if err != nil {
		return 0, err
	}
	apps, err := agent.ListApps(ctx, id)
	if err != nil {
		return 0, err
	}
	for _, app := range apps {
		if app.ID != host.app {
			continue
		}
		starts := app.State == session.AppStopped && opens && id != host.session
		if app.State == session.AppStopped && !starts && !strings.HasPrefix(app.ID, portApp) {
			return 0, session.NewError(session.CodeAppConflict, fmt.Sprintf("%s is not running.", app.Title),
				"Open it from Slipway.")
		}
		if starts || app.State == session.AppFailed || app.State == session.AppStarting {
			if app, err = agent.StartApp(ctx, id, session.AppRequest{App: app.ID, Dir: app.Dir}); err != nil {
				return 0, err
			}
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		now := time.Now()
		maps.DeleteFunc(g.ports, func(_ appHost, found foundPort) bool { return now.After(found.until) })
		g.ports[host] = foundPort{port: app.Port, until: now.Add(portLife)}
		return app.Port, nil
	}
	return 0, session.NewError(session.CodeAppNotFound, fmt.Sprintf("The session has no app %q.", host.app),
		"Look at its apps in Slipway.")
}

// forward is a reverse proxy to one app. The app sees requests to localhost at its own port, which notebook servers
// require, and none of our cookies.
func (g *gateway) forward(w http.ResponseWriter, r *http.Request, host appHost, port int) {
	r, begun := g.bounded(r, host)
	defer begun()
	portText := strconv.Itoa(port)
	ours, theirs := "http://"+r.Host, "http://localhost:"+portText
	proxy := httputil.ReverseProxy{
		Transport:     g.transport,
		FlushInterval: -1,
		ErrorLog:      g.log,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host = "http", string(g.server.hub.Heir(host.session))+":"+portText
			p.Out.Host = "localhost:" + portText
			p.Out.Header.Del("X-Real-Ip")
			p.Out.Header.Set("X-Forwarded-Proto", "http")
			translate(p.Out.Header, "Origin", ours, theirs)
			translate(p.Out.Header, "Referer", ours, theirs)
			stripCookies(p.Out.Header)
		},
		ModifyResponse: func(response *http.Response) error {
			begun()
			translate(response.Header, "Location", theirs, ours)
			keepCookiesHome(response.Header)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			g.forget(host)
			g.explainError(w, r, host, causeOf(r, err))
		},
	}
	proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), patient{}, g.patience(r))))
}

// translate replaces the origin of the address in a header.
func translate(header http.Header, name, from, to string) {
	value := header.Get(name)
	if rest, ok := strings.CutPrefix(value, from); ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
		header.Set(name, to+rest)
	}
}

// stripCookies removes our cookies from a request and leaves the others unchanged.
func stripCookies(header http.Header) {
	lines := header.Values("Cookie")
	header.Del("Cookie")
	for _, line := range lines {
		kept := make([]string, 0, 8)
		for _, part := range strings.Split(line, ";") {
			if part = strings.TrimSpace(part); part != "" && !strings.HasPrefix(part, ownCookies) {
				kept = append(kept, part)
			}
		}
		if len(kept) > 0 {
			header.Add("Cookie", strings.Join(kept, "; "))
		}
	}
}

// keepCookiesHome lets an app set cookies for its own host name only, and none with our prefix.
func keepCookiesHome(header http.Header) {
	lines := header.Values("Set-Cookie")
	header.Del("Set-Cookie")
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), ownCookies) {
			continue
		}
		parts := slices.DeleteFunc(strings.Split(line, ";"), func(part string) bool {
			name, _, _ := strings.Cut(strings.TrimSpace(part), "=")
			return strings.EqualFold(name, "domain")
		})
		header.Add("Set-Cookie", strings.Join(parts, ";"))
	}
}

// dial connects to "<session>:<port>". It retries a port that refuses connections for a while, because the app may be
// restarting.
func (g *gateway) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(portText)
	if err != nil {
		return nil, err
	}
	patience, known := ctx.Value(patient{}).(time.Duration)
	if !known {
		patience = g.requestPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	until := time.Now().Add(dialMost)
	for {
		agent, id, err := g.server.hub.Find(ctx, host)
		if err != nil {
			return nil, err
		}
		conn, err := agent.DialPort(ctx, id, port)
		if err == nil {
			return conn, nil
		}
		if unreached(err) {
			if remote, waitErr := g.server.hub.AwaitKeeper(ctx, id); !remote || waitErr != nil {
				return nil, err
			}
			until = time.Now().Add(dialMost)
		} else if one, getErr := agent.Get(ctx, id); getErr == nil && one.Status != session.Running {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialPause):
			if time.Now().After(until) {
				return nil, err
			}
		}
	}
}

func homeOf(r *http.Request) string { return "http://127.0.0.1:" + portOf(r) + "/" }

// explainError says why an app is unavailable, or how its session ended. The page of a live session reloads itself.
func (g *gateway) explainError(w http.ResponseWriter, r *http.Request, host appHost, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return
	}
	e := asError(err)
	p := page{Title: "The app does not answer", Text: strings.TrimSpace(e.Message + " " + e.Hint), Link: homeOf(r),
		Retry: 3}
	status := e.Code.Status()
	if e.Code == session.CodeServerInternal {
		p.Text, status = "It may be busy or starting. This page retries automatically.", http.StatusBadGateway
	}
	one, findErr := g.sessionOf(r.Context(), host)
	keeper, _ := g.server.hub.Keeper(host.session)
	switch {
	case keeper.Address != "" && !keeper.Connection.Online:
		status = http.StatusServiceUnavailable
		p.Title, p.Text = keeper.Name+" is not reached", lostText(one.Name, keeper, g.server.clock.Now())
	case findErr != nil && session.CodeOf(findErr).Detail() != session.DetailNotFound:
	case findErr != nil:
		p.Title, p.Text, p.Retry, status = "There is no such session", "It may have been removed.", 0,
			http.StatusNotFound
	case one.Continuable():
		p.Title, status = "The session is stopped and kept", http.StatusServiceUnavailable
		p.Text = "Continue " + one.Name + " in Slipway. This page then opens by itself."
	case one.Status.Terminal():
		p.Title, p.Retry, status = "The session has ended", 0, http.StatusGone
		p.Text = fmt.Sprintf("%s ended: %s.", one.Name, cmp.Or(string(one.Reason), string(one.Status)))
	case one.Status != session.Running:
		p.Title, status = "The session is not running", http.StatusServiceUnavailable
		p.Text = fmt.Sprintf("%s is %s. This page retries automatically.", one.Name, one.Status)
	case e.Code == session.CodeAppConflict || e.Code == session.CodeAppNotFound:
		p.Title, p.Retry = "The app is not running", 0
	}
	g.explain(w, r, status, p)
}

func (g *gateway) sessionOf(ctx context.Context, host appHost) (session.Session, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	one, _, err := g.server.hub.Get(ctx, string(g.server.hub.Heir(host.session)))
	return one, err
}

// lostText says since when an agent is unreachable, and what that means for a session there.
func lostText(name string, keeper hub.Agent, now time.Time) string {
	text := "It has not responded since Slipway started."
	if at := keeper.Connection.LastHeard; at != nil {
		text = fmt.Sprintf("It last responded at %s, %s ago.", at.Local().Format("15:04:05"),
			session.Duration(now.Sub(*at)).Words())
	}
	if keeper.Connection.Waits != "" {
		text += " " + keeper.Connection.Waits
	}
	return text + " " + cmp.Or(name, "The session") + " keeps running there. This page reloads automatically."
}

// explain answers with a page for people or a Problem for programs.
func (g *gateway) explain(w http.ResponseWriter, r *http.Request, status int, p page) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		showPage(w, status, p)
		return
	}
	problem := session.NewError(session.CodeAppUnavailable, p.Title+".", p.Text)
	if status == http.StatusForbidden {
		problem.Code = session.CodeLoginRequired
	}
	writeJSON(w, status, problem)
}

// errNotReached ends a request whose agent was unreachable for longer than the request waits.
var errNotReached = &session.Error{Code: session.CodeAgentUnavailable, Message: "The agent is not reached.",
	Hint: "Slipway keeps trying. Check the state of its connection."}

// bounded limits how long a request waits for its response while the session's agent is unreachable: connections into
// sessions outlive their tunnel, but a page should not load forever. It returns the request to make and a function that
// ends the limit; call it when the response begins, and at the end. Upgrades, such as a notebook's WebSocket, have no
// limit.
func (g *gateway) bounded(r *http.Request, host appHost) (request *http.Request, begun func()) {
	if r.Header.Get("Upgrade") != "" {
		return r, func() {}
	}
	ctx, giveUp := context.WithCancelCause(r.Context())
	watching, stop := context.WithCancel(r.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for watching.Err() == nil {
			if remote, err := g.server.hub.AwaitKeeperLost(watching, host.session); !remote || err != nil {
				return
			}
			waiting, cancel := context.WithTimeout(watching, g.patience(r))
			remote, err := g.server.hub.AwaitKeeper(waiting, host.session)
			cancel()
			if err != nil && watching.Err() == nil || !remote {
				giveUp(errNotReached)
				return
			}
		}
	})
	return r.WithContext(ctx), func() { stop(); watch.Wait() }
}

// causeOf returns why a request failed: the cause of its context if that is errNotReached, else err.
func causeOf(r *http.Request, err error) error {
	if cause := context.Cause(r.Context()); errors.Is(cause, errNotReached) {
		return cause
	}
	return err
}
