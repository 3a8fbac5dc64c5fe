package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/client"
	"slipway/backend/session"
)

// sampleAgents are this computer, one that is reached, one that is lost, and one
// that shows another key than before.
func sampleAgents() []api.Agent {
	ago := func(d time.Duration) *time.Time { return pointer(noon.Add(-d)) }
	return []api.Agent{
		{Name: "local", Local: true, Group: "default", Version: "1.2.3", Role: "admin", Live: 2,
			Connection: api.Connection{State: "connected", Transport: "local", Since: noon, LastHeard: ago(0)}},
		{Name: "lab", Address: "ssh://ada@lab", Group: "gpus", Version: "1.2.2", Upgrade: "1.2.3", Role: "admin",
			Live: 1,
			Connection: api.Connection{State: "connected", Transport: "ssh", Carriers: 2, Since: noon.Add(-time.Hour),
				LastHeard: ago(time.Second), RTTMs: pointer(40.25)}},
		{Name: "cellar", Address: "slipway://10.0.0.2", Group: "gpus",
			Connection: api.Connection{State: "down", Transport: "tls", Since: *ago(3 * time.Minute),
				LastHeard: ago(3 * time.Minute), NextTry: pointer(noon.Add(9 * time.Second)),
				Waits: "The machine does not answer. Slipway retries automatically.",
				Error: &session.Error{Code: "agent_connect_unavailable", Message: "The machine does not answer.",
					Hint: "Switch it on."}}},
		{Name: "attic", Address: "wss://attic.example/a", Group: "default", Fingerprint: "aaaa",
			Connection: api.Connection{State: "question", Transport: "wss", Since: noon, LastHeard: ago(time.Hour)},
			Question: &api.Question{Kind: "re-keyed", Text: "It shows another key.", Pinned: "aaaa", Found: "bbbb",
				Asked: noon}},
	}
}

func (f *plane) serveAgents() {
	agents := sampleAgents()
	f.handle("GET /api/v1/agents", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, agents) })
	f.handle("GET /api/v1/agents/{agent}", func(w http.ResponseWriter, r *http.Request) {
		for _, a := range agents {
			if a.Name == r.PathValue("agent") {
				reply(w, http.StatusOK, a)
				return
			}
		}
		refuse(w, session.Error{Code: "agent_find_not-found", Message: "There is no such agent.",
			Hint: "List them."})
	})
	f.handle("GET /api/v1/machines", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.Machine{{Agent: "lab", Platform: session.Platform{
			Hostname:      "gpu1",
			OS:            "linux",
			Arch:          "amd64",
			Engine:        "docker",
			EngineVersion: "28.5",
		}, Capacity: session.Capacity{CPUs: 64, UsedCPUs: 8, Memory: 512 << 30, UsedMemory: 32 << 30},
			DiskFree: 1 << 40, DiskTotal: 2 << 40}})
	})
}

func TestAgentTablesSayWhatAPersonNeeds(t *testing.T) {
	f := newPlane(t)
	f.serveAgents()
	for name, args := range map[string][]string{
		"agents": {"agent", "list"}, "agent": {"agent", "show", "lab"}, "agent-down": {"agent", "show", "cellar"},
		"agent-question": {"agent", "show", "attic"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, args...)
			if got.code != ExitOK || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			golden(t, name, got.stdout)
		})
	}
	if got := f.run(t, "agent", "show", "nowhere"); got.code != ExitNotFound ||
		!strings.Contains(got.stderr, "agent_find_not-found") {
		t.Errorf("%+v", got)
	}
}

func TestOneAgentIsSingledOut(t *testing.T) {
	f := newPlane(t)
	for path, args := range map[string][]string{
		"GET /api/v1/sessions": {"ps", "--on", "lab"}, "GET /api/v1/queue": {"queue", "--on", "lab"},
		"GET /api/v1/devices": {"gpu", "--on", "lab"},
		"GET /api/v1/images":  {"image", "ls", "--on", "lab"}, "GET /api/v1/doctor": {"doctor", "--on", "lab"},
		"GET /api/v1/usage": {"usage", "--on", "lab"},
	} {
		asked := ""
		f.handle(path, func(w http.ResponseWriter, r *http.Request) {
			asked = r.FormValue("agent")
			if path == "GET /api/v1/usage" {
				reply(w, http.StatusOK, api.UsageReport{})
				return
			}
			reply(w, http.StatusOK, []string{})
		})
		if got := f.run(t, args...); got.code != ExitOK || asked != "lab" {
			t.Errorf("%v asked for %q: %+v", args, asked, got)
		}
	}
}

