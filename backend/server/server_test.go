package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/server"
	"slipway/backend/session"
	"slipway/backend/settings"
	"slipway/backend/updates"
	"slipway/backend/vault"
)

const token = "token-of-the-test"

// patience is how long a test waits for what must happen. No test says how soon
// that is: a machine with other work may take its time.
const patience = 2 * time.Minute

// world is a server on a port of its own, over a hub over an agent in memory.
type world struct {
	agent     *hubtest.Agent
	shelf     *hubtest.Shelf
	connector *hubtest.Connector
	hub       *hub.Hub
	server    *server.Server
	seal      string // the cookie of a browser that is logged in, once one was
	url       string // http://127.0.0.1:PORT
	port      string
	stopped   chan struct{} // receives when a shutdown was asked for
	releases  atomic.Value  // address of the release host, a string
	shutdown  context.CancelFunc
	done      chan struct{} // closed when the server has ended
}

func start(t testing.TB) *world {
	t.Helper()
	return startFor(t)
}

// startFor starts a server for certain users of this computer only.
func startFor(t testing.TB, users ...int) *world {
	t.Helper()
	return startOn(t, hubtest.New("local"), &hubtest.Shelf{}, users...)
}

// appScript is a file of the interface, which is stored packed.
const appScript = `console.log("app")`

