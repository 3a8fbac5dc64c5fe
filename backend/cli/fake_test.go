package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/api/apitest"
	"slipway/backend/api/route"
	"slipway/backend/place"
	"slipway/backend/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// noon is what every clock of the tests shows.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// plane is a control plane in memory. Handlers may be replaced by pattern.
type plane struct {
	*httptest.Server
	t     testing.TB
	home  place.Home
	newer bool // than the command line: its answers may have members that no route declares

	mu        sync.Mutex // guards what follows
	sessions  []api.Session
	followers map[chan api.Event]bool
	handlers  map[string]http.HandlerFunc
}

// newPlane starts a control plane whose home the command line finds.
func newPlane(t *testing.T) *plane {
	t.Helper()
	f := &plane{t: t, home: place.Home{Dir: t.TempDir()}, followers: map[chan api.Event]bool{},
		handlers: map[string]http.HandlerFunc{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	f.answerFrom(t, f.URL)
	f.handle("GET /api/v1/version", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Version{Version: "1.2.3", Commit: "abc", Go: "go1.26", OS: "linux", Arch: "amd64"})
	})
	f.handle("GET /api/v1/sessions", f.list)
	f.handle("GET /api/v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		if s, ok := f.find(r.PathValue("id")); ok {
			reply(w, http.StatusOK, s)
			return
		}
		refuse(w, session.Error{Code: "session_read_not-found",
			Message: "There is no such session.",
			Hint:    "slipway ps -a lists all."})
	})
	f.handle("GET /api/v1/events", f.events)
	return f
}

func TestPlaneKeepsTheControlPlanesPromises(t *testing.T) {
	apitest.Run(t, func(t *testing.T) apitest.Plane {
		f := newPlane(t)
		return apitest.Plane{URL: f.URL, Token: "secret", Put: func(s session.Session) {
			f.set(api.Session{Session: s, Type: s.Spec.Type, Image: s.Spec.Image})
		}}
	})
}

func (f *plane) answerFrom(t *testing.T, url string) {
	t.Helper()
	if err := errors.Join(f.home.SaveToken("secret"),
		f.home.SaveServing(place.Serving{PID: 4711, URL: url, Engine: "docker"})); err != nil {
		t.Fatal(err)
	}
}

func (f *plane) handle(pattern string, handler http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[pattern] = handler
}

func (f *plane) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		refuse(w, session.Error{Code: "request_login_required", Message: "No token."})
		return
	}
	mux := http.NewServeMux()
	f.mu.Lock()
	for pattern, handler := range f.handlers {
		mux.HandleFunc(pattern, handler)
	}
	f.mu.Unlock()
	f.contract(mux).ServeHTTP(w, r)
}

// contract holds requests and answers to the declared routes, as the types of its handlers hold the real control plane.
func (f *plane) contract(answers http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(_ http.ResponseWriter, r *http.Request) {
		f.t.Errorf("%s %s is no route of the control plane", r.Method, r.URL.Path)
	})
	for _, d := range route.All() {
		mux.HandleFunc(d.Method()+" "+d.Path(), func(w http.ResponseWriter, r *http.Request) {
			if d.Stream != "" {
				answers.ServeHTTP(w, r)
				return
			}
			for name := range r.URL.Query() {
				if !slices.ContainsFunc(d.Query, func(p route.Param) bool { return p.Name == name }) {
					f.t.Errorf("%s has no parameter %s", d.Name, name)
				}
			}
			if d.Request != nil {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // the command line has left
				}
				f.fits(d.Name+": the request", body, d.Request)
				r.Body = io.NopCloser(bytes.NewReader(body))
			}
			answer := httptest.NewRecorder()
			answers.ServeHTTP(answer, r)
			unanswered := answer.Body.Len() == 0 && len(answer.Header()) == 0 // as when the command line has left
			switch {
			case unanswered || f.newer:
			case answer.Code < http.StatusBadRequest:
				f.fits(d.Name+": the answer", answer.Body.Bytes(), d.Response)
			default:
				f.fits(d.Name+": the problem", answer.Body.Bytes(), session.Error{})
			}
			maps.Copy(w.Header(), answer.Header())
			w.WriteHeader(answer.Code)
			_, _ = w.Write(answer.Body.Bytes())
		})
	}
	return mux
}

// fits checks that a body has the type of like, or is empty if that is nil.
func (f *plane) fits(what string, body []byte, like any) {
	if like == nil {
		if len(bytes.TrimSpace(body)) > 0 && string(bytes.TrimSpace(body)) != "null" {
			f.t.Errorf("%s has a body: %s", what, body)
		}
		return
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(reflect.New(reflect.TypeOf(like)).Interface()); err != nil {
		f.t.Errorf("%s is no %T: %v: %s", what, like, err, body)
	}
}

func (f *plane) list(w http.ResponseWriter, r *http.Request) {
	state := r.FormValue("state")
	if !slices.Contains([]string{"", "all", "live", "finished"}, state) {
		refuse(w, session.Error{Code: session.CodeRequestInvalid, Message: "There is no such state.",
			Fields: []session.FieldError{{Field: "state", Message: "It is not known."}}})
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []api.Session{}
	for _, s := range f.sessions {
		if state != "live" && state != "finished" || (state == "finished") == ended(s) {
			out = append(out, s)
		}
	}
	reply(w, http.StatusOK, out)
}

// find knows ids and the names of live sessions, as the real one does.
func (f *plane) find(ref string) (api.Session, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		if string(s.ID) == ref || s.Name == ref && !ended(s) {
			return s, true
		}
	}
	return api.Session{}, false
}

// set stores a session and tells every follower.
func (f *plane) set(s api.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := false
	for i := range f.sessions {
		if f.sessions[i].ID == s.ID {
			s.Revision = f.sessions[i].Revision + 1
			f.sessions[i], known = s, true
		}
	}
	if !known {
		f.sessions = append([]api.Session{s}, f.sessions...)
	}
	for follower := range f.followers {
		follower <- api.Event{Session: &s}
	}
}

func (f *plane) events(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	events := make(chan api.Event, 100)
	f.mu.Lock()
	events <- api.Event{Snapshot: &api.Snapshot{Sessions: append([]api.Session(nil), f.sessions...)}}
	f.followers[events] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.followers, events)
		f.mu.Unlock()
	}()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = conn.ReadMessage()
	}()
	for {
		select {
		case event := <-events:
			if conn.WriteJSON(event) != nil {
				return
			}
		case <-gone:
			return
		}
	}
}

