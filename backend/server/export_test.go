package server

import (
	"cmp"
	"net/http"
	"time"

	"slipway/backend/hub"
	"slipway/backend/session"
)

// Handlers lists the names of all handlers.
func Handlers() []string {
	m := &mounts{server: &Server{mux: http.NewServeMux(), hub: &hub.Hub{}}}
	for _, part := range m.server.routes(Config{}) {
		part.mount(m)
	}
	return m.names
}

// Decode reads a request body as an endpoint does.
func Decode(data []byte, into any) ([]session.FieldError, error) {
	found, err := decodeBytes(data, into)
	return found.units, cmp.Or(err, failureOf(found.wrong))
}

// ArchiveName exports archiveName.
var ArchiveName = archiveName

// Seal exports seal.
func (s *Server) Seal(purpose string) string { return s.seal(purpose) }

// Known exports known.
func (s *Server) Known(r *http.Request) bool { return s.known(r) }

// ForgetPorts makes the next request to any app ask where it is.
func (s *Server) ForgetPorts() {
	s.apps.mu.Lock()
	defer s.apps.mu.Unlock()
	clear(s.apps.ports)
}

// SetPatience says how long requests to apps, and those for their pages, wait
// for an agent. It is called before the first request.
func (s *Server) SetPatience(request, page time.Duration) {
	s.apps.requestPatience, s.apps.pagePatience = request, page
}
