package server

import (
	"io"
	"maps"
	"net/http"
	"os"

	"slipway/backend/api"
	"slipway/backend/diagnose"
)

// answer handles an endpoint whose result is JSON or nothing.
type answer func(r *http.Request) (any, error)

// streamed handles an endpoint that writes its own answer. An error it returns
// is written as a Problem, so it returns one only before it has written.
type streamed func(w http.ResponseWriter, r *http.Request) error

// routes are handlers that belong together, by the names of their routes.
type routes interface {
	answers() map[string]answer
	streams() map[string]streamed
}

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

func (s *Server) answers() map[string]answer {
	return map[string]answer{
		"login-link": s.createLoginLink,
		"login-pass": s.createPass,
	}
}

func (s *Server) streams() map[string]streamed {
	return map[string]streamed{
		"openapi": s.openAPI,
	}
}

// mount gives every route of package api its handler. A route without one
// answers as not found; a test holds that there is none.
func (s *Server) mount(config Config) {
	answers, streams := map[string]answer{}, map[string]streamed{}
	for _, part := range s.routes(config) {
		maps.Copy(answers, part.answers())
		maps.Copy(streams, part.streams())
	}
	for _, route := range api.Routes {
		pattern := route.Method + " " + route.Path
		if handle, ok := answers[route.Name]; ok {
			s.mux.Handle(pattern, s.answering(route, handle))
		} else if handle, ok := streams[route.Name]; ok {
			s.mux.Handle(pattern, s.streaming(handle))
		}
	}
}

// ofFolder begins the names of routes to a folder's files. The rest is that of
// the route to a session's, and so is the handler.
const ofFolder = "folder-"

// alsoOfFolders adds the routes to the files of folders to those of sessions.
func alsoOfFolders[H any](handlers map[string]H) map[string]H {
	all := maps.Clone(handlers)
	for name, handle := range handlers {
		all[ofFolder+name] = handle
	}
	return all
}

func (s *Server) answering(route api.Route, handle answer) http.Handler {
	status := route.Status
	if status == 0 {
		status = http.StatusOK
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		value, err := handle(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case value == nil:
			w.WriteHeader(status)
		default:
			writeJSON(w, status, value)
		}
	})
}

func (s *Server) streaming(handle streamed) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			s.fail(w, r, err)
		}
	})
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
