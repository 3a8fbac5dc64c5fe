//go:build linux

package backend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/demo"
	"slipway/backend/demo/run"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
)

// startDemo serves a demo that is kept in dir until the test ends.
func startDemo(t *testing.T, dir string, options demo.Options) *running {
	t.Helper()
	return startBy(t, dir, func(ctx context.Context, ready func(service.Ready)) error {
		return run.Demo(ctx, run.Config{Options: options, Keep: dir,
			Ready: func(r service.Ready, _ string) { ready(r) }})
	})
}

func (r *running) agentNamed(t *testing.T, name string) (found api.Agent) {
	t.Helper()
	r.call(t, "GET", "/api/v1/agents/"+name, "", &found)
	return found
}

func (r *running) sessions(t *testing.T) (all []api.Session) {
	t.Helper()
	r.call(t, "GET", "/api/v1/sessions", "", &all)
	return all
}

// ownHome is a home with a configuration of ssh, and with folders for temporary
// files and for what programs keep.
func ownHome(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"XDG_RUNTIME_DIR", "TMPDIR"} {
		dir := filepath.Join(home, strings.ToLower(name))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, dir)
	}
	if err := os.Mkdir(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".ssh", "config"), []byte("Host lab\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

// files are those below a folder, with their content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestDemoHasALabBehindTheRealTunnel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	home := ownHome(t)
	untouched := files(t, home)
	r := startDemo(t, dir, demo.Options{Seed: 7})
	var told api.Demo
	r.call(t, "GET", "/api/v1/demo", "", &told)
	if !told.Active || told.Seed != 7 || told.Story != "lab" || told.Lab != "lab" || told.LidClosed {
		t.Errorf("%+v", told)
	}
	lab := r.agentNamed(t, "lab")
	if lab.Local || !strings.HasPrefix(lab.Address, "slipway://127.0.0.1:") || lab.Connection.Transport != "tls" {
		t.Errorf("%+v", lab)
	}
	r.waitingFor(t, "llm-eval", "llm-pretrain has")
	r.assistant(t)
	before := len(r.sessions(t))
	r.checkContent(t)

	t.Run("the lid cuts the tunnel, what runs there goes on, and the tunnel comes back", func(t *testing.T) {
		r.call(t, "PUT", "/api/v1/demo/lid", `{"closed":true}`, &told)
		if !told.LidClosed {
			t.Errorf("%+v", told)
		}
		until(t, "the lab is still reached",
			func() bool { return r.agentNamed(t, "lab").Connection.State != "connected" })
		until(t, "nobody says why", func() bool {
			e := r.agentNamed(t, "lab").Connection.Error
			return e != nil && e.Code == "agent_connect_unavailable" && e.Hint != ""
		})
		if stale := len(r.sessions(t)); stale != before {
			t.Errorf("%d sessions are shown, %d were", stale, before)
		}
		r.call(t, "PUT", "/api/v1/demo/lid", `{"closed":false}`, &told)
		until(t, "the lab is not reached again",
			func() bool { return r.agentNamed(t, "lab").Connection.State == "connected" })
		r.waitingFor(t, "llm-eval", "llm-pretrain has")
	})
	t.Run("nothing real is served from its folders", func(t *testing.T) {
		err := service.Run(t.Context(), service.Config{Home: place.Home{Dir: dir}, Engine: local.EngineSim})
		if session.CodeOf(err) != "server_start_conflict" || !strings.Contains(session.AsError(err, "").Hint,
			"slipway demo --keep") {
			t.Errorf("%v", err)
		}
		err = service.RunAgent(t.Context(), service.AgentConfig{Home: demo.LabHome(place.Home{Dir: dir})})
		if session.CodeOf(err) != "server_start_conflict" {
			t.Errorf("%v", err)
		}
	})
	t.Run("one that was kept goes on as it was left", func(t *testing.T) {
		r.end(t)
		again := startDemo(t, dir, demo.Options{})
		until(t, "the lab is not reached again",
			func() bool { return again.agentNamed(t, "lab").Connection.State == "connected" })
		if now := again.agentNamed(t, "lab"); now.Address != lab.Address {
			t.Errorf("the lab is at %s and was at %s", now.Address, lab.Address)
		}
		until(t, "the sessions are not those of before", func() bool { return len(again.sessions(t)) == before })
		again.assistant(t)
		if now := len(again.sessions(t)); now != before {
			t.Errorf("%d sessions are shown, %d were", now, before)
		}
	})
	t.Run("nothing is written but in its own folder", func(t *testing.T) {
		if now := files(t, home); len(untouched) != 1 || !maps.Equal(now, untouched) {
			t.Errorf("the person's home had %q and has %q", untouched, now)
		}
	})
}

// assistant waits until the service of the story answers, asks it through the tunnel, and looks at its address.
func (r *running) assistant(t *testing.T) {
	t.Helper()
	var services []api.Service
	until(t, "the assistant is not ready", func() bool {
		r.call(t, "GET", "/api/v1/services", "", &services)
		return len(services) == 1 && services[0].State == session.ServiceReady
	})
	status, words := answer(t, http.DefaultClient, "POST", r.URL+"/api/v1/services/assistant/chat",
		`{"maxTokens":8,"messages":[{"role":"user","content":"Hello"}]}`, r.header())
	if status != http.StatusOK || !strings.Contains(string(words), `"content":"This"`) ||
		!strings.HasSuffix(string(words), "data: [DONE]\n\n") {
		t.Errorf("the assistant answers %d, %q", status, words)
	}
	// Its own address asks for a token.
	stranger, err := http.Get(services[0].Address + "/models")
	if err != nil {
		t.Fatal(err)
	}
	_ = stranger.Body.Close()
	if stranger.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token, it answers %s", stranger.Status)
	}
}