// begin makes f answer a POST with an operation that goes on as told.
func (f *plane) begin(pattern string, course ...api.Operation) {
	for f.followed() { // the command before has ended, and its connection is about to
		time.Sleep(time.Millisecond)
	}
	f.handle(pattern, func(w http.ResponseWriter, _ *http.Request) {
		first := course[0]
		first.ID, first.Revision = "o1", 1
		reply(w, http.StatusAccepted, first)
	})
	now := 0
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
		last := course[len(course)-1]
		if now++; now == 1 && len(course) > 1 {
			last = course[0]
			go func() {
				for i, o := range course[1:] {
					o.ID, o.Revision = "o1", uint64(i+2)
					for !f.followed() {
						time.Sleep(time.Millisecond)
					}
					f.mu.Lock()
					for follower := range f.followers {
						follower <- api.Event{Operation: &o}
					}
					f.mu.Unlock()
				}
			}()
		}
		last.ID, last.Revision = "o1", 1
		reply(w, http.StatusOK, last)
	})
	f.handle("POST /api/v1/operations/{id}/cancel", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusAccepted, api.Operation{ID: "o1", State: "running", Steps: []api.OpStep{}})
	})
}

// followed reports whether anybody hears of events yet.
func (f *plane) followed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.followers) > 0
}

