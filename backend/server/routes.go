package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/diagnose"
	"slipway/backend/hub"
	"slipway/backend/session"
)

type none = route.None

// mounts registers the handlers of routes.
type mounts struct {
	server *Server
	names  []string // of the registered routes
}

// routes is a group of handlers.
type routes interface{ mount(m *mounts) }

// routes returns all groups of handlers.
func (s *Server) routes(config Config) []routes {
	person, _ := os.UserHomeDir() // if unknown, reports keep its path
	redactor := diagnose.NewRedactor(person, config.Token)
	return []routes{
		s,
		sessionRoutes{hub: s.hub},
		terminalRoutes{hub: s.hub, sockets: &s.sockets},
		appRoutes{hub: s.hub, apps: s.apps, doors: s.doors, tickets: s.tickets},
		serviceRoutes{hub: s.hub, doors: s.doors, chats: &chats{}},
		sshRoutes{hub: s.hub, ssh: config.SSH, sockets: &s.sockets},
		fileRoutes{hub: s.hub, log: s.log},
		machineRoutes{hub: s.hub, clock: s.clock},
		agentRoutes{hub: s.hub},
		recipeRoutes{hub: s.hub},
		serviceRecipes{hub: s.hub},
		planeRoutes{hub: s.hub, shutdown: config.Shutdown, log: s.log, logFile: config.LogFile, redactor: redactor,
			sockets: &s.sockets, demo: config.Demo, demoStarter: config.DemoStarter, updates: config.Updates},
	}
}

func (s *Server) mount(m *mounts) {
	answer(m, route.LoginLink, s.createLoginLink)
	take(m, route.LoginPass, s.createPass)
	m.stream(route.OpenAPI.Endpoint, s.openAPI)
}

// answer registers the handler of a route whose requests have no body.
func answer[Out any](m *mounts, at route.Route[none, Out], handle func(*http.Request) (Out, error)) {
	m.respond(at.Endpoint, func(r *http.Request) (any, error) { return handle(r) })
}

// always returns a handler that cannot fail.
func always[Out any](call func() Out) func(*http.Request) (Out, error) {
	return func(*http.Request) (Out, error) { return call(), nil }
}

// named returns a handler that calls call with a parameter of the path.
func named[Out any](part string, call func(name string) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (Out, error) { return call(r.PathValue(part)) }
}

// sendNamed is like named for requests with a body.
func sendNamed[In, Out any](part string,
	call func(name string, in In) (Out, error)) func(*http.Request, In) (Out, error) {
	return func(r *http.Request, in In) (Out, error) { return call(r.PathValue(part), in) }
}

// onAgent returns a handler that calls call with the agent in the query.
func onAgent[Out any](call func(ctx context.Context, agent string) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (Out, error) { return call(r.Context(), r.FormValue("agent")) }
}

// take registers the handler of a route whose requests have a body, which is decoded strictly.
func take[In, Out any](m *mounts, at route.Route[In, Out], handle func(*http.Request, In) (Out, error)) {
	m.respond(at.Endpoint, func(r *http.Request) (any, error) {
		var in In
		if err := decode(r, &in); err != nil {
			return nil, err
		}
		return handle(r, in)
	})
}

// takeDraft is like take for requests in which some fields may be wrong. The handler gets those that decode,
// [decodeDraft] or [decodeWhatFits], reports.
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

// respond registers a handler whose result is written as JSON; none is no body. If the client has disconnected before
// the answer to a request that started an operation, it cancels the operation.
func (m *mounts) respond(at *route.Endpoint, handle func(*http.Request) (any, error)) {
	m.stream(at, func(w http.ResponseWriter, r *http.Request) error {
		value, err := handle(r)
		started, isOperation := value.(api.Operation)
		if err == nil && isOperation && at.Status == http.StatusAccepted && r.Context().Err() != nil {
			value, err = m.server.hub.CancelOperation(started.ID)
		}
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

// stream registers a handler that writes its own answer. It may return an error, which is written as a Problem, only if
// it has not written anything.
func (m *mounts) stream(at *route.Endpoint, handle func(http.ResponseWriter, *http.Request) error) {
	m.names = append(m.names, at.Name)
	m.server.mux.HandleFunc(at.Method()+" "+at.Path(), func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			m.server.fail(w, r, err)
		}
	})
}

// inSession returns a handler of requests about the session in the path.
func inSession[Out any](h *hub.Hub,
	handle func(*http.Request, session.Agent, session.ID) (Out, error)) func(*http.Request) (Out, error) {
	return func(r *http.Request) (out Out, err error) {
		agent, id, err := h.Find(r.Context(), r.PathValue("id"))
		if err != nil {
			return out, err
		}
		out, err = handle(r, agent, id)
		if session.CodeOf(err) == session.CodeSessionNotFound { // it may have moved to another agent meanwhile
			if agent, moved, lost := h.Find(r.Context(), r.PathValue("id")); lost == nil && moved != id {
				return handle(r, agent, moved)
			}
		}
		return out, err
	}
}

// sendInSession is like inSession for requests with a body.
func sendInSession[In, Out any](h *hub.Hub,
	handle func(*http.Request, session.Agent, session.ID, In) (Out, error)) func(*http.Request, In) (Out, error) {
	return func(r *http.Request, in In) (Out, error) {
		return inSession(h, func(r *http.Request, agent session.Agent, id session.ID) (Out, error) {
			return handle(r, agent, id, in)
		})(r)
	}
}

// as returns a function that converts the result of a call, if the call succeeded.
func as[A, B any](turn func(A) B) func(A, error) (B, error) {
	return func(a A, err error) (b B, _ error) {
		if err != nil {
			return b, err
		}
		return turn(a), nil
	}
}

// eachAs is like as for each item of a list.
func eachAs[A, B any](turn func(A) B) func([]A, error) ([]B, error) {
	return as(func(items []A) []B { return each(items, turn) })
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.WriteString(w, api.OpenAPI)
	return nil
}

// serveAPI serves paths below /api/. Unknown paths and wrong methods are answered with a Problem.
func (s *Server) serveAPI(w http.ResponseWriter, r *http.Request) {
	if _, pattern := s.mux.Handler(r); pattern != "" {
		s.mux.ServeHTTP(w, r)
		return
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		s.wrongMethod(w, r, strings.Join(allowed, ", "))
		return
	}
	s.fail(w, r, session.NewError(session.CodeNoRoute, fmt.Sprintf("There is nothing at %s.", r.URL.Path),
		"GET "+route.OpenAPI.Target()+" lists what there is."))
}

// each converts all items of a list.
func each[A, B any](items []A, turn func(A) B) []B {
	out := make([]B, len(items))
	for i, item := range items {
		out[i] = turn(item)
	}
	return out
}