// checkContent looks whether the person has folders, launches and presets.
func (r *running) checkContent(t *testing.T) {
	t.Helper()
	var recents []hub.Recent
	r.call(t, "GET", "/api/v1/recents", "", &recents)
	pinned := []string{}
	for _, recent := range recents {
		if recent.Pinned {
			pinned = append(pinned, recent.Name)
		}
	}
	slices.Sort(pinned)
	if len(recents) < 3 || !slices.Equal(pinned, []string{"Churn, nightly", "My notebook"}) {
		t.Errorf("%d recent launches, pinned are %q", len(recents), pinned)
	}
	var presets []hub.Preset
	r.call(t, "GET", "/api/v1/presets", "", &presets)
	if !slices.ContainsFunc(presets, func(p hub.Preset) bool { return p.Name == "Half a GPU" && !p.Builtin }) {
		t.Errorf("%+v", presets)
	}
	var listing api.FileListing
	if status := r.call(t, "GET", "/api/v1/folders/churn/files?path=/", "", &listing); status != 200 ||
		len(listing.Entries) != 5 {
		t.Errorf("%d %+v", status, listing)
	}
}

// course is what a session came to, without what differs from run to run: times,
// numbers of containers, and ids of replicas.
func course(s api.Session) string {
	wait := ""
	if s.Spec.Type == session.Inference {
		s.ID = ""
	}
	if s.Wait != nil {
		wait = string(s.Wait.Code) // the message has times
	}
	return fmt.Sprint(s.ID, s.Agent, s.Owner, s.Name, s.Status, s.Reason, s.Result, wait, s.Grants.CPUs, s.Grants.GPUs)
}

func TestTheSameSeedTellsTheSameStory(t *testing.T) {
	tell := func() []string {
		r := startDemo(t, filepath.Join(t.TempDir(), "demo"), demo.Options{Seed: 5})
		defer r.end(t)
		r.waitingFor(t, "llm-eval", "llm-pretrain has")
		r.waitingFor(t, "vision-report", "vision-finetune (RUNNING)")
		var told []string
		until(t, "the story does not come to rest", func() bool {
			told = nil
			for _, s := range r.sessions(t) {
				if s.Status != "RUNNING" && s.Status != "TERMINATED" && s.Status != "PENDING" ||
					s.Name == "sweep-lr-0.3" && s.Status != "TERMINATED" {
					return false
				}
				told = append(told, course(s))
			}
			slices.Sort(told)
			return slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, "assistant-1RUNNING") })
		})
		return told
	}
	first, second := tell(), tell()
	if !slices.Equal(first, second) {
		t.Errorf("first\n%s\nthen\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
}

// waitingFor waits until a session waits for a reason.
func (r *running) waitingFor(t *testing.T, name, reason string) {
	t.Helper()
	until(t, name+" does not wait because of "+reason, func() bool {
		return slices.ContainsFunc(r.sessions(t), func(s api.Session) bool {
			return s.Name == name && s.Wait != nil && strings.Contains(s.Wait.Message, reason)
		})
	})
}

func TestDemoIsThrownAway(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	var dir string
	err := run.Demo(ctx, run.Config{Options: demo.Options{Story: demo.StoryWorkstation},
		Ready: func(_ service.Ready, at string) {
			dir = at
			if _, err := os.Stat(filepath.Join(at, "token")); err != nil {
				t.Error(err)
			}
			stop()
		}})
	if err != nil || dir == "" {
		t.Fatalf("served from %q, %v", dir, err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestWhatIsRealIsNoDemo(t *testing.T) {
	r := start(t, filepath.Join(t.TempDir(), "home"), 0)
	var told api.Demo
	r.call(t, "GET", "/api/v1/demo", "", &told)
	if told != (api.Demo{}) {
		t.Errorf("%+v", told)
	}
	var problem session.Error
	if status := r.call(t, "PUT", "/api/v1/demo/lid", `{"closed":true}`, &problem); status < 400 ||
		problem.Code != "server_request_unavailable" {
		t.Errorf("%d %+v", status, problem)
	}
	err := run.Demo(t.Context(), run.Config{Keep: r.home.Dir})
	if session.CodeOf(err) != "server_start_conflict" {
		t.Errorf("a demo in a real folder: %v", err)
	}
}

func TestADemoRunsBesideWhatIsReal(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	dir := filepath.Join(t.TempDir(), "home")
	r := startBy(t, dir, func(ctx context.Context, ready func(service.Ready)) error {
		starter := &run.Starter{}
		return errors.Join(service.Run(ctx, service.Config{Home: place.Home{Dir: dir}, Engine: local.EngineSim,
			Ready: ready, DemoStarter: starter}), starter.Close())
	})
	ask := func() string {
		t.Helper()
		var started api.DemoStarted
		if status := r.call(t, "POST", "/api/v1/demo/start", `{"window":true}`, &started); status != 200 ||
			started.Windowed {
			t.Fatalf("%d %+v", status, started)
		}
		return started.URL
	}
	first, second := ask(), ask()
	origin, _, _ := strings.Cut(first, "/login")
	if !strings.HasPrefix(second, origin+"/login") || first == second || strings.HasPrefix(first, r.URL) {
		t.Errorf("first %s, then %s, beside %s", first, second, r.URL)
	}
	response, err := http.Get(second)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode >= 500 {
		t.Errorf("its login answers with %d, %v", response.StatusCode, err)
	}
	if mine := r.sessions(t); len(mine) != 0 {
		t.Errorf("what is real has %d sessions", len(mine))
	}
	r.end(t)
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v is left of it, %v", left, err)
	}
}