func TestAddShowsEachStepAndEndsAsTheOperationDoes(t *testing.T) {
	running := api.Operation{Kind: "agent-add", Subject: "ssh://lab", State: "running",
		Steps: []api.OpStep{{Name: "probe", Title: "Look at the machine", State: "running"}}}
	probed := running
	probed.Steps = []api.OpStep{{Name: "probe", Title: "Look at the machine", State: "ok",
		Detail: "gpu1, linux/amd64."},
		{Name: "live-restore", Title: "Live restore", State: "warning", Detail: "It is off.", Remedy: "Switch it on."},
		{Name: "upload", Title: "Bring the program", State: "running"}}
	done := probed
	done.State, done.Agent, done.EndedAt = "done", "lab", &noon
	failed := probed
	failed.State, failed.EndedAt = "failed", &noon
	failed.Error = &session.Error{Code: "agent_connect_unavailable", Message: "It is not reached.",
		Hint: "Look at the network."}
	cancelled := probed
	cancelled.State, cancelled.EndedAt = "cancelled", &noon
	f := newPlane(t)
	t.Run("done", func(t *testing.T) {
		f.begin("POST /api/v1/agents", running, probed, done)
		got := f.run(t, "agent", "add", "lab")
		if got.code != ExitOK || !strings.Contains(got.stdout, "lab is added") ||
			strings.Count(got.stderr, "Look at the machine") != 1 || !strings.Contains(got.stderr, "→ Switch it on.") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("as JSON nothing but the operation is printed", func(t *testing.T) {
		f.begin("POST /api/v1/agents", running, done)
		got := f.run(t, "agent", "add", "lab", "-o", "json")
		var o api.Operation
		if err := json.Unmarshal([]byte(got.stdout), &o); err != nil || o.Agent != "lab" || got.stderr != "" ||
			got.code != ExitOK {
			t.Errorf("%v: %+v", err, got)
		}
	})
	t.Run("failed", func(t *testing.T) {
		f.begin("POST /api/v1/agents", running, failed)
		if got := f.run(t, "agent", "add", "lab"); got.code != ExitUnavailable ||
			!strings.Contains(got.stderr, "agent_connect_unavailable") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		f.begin("POST /api/v1/agents", running, cancelled)
		if got := f.run(t, "agent", "add", "lab"); got.code != ExitInterrupted {
			t.Errorf("%+v", got)
		}
	})
}

// Every command that is an operation gives it up at the control plane when it is interrupted.
func TestAnInterruptCancelsTheOperation(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	begun, cancelled := "", 0
	interrupt := func() {}
	inFlight := false // the interrupt comes while the request that begins it is under way
	running := api.Operation{ID: "o1", State: "running",
		Steps: []api.OpStep{{Name: "work", Title: "Work", State: "running"}}}
	given := running
	given.State, given.EndedAt = "cancelled", &noon
	given.Steps = []api.OpStep{{Name: "work", Title: "Work", State: "skipped", Detail: "Half of it is done."}}
	begins := func(w http.ResponseWriter, r *http.Request) {
		begun = r.URL.Path
		if inFlight {
			interrupt()
		}
		reply(w, http.StatusAccepted, running)
	}
	f.handle("POST /api/v1/", begins)
	f.handle("DELETE /api/v1/folders/abcdefghijkl", begins)
	f.handle("GET /api/v1/folders/abcdefghijkl", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Folder{Folder: session.Folder{ID: "abcdefghijkl", Name: "data", State: "trashed"}})
	})
	f.handle("GET /api/v1/operations/o1", func(w http.ResponseWriter, _ *http.Request) {
		if cancelled > 0 {
			reply(w, http.StatusOK, given)
			return
		}
		reply(w, http.StatusOK, running)
		interrupt()
	})
	f.handle("POST /api/v1/operations/o1/cancel", func(w http.ResponseWriter, _ *http.Request) {
		cancelled++
		reply(w, http.StatusAccepted, running)
	})
	for path, args := range map[string]string{
		"/images/pull":             "image pull debian:12",
		"/images/send":             "image send debian:12 --to lab",
		"/images/remove":           "image rm debian:12 --yes",
		"/sessions/train-a/commit": "commit train-a mine",
		"/agents":                  "agent add lab",
		"/agents/lab/probe":        "agent probe lab",
		"/agents/lab/upgrade":      "agent upgrade lab",
		"/agents/lab/reconnect":    "agent reconnect lab",
		"/agents/lab/remove":       "agent rm lab --uninstall --yes",
		"/folders/abcdefghijkl":    "folder purge abcdefghijkl --yes",
	} {
		for _, inFlight = range []bool{false, true} {
			begun, cancelled = "", 0
			ctx, cancel := context.WithCancel(t.Context())
			interrupt = cancel
			var stdout, stderr bytes.Buffer
			code := Main(ctx, testConfig(f.home, nil, &stdout, &stderr, strings.Fields(args)))
			cancel()
			if code != ExitInterrupted || begun != "/api/v1"+path || cancelled != 1 ||
				!strings.Contains(stderr.String(), "Half of it is done.") ||
				!strings.Contains(stderr.String(), "It was cancelled.") {
				t.Errorf("%s, in flight %t: exit %d, began %q, cancelled %d times\n%s", args, inFlight, code, begun,
					cancelled, stderr.String())
			}
		}
	}
}

