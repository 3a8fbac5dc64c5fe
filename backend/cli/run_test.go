package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/backend/terminal"
	"slipway/gpu"
)

// launching makes f accept every launch as the session made by next.
func (f *plane) launching(t *testing.T, next func(session.Spec) api.Session) *atomic.Pointer[hub.LaunchRequest] {
	t.Helper()
	var last atomic.Pointer[hub.LaunchRequest]
	f.handle("POST /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		var request hub.LaunchRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		last.Store(&request)
		s := next(request.Spec)
		f.set(s)
		reply(w, http.StatusCreated, s)
	})
	return &last
}

func pending(spec session.Spec) api.Session {
	kind := spec.Type
	if kind == "" {
		kind = "interactive"
	}
	return api.Session{Session: session.Session{ID: "new000000000", Name: "new-one", Status: "PENDING",
		End: session.End{Result: "undefined"}, CreatedAt: noon, Spec: spec}, Type: kind, Image: spec.Image}
}

func TestFlagsMakeTheSpec(t *testing.T) {
	f := newPlane(t)
	last := f.launching(t, pending)
	home := t.TempDir()
	t.Chdir(home)
	got := runIn(t, f.home, map[string]string{"FROM_HERE": "x y"}, "run", "--image", "python:3.12", "--name", "abcd",
		"--type", "batch",
		"--cpu", "2", "--mem", "512m", "--shm", "64m", "--threads", "3", "-e", "A=1", "-e", "FROM_HERE", "-e", "A=2",
		"-v", "./data:in:ro", "-v", "/abs",
		"--port", "8080,9000:9001", "--timeout", "30m", "--start-at", "+90m", "--", "python", "-c", "print('hi')",
		"$HOME")
	if got.code != ExitOK || got.stdout != "new000000000\n" {
		t.Fatalf("code %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	at := noon.Add(90 * time.Minute)
	want := session.Spec{Name: "abcd", Type: "batch", Image: "python:3.12",
		Command: `python -c 'print('\''hi'\'')' '$HOME'`, Schedule: session.Schedule{NotBefore: &at},
		Lifetime:  session.Lifetime{Timeout: session.Duration(30 * time.Minute)},
		Env:       []session.EnvVar{{Name: "A", Value: "2"}, {Name: "FROM_HERE", Value: "x y"}},
		Resources: session.Resources{CPU: 2, Memory: 512 * gpu.MiB, Shm: 64 * gpu.MiB},
		Tuning:    session.Tuning{Threads: 3},
		Mounts:    []session.Mount{{Source: home + "/data", Target: "in", ReadOnly: true}, {Source: "/abs"}},
		Access:    session.Access{Ports: []int{8080, 9000, 9001}}}
	request := last.Load()
	if !reflect.DeepEqual(request.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", request.Spec, want)
	}
	if len(request.Key) < 26 {
		t.Errorf("key %q, want at least 26 letters", request.Key)
	}
}

func TestStartTimesAreReadAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]time.Time{
		"18:30":                     time.Date(2026, 5, 1, 18, 30, 0, 0, time.UTC),
		"08:00":                     time.Date(2026, 5, 2, 8, 0, 0, 0, time.UTC),
		"2026-06-01 08:00":          time.Date(2026, 6, 1, 8, 0, 0, 0, time.UTC),
		"2026-06-01T08:00:00+09:00": time.Date(2026, 5, 31, 23, 0, 0, 0, time.UTC),
		"+2h":                       noon.Add(2 * time.Hour),
	} {
		if got, err := parseStart(text, noon); err != nil || !got.Equal(want) {
			t.Errorf("parseStart(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestCommandLinesKeepTheirWords(t *testing.T) {
	for want, words := range map[string][]string{
		"echo hi; exit 3":          {"echo hi; exit 3"}, // one word is a line
		"sh -c 'exit 3'":           {"sh", "-c", "exit 3"},
		"echo '' 'a b' 'it'\\''s'": {"echo", "", "a b", "it's"},
	} {
		if got := commandLine(words); got != want {
			t.Errorf("commandLine(%q) = %s, want %s", words, got, want)
		}
	}
}

// ending lets the session that was launched run and end.
func (f *plane) playing(log string, end func(*api.Session)) func(session.Spec) api.Session {
	return func(spec session.Spec) api.Session {
		s := pending(spec)
		f.handle("GET /api/v1/sessions/{id}/logs", func(w http.ResponseWriter, _ *http.Request) {
			_,
				_ = io.WriteString(w, log)
		})
		f.handle("GET /api/v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
			now, _ := f.find(r.PathValue("id"))
			reply(w, http.StatusOK, now)
			if now.Status == "PENDING" {
				now.Status, now.StartedAt = "RUNNING", &noon
				f.set(now)
				now.Status, now.TerminatedAt = "TERMINATED", &noon
				end(&now)
				f.set(now)
			}
		})
		return s
	}
}

func TestRunWaitGivesTheCommandsExitCode(t *testing.T) {
	batch := []string{"run", "--image", "i", "--type", "batch", "--wait", "--", "true"}
	t.Run("and its output", func(t *testing.T) {
		f := newPlane(t)
		f.launching(t, f.playing("one\ntwo\n", func(s *api.Session) {
			s.ExitCode, s.Reason = pointer(7),
				"task-failed"
		}))
		if got := f.run(t, batch...); got.code != 7 || got.stdout != "one\ntwo\n" {
			t.Errorf("code %d, %q, %q; want 7 and the log", got.code, got.stdout, got.stderr)
		}
	})
	t.Run("or the session with -o json", func(t *testing.T) {
		f := newPlane(t)
		f.launching(t, f.playing("one\n", func(s *api.Session) { s.ExitCode, s.Reason = pointer(7), "task-failed" }))
		got := f.run(t, append([]string{"-o", "json"}, batch...)...)
		var s api.Session
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.code != 7 || s.Status != "TERMINATED" {
			t.Errorf("code %d, %v, %q", got.code, err, got.stdout)
		}
	})
	t.Run("or why it has none", func(t *testing.T) {
		f := newPlane(t)
		f.launching(t, f.playing("", func(s *api.Session) {
			s.Status, s.Reason = "ERROR", "failed-to-start"
			s.Error = &session.Cause{Code: "container_start_failed", Message: "The image has no shell.",
				Hint: "Take another."}
		}))
		if got := f.run(t, batch...); got.code != ExitNoResult ||
			!strings.Contains(got.stderr, "The image has no shell.") ||
			!strings.Contains(got.stderr, "(container_start_failed)") {
			t.Errorf("code %d, %q", got.code, got.stderr)
		}
	})
	t.Run("or that it took too long", func(t *testing.T) {
		f := newPlane(t)
		f.launching(t, pending)
		if got := f.run(t, "run", "--image", "i", "--type", "batch", "--wait", "--wait-timeout", "50ms", "--",
			"true"); got.code != ExitTimeout || !strings.Contains(got.stderr, "keeps running") {
			t.Errorf("code %d, %q", got.code, got.stderr)
		}
	})
}

func TestLaunchIsAskedForAgainUnderTheSameKey(t *testing.T) {
	f := newPlane(t)
	keys := make(chan string, 10)
	f.handle("POST /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		var request hub.LaunchRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		keys <- request.Key
		if len(keys) == 1 { // the answer is lost
			panic(http.ErrAbortHandler)
		}
		reply(w, http.StatusCreated, pending(request.Spec))
	})
	got := f.run(t, "run", "--image", "i", "-d")
	if got.code != ExitOK || len(keys) != 2 {
		t.Fatalf("code %d, %q, %d requests; want two", got.code, got.stderr, len(keys))
	}
	if first, second := <-keys, <-keys; first != second {
		t.Errorf("asked under %s and %s, want one key", first, second)
	}
}

func TestRunLaunchesForSomebodyElse(t *testing.T) {
	f := newPlane(t)
	owners := make(chan string, 10)
	f.handle("POST /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		var request hub.LaunchRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		owners <- request.Owner
		reply(w, http.StatusCreated, pending(request.Spec))
	})
	f.handle("POST /api/v1/launches", func(w http.ResponseWriter, r *http.Request) {
		var request api.LaunchManyRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		owners <- request.Owner
		one := pending(request.Spec)
		reply(w, http.StatusCreated, []api.Launched{{Session: &one}})
	})
	for _, args := range [][]string{{"--owner", "ann"}, {"--owner", "bob", "--count", "2"}, {}} {
		if got := f.run(t, append([]string{"run", "--image", "i", "-d"}, args...)...); got.code != ExitOK {
			t.Fatalf("code %d, %q", got.code, got.stderr)
		}
	}
	if first, second, third := <-owners, <-owners, <-owners; first != "ann" || second != "bob" || third != "" {
		t.Errorf("launched for %q, %q and %q", first, second, third)
	}
}

