package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/place"
	"slipway/backend/session"
)

func TestTablesSayWhatAPersonNeeds(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	f.handle("GET /api/v1/sessions/{id}/history",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, samplePhases()) })
	f.handle("GET /api/v1/sessions/{id}/apps", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.App{
			{App: session.App{ID: "jupyterlab", Title: "JupyterLab", Kind: "web", Port: 8888, State: "ready"},
				URL: "http://jupyterlab-def3run00000.localhost:7421"},
			{App: session.App{ID: "notebook", Title: "Jupyter Notebook", Kind: "web", Port: 7431, State: "ready",
				Kept: true, NotKept: []session.Phrase{session.Say("notKeptEncrypted", session.Fill("notebooks",
					"a.ipynb"))}}, URL: "http://notebook-def3run00000.localhost:7421"},
			{App: session.App{ID: "tensorboard", Title: "TensorBoard", Kind: "web", State: "stopped"},
				URL: "http://tensorboard-def3run00000.localhost:7421"}})
	})
	f.handle("GET /api/v1/images", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []hub.Image{
			{Image: session.Image{ID: "sha256:0123456789abcdef0123456789", Refs: []string{"python:3.12",
				"python:latest"}, Size: 1100 << 20, CreatedAt: noon.AddDate(0, 0, -9), Arch: "amd64"}, Agent: "local"},
			{Image: session.Image{ID: "sha256:ffff56789abcdef0123456789a", Refs: []string{}, Size: 900 << 10,
				CreatedAt: noon.AddDate(0, 0, -1), Arch: "arm64"}, Agent: "local"}})
	})
	f.handle("GET /api/v1/doctor", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []session.Check{{ID: "engine", Title: "Docker", Result: "ok", Text: "28.5.2 answers"},
			{ID: "disk", Title: "Disk", Result: "warning", Text: "3.1 GiB are free", Remedy: "docker system prune"}})
	})
	for name, args := range map[string][]string{
		"ps":      {"ps"},
		"ps-all":  {"ps", "-a"},
		"ps-ids":  {"ps", "-q"},
		"show":    {"show", "train-a"},
		"failed":  {"show", "fin5"},
		"history": {"history", "train-a"},
		"apps":    {"apps", "train-a"},
		"images":  {"image", "ls"},
		"doctor":  {"doctor"},
		"version": {"version"},
		"help":    {"--help"},
		"run":     {"run", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, args...)
			if got.code != ExitOK || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			golden(t, name, strings.ReplaceAll(got.stdout, f.URL, "http://URL"))
		})
	}
}

func samplePhases() []session.Phase {
	end := noon.Add(1500e6)
	return []session.Phase{
		{ID: "1", Session: "def3run00000", Phase: "schedule", Result: "SUCCESS", From: "PENDING", To: "SCHEDULED",
			Attempts: 1, CreatedAt: noon, UpdatedAt: noon.Add(40e6), Steps: []session.Step{}},
		{ID: "2", Session: "def3run00000", Phase: "start", Result: "FAILURE", From: "PREPARED", To: "CREATING",
			Attempts: 2, Message: "The container ended at once.",
			CreatedAt: noon, UpdatedAt: end,
			Steps: []session.Step{{Step: "create", Result: "SUCCESS", StartedAt: noon, EndedAt: &end}}},
	}
}

func TestJSONIsTheAPIsOwn(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	t.Run("an array of live sessions", func(t *testing.T) {
		var got []api.Session
		if err := json.Unmarshal([]byte(f.run(t, "ps", "-o", "json").stdout), &got); err != nil || len(got) != 3 {
			t.Errorf("%d sessions, %v; want 3", len(got), err)
		}
	})
	t.Run("an empty array where there is none", func(t *testing.T) {
		if got := newPlane(t).run(t, "-o", "json", "ps"); strings.TrimSpace(got.stdout) != "[]" {
			t.Errorf("printed %q, want []", got.stdout)
		}
	})
	t.Run("members that this program does not know", func(t *testing.T) {
		f.newer = true
		f.handle("GET /api/v1/sessions/{id}", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, map[string]any{"id": "x", "robots": []int{1}})
		})
		var got map[string]any
		if err := json.Unmarshal([]byte(f.run(t, "show", "x", "-o", "json").stdout), &got); err != nil ||
			got["robots"] == nil {
			t.Errorf("got %v, %v; want the member robots", got, err)
		}
	})
}

