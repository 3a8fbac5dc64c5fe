// Package llm is the model server of a simulated session. It speaks the API of OpenAI as llama-server does, and its
// answers begin by saying that nothing is computed.
package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"slipway/backend/pace"
)

// Times by the clock of the session.
const (
	loadTime = time.Second
	wordTime = time.Second / 40 // for each word of an answer
)

// slots is how many requests are answered at a time. Others wait.
const slots = 4

// Config describes a model server. Only the clock is optional.
type Config struct {
	Name    string      // of the model
	Clock   *pace.Clock // nil: the clock on the wall
	Log     io.Writer
	Busy    func(requests int) // is called with the number of requests that are answered now when it changes
	Metrics Metrics
}

// Server is a model server. Its requests end with their contexts.
type Server struct {
	config Config
	routes *http.ServeMux
	ready  time.Time
	slots  chan struct{}

	mu         sync.Mutex // guards the rest, the log, and the order of calls of Busy
	ended      bool
	requests   sync.WaitGroup
	made       int // answers so far
	prompt     int // words so far, as the next
	predicted  int
	processing int
	deferred   int
}

// New returns a server, which loads its model now.
func New(config Config) *Server {
	s := &Server{config: config, routes: http.NewServeMux(), ready: config.Clock.Now().Add(loadTime),
		slots: make(chan struct{}, slots)}
	s.routes.HandleFunc("GET /health", s.health)
	s.routes.HandleFunc("GET /metrics", s.metrics)
	s.routes.HandleFunc("GET /v1/models", s.models)
	s.routes.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		s.complete(w, r, chat)
	})
	s.routes.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		s.complete(w, r, plain)
	})
	s.routes.HandleFunc("POST /v1/embeddings", s.embed)
	s.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, "not_found_error", fmt.Sprintf("There is no %s %s.", r.Method, r.URL.Path))
	})
	return s
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		panic(http.ErrAbortHandler)
	}
	s.requests.Add(1)
	s.mu.Unlock()
	defer s.requests.Done()
	if s.config.Clock.Until(s.ready) > 0 {
		refuse(w, http.StatusServiceUnavailable, "unavailable_error", "Loading model")
		return
	}
	if r.URL.Path == "/health" || r.URL.Path == "/metrics" { // asked all the time
		s.routes.ServeHTTP(w, r)
		return
	}
	noted := &noting{ResponseWriter: w, status: http.StatusOK}
	defer func() { // also of an answer that is cut
		status := fmt.Sprint(noted.status)
		if r.Context().Err() != nil {
			status = "cancelled"
		}
		s.log("request: %s %s %s", r.Method, r.URL.Path, status)
	}()
	s.routes.ServeHTTP(noted, r)
}

// Close waits for the requests, whose contexts must have ended. Later ones are cut.
func (s *Server) Close() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.requests.Wait()
}

func (s *Server) log(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.config.Log, format+"\n", args...) // the reader may have left
}

// noting notes the status of an answer.
type noting struct {
	http.ResponseWriter
	status int
}

func (n *noting) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a stream flush.
func (n *noting) Unwrap() http.ResponseWriter { return n.ResponseWriter }

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"status": "ok"})
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"object": "list", "data": []object{
		{"id": s.config.Name, "object": "model", "created": s.ready.Unix(), "owned_by": "simulation"}}})
}

// begin waits for a slot. It fails if the client leaves before.
func (s *Server) begin(r *http.Request, prompt int) (number int, end func(), err error) {
	s.count(func() { s.deferred++ })
	select {
	case s.slots <- struct{}{}:
	case <-r.Context().Done():
		err = r.Context().Err()
	}
	s.count(func() {
		if s.deferred--; err == nil {
			s.made++
			s.prompt += prompt
			s.processing++
			number = s.made
			s.config.Busy(s.processing)
		}
	})
	return number, func() {
		<-s.slots
		s.count(func() {
			s.processing--
			s.config.Busy(s.processing)
		})
	}, err
}

func (s *Server) count(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

type object = map[string]any

// longestRequest is a limit in bytes.
const longestRequest = 16 << 20

// read decodes the body of a request; if it cannot, it answers with what is wrong.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, longestRequest)).Decode(into)
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		refuse(w, http.StatusRequestEntityTooLarge, invalidRequest, "The request is larger than 16 MiB.")
	} else if err != nil {
		refuse(w, http.StatusBadRequest, invalidRequest, "The request is not valid: "+err.Error())
	}
	return err == nil
}

const invalidRequest = "invalid_request_error"

// refuse answers with an error as OpenAI does.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	write(w, status, object{"error": object{"message": message, "type": kind, "param": nil, "code": nil}})
}

func write(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the reader may have left
}