func TestStopGoesOnAfterAFailure(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.handle("POST /api/v1/sessions/{id}/terminate", func(w http.ResponseWriter, r *http.Request) {
		var request api.TerminateRequest
		_ = json.NewDecoder(r.Body).Decode(&request)
		s, _ := f.find(r.PathValue("id"))
		s.Status, s.Reason = "TERMINATED", session.Reason(fmt.Sprint("forced ", request.Forced))
		f.set(s)
		reply(w, http.StatusAccepted, s)
	})
	got := f.run(t, "stop", "--force", "--wait", "-o", "json", "nobody", "train-a", "waiting-one")
	var ended []api.Session
	if err := json.Unmarshal([]byte(got.stdout), &ended); err != nil || len(ended) != 2 ||
		ended[0].Reason != "forced true" {
		t.Errorf("stopped %v, %v", ended, err)
	}
	if got.code != ExitNotFound || !strings.Contains(got.stderr, "nobody") {
		t.Errorf("code %d, %q", got.code, got.stderr)
	}
}

func TestFollowedLogsGoOnAfterACut(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	text := strings.Repeat("0123456789abcdef\n", 1000)
	var connections atomic.Int32
	f.handle("GET /api/v1/sessions/{id}/logs", func(w http.ResponseWriter, _ *http.Request) {
		number := int(connections.Add(1))
		_, _ = io.WriteString(w, text[:min(len(text), number*5000)])
		w.(http.Flusher).Flush()
		if number < 4 {
			panic(http.ErrAbortHandler)
		}
	})
	if got := f.run(t, "logs", "-f", "train-a"); got.code != ExitOK || got.stdout != text {
		t.Errorf("code %d, %d bytes of %d after %d connections, %q", got.code, len(got.stdout), len(text),
			connections.Load(), got.stderr)
	}
}