func TestSessionsAreFoundAsPeopleNameThem(t *testing.T) {
	f := newPlane(t)
	f.sessions = sampleSessions()
	for ref, want := range map[string]string{
		"def3run00000": "def3run00000", // id
		"train-a":      "def3run00000", // name of a live one
		"train-b":      "fin4failed00", // name of finished ones: the newest
		"def":          "def3run00000", // beginning that only one has
	} {
		got := f.run(t, "show", ref, "-o", "json")
		var s api.Session
		if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || string(s.ID) != want {
			t.Errorf("show %s: %q, %v; want %s (%s)", ref, s.ID, err, want, got.stderr)
		}
	}
	if got := f.run(t, "show", "abc"); got.code != ExitUsage ||
		!strings.Contains(got.stderr, "abc1wait0000, abc2pull0000") {
		t.Errorf("a beginning that two have: code %d, %q; want both ids", got.code, got.stderr)
	}
	if got := f.run(t, "show", "nobody"); got.code != ExitNotFound ||
		!strings.Contains(got.stderr, "session_read_not-found") {
		t.Errorf("nobody's name: code %d, %q", got.code, got.stderr)
	}
}

func TestFailuresSayCodeSentenceAndHint(t *testing.T) {
	f := newPlane(t)
	invalid := session.Error{Code: "session_create_invalid", Message: "The spec has a value that is wrong.",
		Fields: []session.FieldError{
			{Field: "name", Kind: "invalid", Message: "The name is too short.",
				Hint: "Write 4 to 64 characters."}}}
	f.handle("POST /api/v1/sessions",
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, invalid) })
	t.Run("to people", func(t *testing.T) {
		got := f.run(t, "run", "--image", "python", "--name", "a")
		want := "slipway: The spec has a value that is wrong.\n  name: The name is too short. Write 4 to 64 " +
			"characters.\n  (session_create_invalid)\n"
		if got.code != ExitInvalid || got.stderr != want || got.stdout != "" {
			t.Errorf("code %d, stderr\n%s", got.code, got.stderr)
		}
	})
	t.Run("to programs", func(t *testing.T) {
		got := f.run(t, "run", "--image", "python", "--name", "a", "-o", "json")
		var told session.Error
		if err := json.Unmarshal([]byte(got.stderr), &told); err != nil || told.Code != invalid.Code ||
			len(told.Fields) != 1 || got.stdout != "" {
			t.Errorf("stderr %q, %v; want the problem as JSON", got.stderr, err)
		}
	})
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such command":     {[]string{"launch-it"}, ExitUsage, "no command slipway launch-it"},
		"a near command":      {[]string{"shwo"}, ExitUsage, "Did you mean show"},
		"no such flag":        {[]string{"ps", "--wide"}, ExitUsage, "--wide"},
		"no such output":      {[]string{"ps", "-o", "xml"}, ExitUsage, `"xml"`},
		"no session":          {[]string{"show"}, ExitUsage, "Missing argument: SESSION"},
		"an empty session":    {[]string{"show", ""}, ExitUsage, "empty"},
		"no image":            {[]string{"run"}, ExitUsage, "--image"},
		"no command to run":   {[]string{"exec", "train-a", "--"}, ExitUsage, "after --"},
		"no terminal":         {[]string{"attach", "train-a"}, ExitUsage, "terminal"},
		"a wrong volume":      {[]string{"run", "--image", "a", "-v", "x:"}, ExitUsage, "--volume"},
		"a wrong port":        {[]string{"run", "--image", "a", "--port", "80a"}, ExitUsage, "--port"},
		"a wrong start":       {[]string{"run", "--image", "a", "--start-at", "soon"}, ExitUsage, "--start-at"},
		"a variable unset":    {[]string{"run", "--image", "a", "-e", "NOT_SET_HERE"}, ExitUsage, "NOT_SET_HERE"},
		"detach and wait":     {[]string{"run", "--image", "a", "-d", "--wait"}, ExitUsage, "--detach"},
		"detach with command": {[]string{"run", "--image", "a", "-d", "--", "ls"}, ExitUsage, "batch"},
		"no such engine":      {[]string{"serve", "--engine", "podman"}, ExitUsage, "podman"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, c.args...)
			if got.code != c.code || !strings.Contains(got.stderr, c.says) || got.stdout != "" {
				t.Errorf("code %d, stderr %q; want %d and %q", got.code, got.stderr, c.code, c.says)
			}
		})
	}
}