func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, problem session.Error) { reply(w, problem.Code.Status(), problem) }

// result is how one run of the command line ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the command line against f.
func (f *plane) run(t *testing.T, args ...string) result {
	t.Helper()
	return runIn(t, f.home, nil, args...)
}

func runIn(t *testing.T, home place.Home, env map[string]string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), testConfig(home, env, &stdout, &stderr, args))
	return result{code, stdout.String(), stderr.String()}
}

func testConfig(home place.Home, env map[string]string, stdout, stderr io.Writer, args []string) Config {
	return Config{
		Version: api.Version{Version: "1.2.3", Commit: "abc", Go: "go1.26", OS: "linux", Arch: "amd64"},
		Args:    args, Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Executable: "/nonexistent/slipway",
		Now: func() time.Time { return noon },
		Env: func(key string) string {
			if key == "SLIPWAY_HOME" {
				return home.Dir
			}
			return env[key]
		},
		Serve: func(context.Context, ServeOptions) error { return nil },
		Agent: func(context.Context, AgentOptions) error { return nil },
	}
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if got != string(want) {
		t.Errorf("output differs from %s; run with -update if it is right\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func pointer[T any](value T) *T { return &value }

// The sessions that most tests know, newest first.
func sampleSessions() []api.Session {
	at := func(minutes int) *time.Time { return pointer(noon.Add(time.Duration(minutes) * time.Minute)) }
	spec := session.Spec{Resources: session.Resources{CPU: 2, Memory: 4 << 30, Shm: 1 << 30}}
	undefined := session.End{Result: "undefined"}
	return []api.Session{
		{Session: session.Session{ID: "abc1wait0000", Name: "waiting-one", Status: "PENDING",
			End: undefined, Agent: "local", CreatedAt: *at(-1), Spec: spec,
			Progress: session.Progress{Wait: &session.Wait{Code: "session_schedule_no-cpu",
				Message: "needs 2 CPUs, 1 of 8 is free", Position: 1}}}, Type: "interactive", Image: "python:3.12"},
		{Session: session.Session{ID: "abc2pull0000", Name: "pulling-one", Status: "PULLING",
			End: undefined, Agent: "local", CreatedAt: *at(-2), Spec: spec,
			Progress: session.Progress{Pull: &session.Pull{Current: 3 << 28, Total: 3 << 30,
				Rate:       12 << 20,
				LayersDone: 1, Layers: 9}}}, Type: "batch", Image: "pytorch:2.9"},
		{Session: session.Session{ID: "def3run00000", Name: "train-a", Status: "RUNNING",
			End: undefined, Agent: "local", CreatedAt: *at(-90), Times: session.Times{StartedAt: at(-89)},
			Allocation: session.Allocation{
				Grants: session.Grants{CPUs: []int{0, 3}},
				Kernels: []session.Kernel{{Name: "main1", Status: "RUNNING", Container: "0123456789abcdef0123",
					Node: "gpu01"}},
			},
			Spec: session.Spec{Resources: spec.Resources,
				Mounts: []session.Mount{{Source: "/data", Target: "/home/work/data", ReadOnly: true}},
				Env:    []session.EnvVar{{Name: "SEED", Value: "7"}},
				Access: session.Access{Ports: []int{8080, 9000}}}},
			Type: "interactive", Image: "python:3.12", Usage: &session.Usage{CPU: 1.25, Memory: 700 << 20}},
		{Session: session.Session{ID: "fin4failed00", Name: "train-b", Status: "TERMINATED",
			End: session.End{Result: "failure", Reason: "task-failed", ExitCode: pointer(3)}, Agent: "local",
			CreatedAt: *at(-200), Times: session.Times{StartedAt: at(-199), TerminatedAt: at(-190)},
			Spec: spec}, Type: "batch", Image: "python:3.12"},
		{Session: session.Session{ID: "fin5error000", Name: "train-b", Status: "ERROR",
			End: session.End{Result: "failure", Reason: "pull-failed",
				Error: &session.Cause{Code: "image_pull_not-found", Message: "There is no image nowhere:1.",
					Hint: "Check its name and tag."}},
			Agent: "local", CreatedAt: *at(-3000), Times: session.Times{TerminatedAt: at(-2999)},
			Spec: spec}, Type: "batch", Image: "nowhere:1"},
	}
}
