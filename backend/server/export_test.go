package server

import (
	"slices"
	"time"
)

// Handlers lists the names of all handlers.
func Handlers() []string {
	var s Server
	return slices.Concat(sortedNames(s.answers()), sortedNames(s.agentAnswers()), sortedNames(s.folderAnswers()), sortedNames(s.streams()))
}

// Decode reads a request body as an endpoint does.
func Decode[T any](data []byte) (T, error) { return decodeBytes[T](data) }

// SpecIn exports specIn.
var SpecIn = specIn

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