// commanding serves exec as command does; its result is the exit code.
func (f *plane) commanding(t *testing.T, command func(session.ExecRequest, terminal.Conn) *session.Error) {
	t.Helper()
	f.handle("GET /api/v1/sessions/{id}/exec", func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		var request session.ExecRequest
		if err := conn.ReadJSON(&request); err != nil {
			t.Error(err)
		}
		if problem := command(request, client.NewFrames(conn)); problem != nil {
			text, _ := json.Marshal(problem)
			_ = conn.WriteMessage(websocket.TextMessage, text)
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(4404, "refused"))
		}
	})
}

func TestExecPassesOutputAndExitCodeThrough(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	raw := "\x00\xff\r\n no end of line"
	f.commanding(t, func(request session.ExecRequest, conn terminal.Conn) *session.Error {
		if !reflect.DeepEqual(request, session.ExecRequest{Command: []string{"sh", "-c", "exit 42"},
			Env: []session.EnvVar{{Name: "A", Value: "b"}}, Dir: "/tmp"}) {
			t.Errorf("asked for %+v", request)
		}
		for _, frame := range []terminal.Frame{{Type: terminal.FrameData, Payload: []byte(raw)},
			{Type: terminal.FrameStderr, Payload: []byte("oh")},
			{Type: terminal.FrameExit, Payload: []byte{0, 0, 0, 42}}} {
			if err := conn.WriteFrame(frame); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	if got := f.run(t, "exec", "-e", "A=b", "-w", "/tmp", "train-a", "--", "sh", "-c",
		"exit 42"); got != (result{42, raw, "oh"}) {
		t.Errorf("got %+v", got)
	}
}

func TestExecThatIsRefusedOrCutSaysSo(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.commanding(t, func(session.ExecRequest, terminal.Conn) *session.Error {
		return &session.Error{Code: "process_start_not-found", Message: "There is no program nope."}
	})
	if got := f.run(t, "exec", "train-a", "nope"); got.code != ExitNoCommand ||
		!strings.Contains(got.stderr, "(process_start_not-found)") {
		t.Errorf("refused: %+v", got)
	}
	f.commanding(t, func(_ session.ExecRequest, conn terminal.Conn) *session.Error { _ = conn.Close(); return nil })
	if got := f.run(t, "exec", "train-a", "true"); got.code != ExitUnavailable ||
		!strings.Contains(got.stderr, "connection was lost") {
		t.Errorf("cut: %+v", got)
	}
}

func TestAStartOfAnAppIsGivenUp(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	interrupt := func() {}
	state, stopped := "stopped", 0
	f.handle("GET /api/v1/sessions/{id}/apps", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.App{{App: session.App{ID: "notebook", Kind: "web",
			State: session.AppState(state)}}})
	})
	f.handle("POST /api/v1/sessions/{id}/apps/{app}/open", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // what is not read hides that the other side has left
		interrupt()
		<-r.Context().Done()
	})
	f.handle("POST /api/v1/sessions/{id}/apps/{app}/stop", func(w http.ResponseWriter, _ *http.Request) {
		stopped++
		w.WriteHeader(http.StatusNoContent)
	})
	if got := f.run(t, "open", "train-a", "notebook", "--stop"); got.code != ExitOK || stopped != 1 {
		t.Errorf("--stop: %+v, stopped %d times", got, stopped)
	}
	for _, state = range []string{"ready", "stopped"} {
		ctx, cancel := context.WithCancel(t.Context())
		interrupt = cancel
		var stdout, stderr bytes.Buffer
		code := Main(ctx, testConfig(f.home, nil, &stdout, &stderr, []string{"open", "train-a", "notebook"}))
		cancel()
		want := map[string]int{"ready": 1, "stopped": 2}[state]
		if code != ExitInterrupted || stopped != want {
			t.Errorf("interrupted where it was %s: exit %d, stopped %d times\n%s", state, code, stopped,
				stderr.String())
		}
	}
}