func TestWithoutControlPlaneOneIsStarted(t *testing.T) {
	t.Run("and a failure to start it is told", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "slipway")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho no engine answers\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr strings.Builder
		config := testConfig(place.Home{Dir: t.TempDir()}, nil, &stdout, &stderr, []string{"ps"})
		config.Executable = program
		code := Main(t.Context(), config)
		if code != ExitUnavailable || !strings.Contains(stderr.String(), "starting one in the background") ||
			!strings.Contains(stderr.String(), "no engine answers") {
			t.Errorf("code %d, stderr %q", code, stderr.String())
		}
	})
	t.Run("but not to shut it down or to say the version", func(t *testing.T) {
		home := place.Home{Dir: t.TempDir()}
		if got := runIn(t, home, nil, "shutdown"); got.code != ExitOK ||
			!strings.Contains(got.stderr, "No control plane") {
			t.Errorf("shutdown: code %d, %q", got.code, got.stderr)
		}
		if got := runIn(t, home, nil, "version", "-o", "json"); got.code != ExitOK ||
			!strings.Contains(got.stdout, `"server": null`) {
			t.Errorf("version: code %d, %q", got.code, got.stdout)
		}
	})
}

func TestServeTellsHowToGetIn(t *testing.T) {
	t.Run("a new one", func(t *testing.T) {
		var stdout, stderr strings.Builder
		home := place.Home{Dir: t.TempDir()}
		config := testConfig(home, nil, &stdout, &stderr, []string{"serve", "--engine", "sim", "--port", "7999"})
		var asked ServeOptions
		config.Serve = func(_ context.Context, opts ServeOptions) error {
			asked = opts
			opts.Ready(Ready{URL: "http://127.0.0.1:7999", LoginURL: "http://127.0.0.1:7999/login?code=xyz",
				Engine: "sim", Note: "Docker does not answer."})
			return nil
		}
		if code := Main(t.Context(), config); code != ExitOK {
			t.Errorf("exit code %d, %s", code, stderr.String())
		}
		if asked.Engine != "sim" || asked.Port != 7999 || asked.Home != home {
			t.Errorf("asked for %+v", asked)
		}
		golden(t, "serve", stdout.String())
	})
	t.Run("one that runs already", func(t *testing.T) {
		f := newPlane(t)
		f.handle("POST /api/v1/login", func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusCreated, api.LoginLink{URL: "http://in"})
		})
		if got := f.run(t, "serve"); got.code != ExitOK || got.stdout != "http://in\n" ||
			!strings.Contains(got.stderr, "4711") {
			t.Errorf("code %d, %q, %q", got.code, got.stdout, got.stderr)
		}
		if got := f.run(t, "serve", "--engine", "sim"); got.code != ExitFailure ||
			!strings.Contains(got.stderr, "docker") {
			t.Errorf("with another engine: code %d, %q", got.code, got.stderr)
		}
	})
	t.Run("and a failure as it is told", func(t *testing.T) {
		var stdout, stderr strings.Builder
		config := testConfig(place.Home{Dir: t.TempDir()}, nil, &stdout, &stderr, []string{"serve"})
		config.Serve = func(context.Context, ServeOptions) error {
			return Told(session.Error{Code: "server_listen_conflict", Message: "Port 1 is taken.",
				Hint: "Choose another."})
		}
		if code := Main(t.Context(), config); code != ExitFailure ||
			!strings.Contains(stderr.String(), "(server_listen_conflict)") {
			t.Errorf("code %d, %q", code, stderr.String())
		}
	})
}
