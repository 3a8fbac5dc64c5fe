package server

import (
	"io"
	"net/http"
	"os"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/diagnose"
	"slipway/backend/hub"
	"slipway/backend/session"
)

// none is no body.
type none = route.None

// mounts gives routes their handlers, each of the types of its route.
type mounts struct {
	server *Server
	names  []string // of the routes that have one
}

// routes are handlers that belong together.
type routes interface{ mount(m *mounts) }

// routes puts all handlers together. Each part gets only what it needs.
func (s *Server) routes(config Config) []routes {
	person, _ := os.UserHomeDir() // without one its path stays in reports
	redactor := diagnose.NewRedactor(person, config.Token)
	return []routes{
		s,
		sessionRoutes{hub: s.hub},
		terminalRoutes{hub: s.hub, sockets: &s.sockets},
		appRoutes{hub: s.hub, apps: s.apps, doors: s.doors, tickets: s.tickets},
		sshRoutes{hub: s.hub, ssh: config.SSH, sockets: &s.sockets},
		fileRoutes{hub: s.hub, log: s.log},
		folderRoutes{hub: s.hub},
		imageRoutes{hub: s.hub},
		deviceRoutes{hub: s.hub, clock: s.clock},
		agentRoutes{hub: s.hub},
		recipeRoutes{hub: s.hub},
		settingRoutes{hub: s.hub, shutdown: config.Shutdown},
		diagnosticRoutes{hub: s.hub, logFile: config.LogFile, redactor: redactor},
		demoRoutes{hub: s.hub, demo: config.Demo, demoStarter: config.DemoStarter},
		eventRoutes{hub: s.hub, log: s.log, sockets: &s.sockets},
	}
}

func (s *Server) mount(m *mounts) {
	answer(m, route.LoginLink, s.createLoginLink)
	take(m, route.LoginPass, s.createPass)
	m.stream(route.OpenAPI.Endpoint, s.openAPI)
}

// answer handles a route whose request has no body.
func answer[Out any](m *mounts, at route.Route[none, Out], handle func(*http.Request) (Out, error)) {
	m.respond(at.Endpoint, func(r *http.Request) (any, error) { return handle(r) })
}

// always handles a request whose answer cannot fail.
func always[Out any](call func() Out) func(*http.Request) (Out, error) {
	return func(*http.Request) (Out, error) { return call(), nil }
}

// listed is always for a list of which each item is turned.
func listed[A, B any](call func() []A, turn func(A) B) func(*http.Request) ([]B, error) {
	return always(func() []B { return each(call(), turn) })
}

// named handles a request about what a parameter of its path names.
func named[Out any](part string, call func(name string) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (Out, error) { return call(r.PathValue(part)) }
}

// take handles a route with a body in its request, which is decoded strictly.
func take[In, Out any](m *mounts, at route.Route[In, Out], handle func(*http.Request, In) (Out, error)) {
	m.respond(at.Endpoint, func(r *http.Request) (any, error) {
		var in In
		if err := decode(r, &in); err != nil {
			return nil, err
		}
		return handle(r, in)
	})
}

// takeDraft handles a route whose request may have fields that are wrong, which
// the handler is told: those that decode finds, [decodeDraft] or [decodeWhatFits].
func takeDraft[In, Out any](m *mounts, at route.Route[In, Out],
	decode func(*http.Request, any) ([]session.FieldError, error),
	handle func(*http.Request, In, []session.FieldError) (Out, error)) {
	m.respond(at.Endpoint, func(r *http.Request) (any, error) {
		var in In
		wrong, err := decode(r, &in)
		if err != nil {
			return nil, fromSpec(err)
		}
		return handle(r, in, wrong)
	})
}

// respond writes what handle returns as JSON, or no body for none.
func (m *mounts) respond(at *route.Endpoint, handle func(*http.Request) (any, error)) {
	m.stream(at, func(w http.ResponseWriter, r *http.Request) error {
		value, err := handle(r)
		if err != nil {
			return err
		}
		if _, empty := value.(none); empty {
			w.WriteHeader(at.Status)
			return nil
		}
		writeJSON(w, at.Status, value)
		return nil
	})
}

// stream handles a route by a function that writes its own answer. An error it
// returns is written as a Problem, so it returns one only before it has written.
func (m *mounts) stream(at *route.Endpoint, handle func(http.ResponseWriter, *http.Request) error) {
	m.names = append(m.names, at.Name)
	m.server.mux.HandleFunc(at.Method()+" "+at.Path(), func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			m.server.fail(w, r, err)
		}
	})
}

// What handlers need of an agent it has.
var _ interface {
	changer
	opener
	teller
} = session.Agent{}

// inSession handles a request about one session, which it finds with its agent.
// The handler says which part of the agent it needs, or which of its methods.
func inSession[Agent, Out any](h *hub.Hub,
	handle func(*http.Request, Agent, session.ID) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (out Out, err error) {
		agent, id, err := h.Find(r.Context(), r.PathValue("id"))
		if err != nil {
			return out, err
		}
		return handle(r, any(agent).(Agent), id)
	}
}

// sendInSession does the same for a request with a body.
func sendInSession[Agent, In, Out any](h *hub.Hub,
	handle func(*http.Request, Agent, session.ID, In) (Out, error)) func(*http.Request, In) (Out, error) {
	return func(r *http.Request, in In) (Out, error) {
		return inSession(h, func(r *http.Request, agent Agent, id session.ID) (Out, error) {
			return handle(r, agent, id, in)
		})(r)
	}
}

// as turns what a call returns, unless that fails.
func as[A, B any](turn func(A) B) func(A, error) (B, error) {
	return func(a A, err error) (b B, _ error) {
		if err != nil {
			return b, err
		}
		return turn(a), nil
	}
}

// eachAs does the same for each item of a list.
func eachAs[A, B any](turn func(A) B) func([]A, error) ([]B, error) {
	return as(func(items []A) []B { return each(items, turn) })
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, api.OpenAPI) // a client that is gone needs no answer
	return nil
}

// serveAPI answers under /api/, with a Problem also where there is nothing.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.mux.Handler(r); pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	allowed := ""
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allowed += method + ", "
		}
	}
	if allowed != "" {
		w.Header().Set("Allow", allowed[:len(allowed)-2])
		s.fail(w, r, wrongMethod(r.Method, allowed[:len(allowed)-2]))
		return
	}
	s.fail(w, r, noSuchPath(r.URL.Path))
}
