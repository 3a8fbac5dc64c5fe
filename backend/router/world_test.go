package router

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway/backend/session"
)

// world is a router with replicas and a client, all in memory.
type world struct {
	t      testing.TB
	router *Router
	client *http.Client
	conns  atomic.Int64 // that the client opened

	mu      sync.Mutex // guards the rest
	fakes   map[session.ID]*fake
	records []Record
	wakes   []string
	refused []session.ID
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, fakes: map[session.ID]*fake{}}
	w.router = New(Config{
		Dial: w.dial,
		Account: func(r Record) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.records = append(w.records, r)
		},
		Wake: func(name string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wakes = append(w.wakes, name)
		},
		Refused: func(_ string, replica session.ID) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refused = append(w.refused, replica)
		},
		Named: func(host string) bool { return strings.EqualFold(host, "lab.example") },
	})
	listener := newPipes()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- w.router.Serve(ctx, listener) }()
	transport := &http.Transport{MaxIdleConnsPerHost: 1000,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			w.conns.Add(1)
			return listener.dial(ctx)
		}}
	w.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return w
}

func (w *world) dial(ctx context.Context, id session.ID, port int) (net.Conn, error) {
	w.mu.Lock()
	f := w.fakes[id]
	w.mu.Unlock()
	if f == nil || port != 8000 {
		return nil, fmt.Errorf("nothing listens on port %d of %q", port, id)
	}
	return f.listener.dial(ctx)
}

// start starts fake servers.
func (w *world) start(how manner, ids ...session.ID) {
	for _, id := range ids {
		f := newFake(w.t, id, how)
		w.mu.Lock()
		w.fakes[id] = f
		w.mu.Unlock()
	}
}

// public is a service that needs no token, with ready replicas.
func public(ids ...session.ID) Service {
	s := Service{Name: "chat", Owner: "ada", Public: true, IncludeUsage: true, Models: []string{"m"}, Revision: 7}
	for _, id := range ids {
		s.Replicas = append(s.Replicas, Replica{ID: id, Revision: 3, Port: 8000, Ready: true})
	}
	return s
}

func token(id, text string) Token { return Token{ID: id, Hash: sha256.Sum256([]byte(text))} }

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error // why the body broke off
}

// do sends a request. Its headers are given as name, value, name, value …
func (w *world) do(ctx context.Context, method, path string, body io.Reader, headers ...string) reply {
	w.t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:9000"+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	for pair := range slices.Chunk(headers, 2) {
		if pair[0] == "Host" {
			request.Host = pair[1]
		}
		request.Header.Set(pair[0], pair[1])
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{answer.StatusCode, answer.Header, string(text), err}
}

func (w *world) post(body string, headers ...string) reply {
	w.t.Helper()
	return w.do(w.t.Context(), "POST", "/v1/chat/completions", strings.NewReader(body), headers...)
}

const (
	plain    = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamed = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// code is the status of a reply, and its error code.
func (r reply) code() string {
	var out struct {
		Error struct {
			Message string
			Code    *string
		}
	}
	if json.Unmarshal([]byte(r.body), &out) != nil || out.Error.Message == "" {
		return fmt.Sprint(r.status, " ", r.err)
	}
	if out.Error.Code == nil {
		return fmt.Sprint(r.status)
	}
	return fmt.Sprint(r.status, " ", *out.Error.Code)
}

// checkStream fails unless a reply has all words of a stream in order, and nothing else.
func checkStream(t testing.TB, got reply, words int) {
	t.Helper()
	if err := streamError(got, words); err != nil {
		t.Error(err)
	}
}

func streamError(got reply, words int) error {
	var want strings.Builder
	for i := range words {
		fmt.Fprintf(&want, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"w%d \"}}]}\n\n", i)
	}
	want.WriteString("data: [DONE]\n\n")
	if got.err != nil || got.status != 200 || got.body != want.String() {
		return fmt.Errorf("the stream is %d, %.300q: %w", got.status, got.body, got.err)
	}
	return nil
}

func plainError(got reply, words int) error {
	if got.err != nil || got.status != 200 || !strings.Contains(got.body, fmt.Sprintf("%q", text(words))) {
		return fmt.Errorf("the answer is %d, %.300q: %w", got.status, got.body, got.err)
	}
	return nil
}

// until waits for a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// accounts waits until so many requests were accounted for, and returns them.
func (w *world) accounts(n int) []Record {
	w.t.Helper()
	until(w.t, fmt.Sprintf("%d requests are accounted for", n), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.records) >= n
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.records) != n {
		w.t.Errorf("%d requests are accounted for, want %d", len(w.records), n)
	}
	return slices.Clone(w.records)
}

// settled waits until no request is waiting or under way.
func (w *world) settled(name string) {
	w.t.Helper()
	until(w.t, "nothing is outstanding", func() bool {
		traffic := w.router.Traffic(name)
		for _, load := range traffic.Replicas {
			if load.Outstanding != 0 {
				return false
			}
		}
		return traffic.Waiting == 0 && !traffic.IdleSince.IsZero()
	})
}