func TestWhatIsAskedAfterAnInterruptNeverBegins(t *testing.T) {
	f := newPlane(t)
	f.handle("POST /api/v1/images/pull", func(w http.ResponseWriter, _ *http.Request) {
		t.Error("it was asked for")
		reply(w, http.StatusAccepted, api.Operation{ID: "o1"})
	})
	left, cancel := context.WithCancel(t.Context())
	cancel()
	c := &caller{client.New(f.URL, "secret"), nil}
	if _, err := begin(left, c, route.ImagePull); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestOfEventsOnlyWhatIsNewerCounts(t *testing.T) {
	events := []api.Event{
		{Operation: &api.Operation{ID: "other", Revision: 9}}, {Operation: &api.Operation{ID: "o1", Revision: 2}},
		{Session: &api.Session{}},
		{Snapshot: &api.Snapshot{Operations: []api.Operation{{ID: "o1", Revision: 4, State: "done"}}}},
	}
	for i, event := range events {
		got, newer := newerOperation(event, api.Operation{ID: "o1", Revision: 2})
		if last := i == len(events)-1; newer != last || last && (got.Revision != 4 || got.State != "done") {
			t.Errorf("event %d: %+v, %t", i, got, newer)
		}
	}
}

func TestQuestionsOfOtherMachinesCannotMoveTheCursor(t *testing.T) {
	if got := session.Printable("pass\x1b[2Jword\r\u0085\x07:\nagain"); got != "pass[2Jword:\nagain" {
		t.Errorf("%q", got)
	}
}

func TestAnswerIsOneLine(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := out.WriteString("yes\r\nmore"); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	if got, err := readAnswer(in, false); err != nil || got != "yes" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestProgressSaysHowFarHowFastAndHowLong(t *testing.T) {
	got := progressBar(api.Progress{Done: 13 << 20, Total: 26 << 20, Rate: 1 << 20, Left: pointer(13.0)})
	if want := strings.Repeat("█", 12) + strings.Repeat("░", 12) +
		" 50 %  13 MiB of 26 MiB, 1 MiB/s, 13s left"; got != want {
		t.Errorf("%q", got)
	}
	if got := progressBar(api.Progress{Done: 1024}); got != "1 KiB" {
		t.Errorf("%q", got)
	}
}

func TestSessionOfALostAgentSaysWhenItWasHeard(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.sessions[2].Agent, f.sessions[2].LastHeard = "lab", pointer(noon.Add(-3*time.Minute))
	if got := f.run(t, "ps"); !strings.Contains(got.stdout, "lab is not reached; this was 3m 0s ago") {
		t.Error(got.stdout)
	}
}

func TestAgentIsLookedAfterFromAfar(t *testing.T) {
	f := newPlane(t)
	asked := make(chan string, 10)
	note := func(r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked <- r.Method + " " + r.URL.RequestURI() + " " + strings.TrimSpace(string(body))
	}
	f.handle("GET /api/v1/agents/{agent}/audit", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		reply(w, http.StatusOK, []session.AuditEntry{{Owner: "ann", Role: "user", From: "10.0.0.7", Method: "Launch",
			Session: "s1", Outcome: "ok"}})
	})
	f.handle("GET /api/v1/agents/{agent}/limits", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		reply(w, http.StatusOK, api.PersonLimits{Limits: map[string]session.Allowance{"ann": {CPU: 4, GPU: 1500}}})
	})
	f.handle("PUT /api/v1/agents/{agent}/limits/{owner}", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.WriteHeader(http.StatusNoContent)
	})
	f.handle("DELETE /api/v1/agents/{agent}/limits/{owner}", func(w http.ResponseWriter, r *http.Request) {
		note(r)
		w.WriteHeader(http.StatusNoContent)
	})
	for _, c := range []struct{ line, asks, prints string }{
		{"agent audit --tail 7 --on lab", "GET /api/v1/agents/lab/audit?limit=7 ", "10.0.0.7"},
		{"agent audit --on lab --by ann --grep read,csv --failed --before 2026-01-02T03:04:05.000000006Z",
			"GET /api/v1/agents/lab/audit?before=2026-01-02T03%3A04%3A05.000000006Z" +
				"&failed=1&limit=100&owner=ann&text=read%2Ccsv ", "ann"},
		{"agent limit list --on lab", "GET /api/v1/agents/lab/limits ", "1.5"},
		{"agent limit set ann --cpu 4 --gpu 1.5 --on lab", `PUT /api/v1/agents/lab/limits/ann {"cpu":4,"gpu":1500}`,
			""},
		{"agent limit unset ann --on lab", "DELETE /api/v1/agents/lab/limits/ann ", ""},
	} {
		got := f.run(t, strings.Fields(c.line)...)
		if got.code != ExitOK || !strings.Contains(got.stdout, c.prints) {
			t.Fatalf("%s: code %d, %q, %q", c.line, got.code, got.stdout, got.stderr)
		}
		if request := <-asked; request != c.asks {
			t.Errorf("%s asks %q, want %q", c.line, request, c.asks)
		}
	}
}
