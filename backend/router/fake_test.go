package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/session"
)

// pipes is a listener in memory.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// manner is how a fake model server behaves.
type manner struct {
	words    int           // in an answer without max_tokens; default 8
	first    time.Duration // before the first word
	each     time.Duration // between words
	slots    int           // requests at a time; others wait; 0: no limit
	cutAfter int           // words until the connection of a stream is cut
	vanish   bool          // close every connection as soon as a request is read
	hang     bool          // do not answer
	silent   bool          // close the connection of a stream after it, without announcing that
	status   int           // answer with this error
	events   bool          // answer every request with a stream
}

// fake is a model server that says numbered words, with faults.
type fake struct {
	id       session.ID
	listener *pipes
	server   *http.Server
	slots    chan struct{}

	mu     sync.Mutex // guards the rest
	manner manner
	seen   []seen
	hold   chan struct{} // streams begin when it is closed

	conns, running, left, said atomic.Int64
}

// seen is a request as it arrived.
type seen struct {
	header http.Header
	path   string
	body   string
	remote net.Conn
}

type connKey struct{}

// ending is a connection that is closed after its answer if flag is set.
type ending struct {
	net.Conn
	flag atomic.Bool
}

func newFake(t testing.TB, id session.ID, how manner) *fake {
	f := &fake{id: id, listener: newPipes(), manner: how}
	if how.slots > 0 {
		f.slots = make(chan struct{}, how.slots)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/v1/chat/completions", f.complete)
	mux.HandleFunc("/v1/completions", f.complete)
	mux.HandleFunc("/echo/", f.echo)
	mux.HandleFunc("/shout", shout)
	mux.HandleFunc("/early", func(w http.ResponseWriter, _ *http.Request) {
		http.NewResponseController(w).EnableFullDuplex() // else the server reads the body first
		http.Error(w, "no need for the body", http.StatusConflict)
	})
	mux.HandleFunc("/verbose", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
	})
	f.server = &http.Server{Handler: mux,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			f.conns.Add(1)
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle && c.(*ending).flag.Load() {
				c.Close()
			}
		}}
	go f.server.Serve(endings{f.listener})
	t.Cleanup(f.die)
	return f
}

type endings struct{ net.Listener }

func (e endings) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	return &ending{Conn: c}, err
}

// die cuts every connection and refuses new ones.
func (f *fake) die() { f.server.Close() }

func (f *fake) behave(how manner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.manner = how
}

func (f *fake) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

// shout switches to a protocol that repeats each line in capitals.
func shout(w http.ResponseWriter, r *http.Request) {
	c, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Fprintf(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
		r.Header.Get("Upgrade"))
	for both.Flush() == nil {
		line, err := both.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprint(both, strings.ToUpper(line))
	}
}

func (f *fake) note(r *http.Request, body string) (manner, net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := r.Context().Value(connKey{}).(net.Conn)
	f.seen = append(f.seen, seen{r.Header, r.URL.RequestURI(), body, c})
	return f.manner, c
}

func (f *fake) echo(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	f.note(r, "")
	fmt.Fprintf(w, "%s %s %d", r.Method, r.URL.RequestURI(), n)
}

func (f *fake) complete(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var ask struct {
		Model     string `json:"model"`
		Stream    bool   `json:"stream"`
		MaxTokens int    `json:"max_tokens"`
		Options   struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	if err != nil || json.Unmarshal(body, &ask) != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	how, c := f.note(r, string(body))
	words := how.words
	if words == 0 {
		words = 8
	}
	if ask.MaxTokens > 0 {
		words = ask.MaxTokens
	}
	f.running.Add(1)
	defer f.running.Add(-1)
	switch {
	case how.vanish:
		panic(http.ErrAbortHandler)
	case how.hang:
		<-r.Context().Done()
		f.left.Add(1)
		return
	case how.status > 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(how.status)
		fmt.Fprint(w, `{"error":{"message":"made to fail"}}`)
		return
	}
	if f.slots != nil {
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
	}
	w.Header().Set("X-Replica", string(f.id))
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Set-Cookie", "login=2")
	if !ask.Stream && !how.events {
		f.pause(r, how.first)
		f.said.Add(int64(words))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","choices":[{"message":{"role":"assistant","content":%q}}],`+
			`"usage":{"prompt_tokens":5,"completion_tokens":%d,"total_tokens":%d}}`, text(words), words, words+5)
		return
	}
	c.(*ending).flag.Store(how.silent)
	w.Header().Set("Content-Type", "text/event-stream")
	f.pause(r, how.first)
	f.mu.Lock()
	hold := f.hold
	f.mu.Unlock()
	if hold != nil {
		<-hold
	}
	for i := range words {
		if how.cutAfter > 0 && i == how.cutAfter {
			panic(http.ErrAbortHandler)
		}
		f.said.Add(1)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"w%d \"}}]}\n\n", i)
		if http.NewResponseController(w).Flush() != nil || !f.pause(r, how.each) {
			f.left.Add(1)
			return
		}
	}
	if ask.Options.IncludeUsage {
		fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":%d}}\n\n", words)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (f *fake) pause(r *http.Request, span time.Duration) bool {
	if span == 0 {
		return r.Context().Err() == nil
	}
	select {
	case <-time.After(span):
		return true
	case <-r.Context().Done():
		return false
	}
}

// text is what a model says in so many words.
func text(words int) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}