func TestOpenPrintsTheAddressOfTheFirstWebApp(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.handle("GET /api/v1/sessions/{id}/apps", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.App{{App: session.App{ID: "port-22", Kind: "tcp"}},
			{App: session.App{ID: "jupyterlab", Kind: "web"}}})
	})
	f.handle("POST /api/v1/sessions/{id}/apps/{app}/open", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusOK, api.Opened{URL: "http://" + r.PathValue("app") + "?slipway_ticket=t"})
	})
	if got := f.run(t, "open", "train-a"); got.stdout != "http://jupyterlab?slipway_ticket=t\n" || got.code != ExitOK {
		t.Errorf("got %+v", got)
	}
	if got := f.run(t, "open", "train-a", "notebook"); got.stdout != "http://notebook?slipway_ticket=t\n" {
		t.Errorf("got %+v", got)
	}
}

func TestOpenInstallsAnAppOnlyWhenAsked(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.handle("GET /api/v1/sessions/{id}/apps", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.App{{App: session.App{ID: "jupyterlab", Kind: "web", Installable: true,
			State: session.AppStopped}}})
	})
	var asked api.OpenRequest
	f.handle("POST /api/v1/sessions/{id}/apps/{app}/open", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusOK, api.Opened{URL: "http://jupyterlab?slipway_ticket=t"})
	})
	if got := f.run(t, "apps", "train-a"); !strings.Contains(got.stdout, "not installed") {
		t.Errorf("got %+v", got)
	}
	if got := f.run(t, "open", "train-a"); got.code == ExitOK || !strings.Contains(got.stderr, "--install") {
		t.Errorf("got %+v", got)
	}
	if got := f.run(t, "open", "train-a", "--install"); got.code != ExitOK || !asked.Install {
		t.Errorf("got %+v, asked %+v", got, asked)
	}
}