func packed(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// startOn starts a server over an agent that remembers what stands on a shelf.
func startOn(t testing.TB, agent *hubtest.Agent, shelf *hubtest.Shelf, users ...int) *world {
	t.Helper()
	w := &world{agent: agent, shelf: shelf, connector: &hubtest.Connector{}, stopped: make(chan struct{}, 1),
		done: make(chan struct{})}
	w.releases.Store("")
	var err error
	w.hub, err = hub.Open(hub.Config{Members: []hub.Member{{Name: "local", Local: true, Agent: w.agent.Agent()}},
		Connector: w.connector, Shelf: &hubtest.Shelf{},
		Settings: settings.New(t.TempDir(), func(string) string { return "" }),
		Vault:    vault.New("", filepath.Join(t.TempDir(), "secrets.json")), Owner: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	assets := fstest.MapFS{
		"index.html":         {Data: []byte(`<!doctype html><script>boot()</script><div id="root"></div>`)},
		"assets/app-1.js.gz": {Data: packed(t, appScript)},
		"icon.svg":           {Data: []byte(`<svg/>`)},
	}
	w.server = server.New(server.Config{
		Hub: w.hub, Shelf: shelf, Token: token, Users: users, Assets: assets,
		Shutdown: func() { w.stopped <- struct{}{} },
		Updates: updates.New(updates.Config{Address: func() string { return w.releases.Load().(string) },
			Version: "1.2.0", Shelf: shelf, Log: slog.New(slog.DiscardHandler)}),
	})
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + listener.Addr().String()
	_, w.port, _ = strings.Cut(listener.Addr().String(), ":")
	ctx, cancel := context.WithCancel(context.Background())
	hubCtx, stopHub := context.WithCancel(context.Background())
	w.shutdown = cancel
	hubDone := make(chan struct{})
	go func() { defer close(hubDone); w.hub.Run(hubCtx) }()
	go func() {
		defer close(w.done)
		if err := w.server.Run(ctx, listener); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-w.done
		stopHub()
		<-hubDone
	})
	w.hub.WaitHeard(t.Context())
	return w
}

// request is one request of the command line, with the token.
func (w *world) request(t testing.TB, method, path, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func do(t testing.TB, client *http.Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// call sends a request with the token and reads its answer into out.
func (w *world) call(t testing.TB, method, path, body string, out any) int {
	t.Helper()
	response, text := do(t, http.DefaultClient, w.request(t, method, path, body))
	if out != nil && text != "" {
		if err := json.Unmarshal([]byte(text), out); err != nil {
			t.Fatalf("%s %s answered %s: %v", method, path, text, err)
		}
	}
	return response.StatusCode
}

// dial opens a WebSocket with the token.
func (w *world) dial(t testing.TB, path string) *websocket.Conn {
	t.Helper()
	conn, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(w.url, "http")+path,
		http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		t.Fatalf("dial %s: %v, %v", path, err, response)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// running is a session that runs.
func (w *world) running(id session.ID) session.Session {
	return w.agent.Put(session.Session{ID: id, Name: "train-" + string(id[:4]), Status: session.Running,
		Spec: session.Spec{Image: "a:1", Type: session.Interactive}, CreatedAt: time.Now()})
}

func TestEveryRouteHasAHandlerAndNoHandlerIsUnlisted(t *testing.T) {
	routes := map[string]bool{}
	for _, one := range route.All() {
		routes[one.Name] = true
	}
	for _, name := range server.Handlers() {
		if !routes[name] {
			t.Errorf("the handler %q has no route", name)
		}
		delete(routes, name)
	}
	for name := range routes {
		t.Errorf("the route %q has no handler", name)
	}
}

func TestEveryRouteAnswersInItsOwnTerms(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.SetApps("aaaaaaaaaaaa", session.App{ID: "notebook", Title: "Notebook", Kind: "web",
		State: session.AppStopped})
	w.agent.SetBoard(board())
	for _, one := range route.All() {
		body := "{}"
		switch one.Name {
		case "keep":
			body = `{"for":"1h"}`
		case "session-update":
			body = `{"name":"train-again"}`
		case "preset-create":
			body = `{"name":"Mine"}`
		}
		if one.Stream == route.WebSocket || one.Name == "shutdown" || one.Name == "login-link" {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			folder, err := w.agent.CreateFolder(t.Context(), session.FolderRequest{Name: "data"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.agent.DeployService(t.Context(), session.DeployRequest{Name: one.Name}); err != nil {
				t.Fatal(err)
			}
			path := strings.NewReplacer("{folder}", string(folder.ID), "{id}", "aaaaaaaaaaaa", "{agent}", "local",
				"{terminal}", "t1", "{app}", "notebook", "{device}", "GPU-0",
				"{service}", one.Name, "{token}", "t1").Replace(one.Path())
			response, body := do(t, http.DefaultClient, w.request(t, one.Method(), path, body))
			if response.StatusCode == http.StatusNotFound && !strings.HasPrefix(one.Name, "recent-") &&
				!strings.HasPrefix(one.Name, "preset-") && one.Name != "secret-delete" &&
				one.Name != "project-update" && one.Name != "project-forget" &&
				!strings.HasPrefix(one.Name, "operation") {
				t.Fatalf("%s %s: %s", one.Method(), path, body)
			}
			if response.StatusCode >= 400 {
				var p session.Error
				if json.Unmarshal([]byte(body), &p) != nil || p.Code == "" || p.Message == "" ||
					p.Hint == "" && len(p.Said) == 0 && len(p.Fields) == 0 {
					t.Fatalf("%s %s: %s is not a whole Problem", one.Method(), path, body)
				}
				return
			}
			want := one.Status
			if want == 0 {
				want = http.StatusOK
			}
			if response.StatusCode != want {
				t.Fatalf("status %d, want %d", response.StatusCode, want)
			}
			if one.Stream == "" && one.Response != nil &&
				(strings.Contains(body, ":null") && one.Name != "sessions" && !nullable(body)) {
				t.Fatalf("a list is null: %s", body)
			}
		})
	}
}

// nullable reports whether all that is null in body may be.
func nullable(body string) bool {
	return strings.Count(body, ":null") == strings.Count(body, `"exitCode":null`)
}

func TestUnknownPathsAndMethodsAreProblems(t *testing.T) {
	w := start(t)
	var p session.Error
	if status := w.call(t, "GET", "/api/v1/nothing", "", &p); status != 404 || p.Code != "request_route_not-found" {
		t.Errorf("%d %+v", status, p)
	}
	if status := w.call(t, "DELETE", "/api/v1/sessions", "", &p); status != 405 ||
		p.Code != "request_route_unsupported" || !strings.Contains(p.Hint, "GET, POST") {
		t.Errorf("%d %+v", status, p)
	}
	if status := w.call(t, "GET", "/api/v1/events", "", &p); status != 405 ||
		p.Code != "request_route_unsupported" {
		t.Errorf("%d %+v", status, p)
	}
	if status := w.call(t, "GET", "/api/v1/sessions/none", "", &p); status != 404 ||
		p.Code != "session_read_not-found" {
		t.Errorf("%d %+v", status, p)
	}
}

func TestLaunchThroughTheAPI(t *testing.T) {
	w := start(t)
	body := `{"key":"k1","spec":{"name":"train","image":"a:1","resources":{"cpu":2,"memory":"512m"},` +
		`"env":[{"name":"HF_TOKEN","value":"hush"},{"name":"N","value":"1"}],"mounts":[{"source":"/data"}]}}`
	var s api.Session
	if status := w.call(t, "POST", "/api/v1/sessions", body, &s); status != http.StatusCreated {
		t.Fatalf("status %d", status)
	}
	if s.Name != "train" || s.Status != "PENDING" || s.Owner != "ada" || s.Spec.Resources.Memory != 512<<20 ||
		s.Spec.Mounts[0].Target != "/home/work/data" {
		t.Errorf("session %+v", s)
	}
	if s.Spec.Env[0].Value != "••••••" || s.Spec.Env[1].Value != "1" {
		t.Errorf("environment %+v, want the secret hidden", s.Spec.Env)
	}
	t.Run("sent again it is the same session", func(t *testing.T) {
		var again api.Session
		w.call(t, "POST", "/api/v1/sessions", body, &again)
		if again.ID != s.ID || w.agent.Launches() != 1 {
			t.Errorf("session %s after %s, %d launches", again.ID, s.ID, w.agent.Launches())
		}
	})
	t.Run("a hidden value is not taken for the value", func(t *testing.T) {
		var p session.Error
		status := w.call(t, "POST", "/api/v1/sessions",
			`{"spec":{"image":"a:1","env":[{"name":"HF_TOKEN","value":"••••••"}]}}`, &p)
		if status != 422 || len(p.Fields) != 1 || p.Fields[0].Field != "env[0].value" {
			t.Errorf("%d %+v", status, p)
		}
	})
	t.Run("while it waits it can ask for less and be remembered", func(t *testing.T) {
		var got api.Session
		w.call(t, "PATCH", "/api/v1/sessions/train", `{"accelerator":"0.5","reminder":true}`, &got)
		if got.Spec.Accelerator.Shares != 500 || !got.Reminder || got.Status != session.Pending {
			t.Errorf("%+v", got)
		}
		var p session.Error
		if status := w.call(t, "PATCH", "/api/v1/sessions/train", `{"accelerator":"much"}`, &p); status != 400 {
			t.Errorf("%d %+v", status, p)
		}
		w.call(t, "PATCH", "/api/v1/sessions/train", `{"accelerator":{},"reminder":false}`, &got)
	})
	t.Run("its end can be undone", func(t *testing.T) {
		var loss hub.Loss
		if status := w.call(t, "GET", "/api/v1/sessions/train/loss", "", &loss); status != 200 || loss.Files == nil ||
			loss.Cancels == nil {
			t.Errorf("%d, %+v", status, loss)
		}
		for range 2 {
			var ending, kept api.Session
			status := w.call(t, "POST", "/api/v1/sessions/train/terminate", `{"undo":true}`, &ending)
			if status != 202 || ending.Ending == nil || ending.Status != session.Pending {
				t.Errorf("%d, %+v", status, ending)
			}
			if status := w.call(t, "DELETE", "/api/v1/sessions/train/terminate", "", &kept); status != 200 ||
				kept.Ending != nil || kept.Status != session.Pending {
				t.Errorf("%d, %+v", status, kept)
			}
		}
		var p session.Error
		if status := w.call(t, "DELETE", "/api/v1/sessions/train/terminate", "", &p); status != 409 {
			t.Errorf("undone twice: %d %+v", status, p)
		}
	})
	t.Run("it can be found by name, renamed and ended", func(t *testing.T) {
		var got api.Session
		if w.call(t, "GET", "/api/v1/sessions/train", "", &got); got.ID != s.ID {
			t.Errorf("found %q", got.ID)
		}
		if w.call(t, "PATCH", "/api/v1/sessions/train", `{"name":"renamed"}`, &got); got.Name != "renamed" {
			t.Errorf("renamed to %q", got.Name)
		}
		if status := w.call(t, "POST", "/api/v1/sessions/"+string(s.ID)+"/terminate", "", &got); status != 202 ||
			got.Reason != "user-requested" {
			t.Errorf("%d, reason %q", status, got.Reason)
		}
	})
	t.Run("the secret is in no answer", func(t *testing.T) {
		for _, path := range []string{"/api/v1/sessions", "/api/v1/recents", string("/api/v1/sessions/" + s.ID)} {
			if _, text := do(t, http.DefaultClient, w.request(t, "GET", path, "")); strings.Contains(text, "hush") {
				t.Errorf("%s tells the secret: %s", path, text)
			}
		}
	})
}

func TestPreviewTellsTheCommandWithoutSecrets(t *testing.T) {
	w := start(t)
	var p api.Preview
	w.call(t, "POST", "/api/v1/preview",
		`{"image":"a:1","type":"batch","command":"echo 'hi' && x","timeout":"30m","env":[{"name":"A","value":"b c"},`+
			`{"name":"TOKEN","value":"hush"}],"resources":{"cpu":2,"memory":1073741824},"mounts":[{"source":"/d",`+
			`"readOnly":true}],"ports":[8080]}`, &p)
	want := `slipway run --image a:1 --type batch --cpu 2 --mem 1g -e 'A=b c' -e TOKEN -v /d:/home/work/d:ro --port ` +
		`8080 --timeout 30m -- 'echo '\''hi'\'' && x'`
	if p.Command != want {
		t.Errorf("command\n%s\nwant\n%s", p.Command, want)
	}
}

func TestAgentThatIsNotReachedIs503(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.SetDown(true)
	var p session.Error
	if status := w.call(t, "POST", "/api/v1/sessions", `{"spec":{"image":"a:1"}}`, &p); status != 503 ||
		p.Code != "agent_call_unavailable" {
		t.Errorf("%d %+v", status, p)
	}
	var machines []api.Machine
	if status := w.call(t, "GET", "/api/v1/machines", "", &machines); status != 200 || len(machines) != 1 {
		t.Errorf("%d %+v", status, machines)
	}
}

func TestListsAndTheirFilters(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.Put(session.Session{ID: "bbbbbbbbbbbb", Status: session.Terminated, CreatedAt: time.Now().Add(-time.Hour)})
	for query, want := range map[string]string{"": "ab", "?state=all": "ab", "?state=live": "a", "?state=finished": "b",
		"?limit=1": "a", "?limit=1&offset=1": "b", "?offset=9": ""} {
		var list []api.Session
		w.call(t, "GET", "/api/v1/sessions"+query, "", &list)
		got := ""
		for _, s := range list {
			got += string(s.ID[:1])
		}
		if got != want {
			t.Errorf("%q lists %q, want %q", query, got, want)
		}
	}
	for _, query := range []string{"?state=x", "?limit=-1", "?limit=x", "?offset=1.5"} {
		var p session.Error
		if status := w.call(t, "GET", "/api/v1/sessions"+query, "", &p); status != 400 || len(p.Fields) != 1 {
			t.Errorf("%q: %d %+v", query, status, p)
		}
	}
	if status := w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/usage?since=yesterday", "", nil); status != 400 {
		t.Errorf("since=yesterday: %d", status)
	}
}

func TestShutdownIsPassedOnAndEndsStreams(t *testing.T) {
	w := start(t)
	conn := w.dial(t, "/api/v1/events")
	if _, _, err := conn.ReadMessage(); err != nil {
		t.Fatal(err)
	}
	if status := w.call(t, "POST", "/api/v1/shutdown", "", nil); status != 202 {
		t.Fatalf("status %d", status)
	}
	<-w.stopped
	w.shutdown()
	select {
	case <-w.done:
	case <-time.After(patience):
		t.Fatal("the server has not ended")
	}
	for {
		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}
	}
}

func TestFaultInsideIsToldWithoutItsText(t *testing.T) {
	w := start(t)
	w.running("aaaaaaaaaaaa")
	w.agent.Log = func(context.Context, session.LogOptions) (io.ReadCloser, error) {
		return nil, fmt.Errorf("secret path /x/y")
	}
	response, body := do(t, http.DefaultClient, w.request(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/logs", ""))
	if response.StatusCode != 500 || strings.Contains(body, "secret path") {
		t.Errorf("%d %s", response.StatusCode, body)
	}
}

func TestMachinesAreLookedInto(t *testing.T) {
	w := start(t)
	var listing session.DirectoryListing
	if status := w.call(t, "GET", "/api/v1/machines/local/directories?path=%2F", "", &listing); status != 200 ||
		listing.Path != "/" || len(listing.Entries) != 1 {
		t.Errorf("status %d: %+v", status, listing)
	}
	var checks []session.Check
	for _, query := range []string{"", "?agent=local"} {
		if status := w.call(t, "GET", "/api/v1/doctor"+query, "", &checks); status != 200 || len(checks) != 1 ||
			checks[0].Result != "ok" {
			t.Errorf("doctor%s: %d %+v", query, status, checks)
		}
	}
	for _, path := range []string{"/api/v1/machines/local/directories?path=/none", "/api/v1/machines/lab/directories",
		"/api/v1/doctor?agent=lab"} {
		var p session.Error
		if status := w.call(t, "GET", path, "", &p); status != 404 || p.Hint == "" {
			t.Errorf("%s: %d %+v", path, status, p)
		}
	}
}

func BenchmarkListOfThousandFinishedSessions(b *testing.B) {
	w := start(b)
	sessions := make([]session.Session, 1000)
	for i := range sessions {
		sessions[i] = session.Session{ID: session.ID(fmt.Sprintf("a%011d", i)), Name: "train",
			Status: session.Terminated, End: session.End{Result: session.ResultSuccess}, CreatedAt: time.Now(),
			Spec: session.Spec{Image: "a:1", Env: []session.EnvVar{{Name: "TOKEN", Value: "x"},
				{Name: "A", Value: "b"}}, Mounts: []session.Mount{{Source: "/a", Target: "/home/work/a"}}},
			Allocation: session.Allocation{
				Kernels: []session.Kernel{{Name: "main1", Container: strings.Repeat("c", 64)}},
			}}
	}
	w.agent.Fill(sessions)
	for b.Loop() {
		response, body := do(b, http.DefaultClient, w.request(b, "GET", "/api/v1/sessions?state=finished", ""))
		if response.StatusCode != 200 || len(body) < 100_000 {
			b.Fatal(response.Status)
		}
	}
}

func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
}
