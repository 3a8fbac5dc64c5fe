// Command fakemodel is an OpenAI-compatible server for tests. Its answers are numbered words, so that a lost, doubled
// or misplaced one is noticed. A request may ask for a pace. POST /fault?… makes the server sick, deaf or worse from
// then on.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// faults are what is wrong with the server. Every: each so many requests; 0: none.
type faults struct {
	sick, deaf            bool // /health says 500; /health and requests get no answer
	slow                  time.Duration
	failEvery, hangEvery  int
	cutEvery, vanishEvery int // a stream ends in its middle; a connection is closed without an answer
}

type server struct {
	loaded time.Time

	mu     sync.Mutex // guards the rest
	faults faults
	count  int
}

func main() {
	port := flag.Int("port", 8000, "the port to listen on")
	load := flag.Duration("load", 0, "for how long it loads")
	flag.Parse()
	s := &server{loaded: time.Now().Add(*load)}
	routes := http.NewServeMux()
	routes.HandleFunc("/health", s.health)
	routes.HandleFunc("/fault", s.fault)
	routes.HandleFunc("/v1/chat/completions", s.answer)
	routes.HandleFunc("/size", size)
	listener := &http.Server{Addr: fmt.Sprintf(":%d", *port), Handler: routes}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		_ = listener.Close() // as llama-server, it finishes nothing
	}()
	if err := listener.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // nothing to stop
	}
}

// now counts a request and returns the faults.
func (s *server) now(counts bool) (f faults, nth int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if counts {
		s.count++
	}
	return s.faults, s.count
}

func (s *server) health(w http.ResponseWriter, r *http.Request) {
	f, _ := s.now(false)
	time.Sleep(f.slow)
	switch {
	case f.deaf:
		<-r.Context().Done()
	case f.sick:
		http.Error(w, `{"error":{"message":"unwell"}}`, http.StatusInternalServerError)
	case time.Now().Before(s.loaded):
		http.Error(w, `{"error":{"message":"Loading model","code":503}}`, http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, `{"status":"ok"}`)
	}
}

func (s *server) fault(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, values := range r.URL.Query() {
		number := 0
		if _, err := fmt.Sscan(values[0], &number); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch key {
		case "sick":
			s.faults.sick = number > 0
		case "deaf":
			s.faults.deaf = number > 0
		case "slow": // milliseconds
			s.faults.slow = time.Duration(number) * time.Millisecond
		case "fail":
			s.faults.failEvery = number
		case "hang":
			s.faults.hangEvery = number
		case "cut":
			s.faults.cutEvery = number
		case "vanish":
			s.faults.vanishEvery = number
		case "die":
			os.Exit(number)
		}
	}
	w.WriteHeader(http.StatusNoContent)
}

// size says how many bytes it was sent.
func size(w http.ResponseWriter, r *http.Request) {
	total, buffer := 0, make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buffer)
		if total += n; err != nil {
			break
		}
	}
	fmt.Fprint(w, total)
}

// question is the body of a request.
type question struct {
	Model  string `json:"model"`
	Stream bool   `json:"stream"`
	Words  int    `json:"max_tokens"`
	PaceMS int    `json:"pace_ms"` // between words
}

const usage = `"usage":{"prompt_tokens":8,"completion_tokens":%d,"total_tokens":%d}`

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	var asked question
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, `{"error":{"message":"not JSON"}}`, http.StatusBadRequest)
		return
	}
	if asked.Words == 0 {
		asked.Words = 32
	}
	f, nth := s.now(true)
	every := func(n int) bool { return n > 0 && nth%n == 0 }
	switch {
	case f.deaf || every(f.hangEvery):
		<-r.Context().Done()
		return
	case every(f.failEvery):
		http.Error(w, `{"error":{"message":"made to fail"}}`, http.StatusInternalServerError)
		return
	case every(f.vanishEvery):
		panic(http.ErrAbortHandler)
	}
	if asked.Stream {
		stream(w, r, asked, every(f.cutEvery))
		return
	}
	if !pause(r.Context(), asked.Words*asked.PaceMS) {
		return
	}
	var text strings.Builder
	for i := range asked.Words {
		fmt.Fprintf(&text, "w%d ", i)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":%q,"choices":[{"index":0,"finish_reason":"stop",`+
		`"message":{"role":"assistant","content":%q}}],`+usage+"}", asked.Model, text.String(), asked.Words,
		asked.Words+8)
}

func stream(w http.ResponseWriter, r *http.Request, asked question, cut bool) {
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	for i := range asked.Words {
		if i > 0 && !pause(r.Context(), asked.PaceMS) {
			return
		}
		if cut && i == asked.Words/2 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","model":%q,"choices":[{"index":0,`+
			`"finish_reason":null,"delta":{"content":"w%d "}}]}`+"\n\n", asked.Model, i)
		if control.Flush() != nil {
			return
		}
	}
	fmt.Fprintf(w, `data: {"choices":[],`+usage+"}\n\ndata: [DONE]\n\n", asked.Words, asked.Words+8)
}

// pause reports false if the client has left.
func pause(ctx context.Context, milliseconds int) bool {
	if milliseconds == 0 {
		return ctx.Err() == nil
	}
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return true
	case <-ctx.Done():
		return false
	}
}
