package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

func sampleService() api.Service {
	ago := func(minutes int) time.Time { return noon.Add(-time.Duration(minutes) * time.Minute) }
	spec := session.Spec{Type: session.Inference, Image: "llama-server", Accelerator: gpu.Request{Devices: 1},
		Resources: session.Resources{CPU: 4, Memory: 8 << 30},
		Env:       []session.EnvVar{{Name: "HF_TOKEN", Value: session.Hidden}, {Name: "SEED", Value: "7"}},
		Access: session.Access{Serving: &session.Serving{Port: 8000,
			Command: []string{"/app/llama-server", "--model", "models/a b.gguf"}}}}
	older := spec
	older.Image = "llama-server:old"
	return api.Service{Address: "http://127.0.0.1:40001/v1", Service: session.Service{Name: "llama", Owner: "ada",
		Agent: "lab", Revision: 2, CreatedAt: ago(90),
		ServiceCondition: session.ServiceCondition{State: session.ServiceDegraded,
			Why: "1 of 2 replicas are healthy. 1 replica is in the queue."},
		ServiceWish: session.ServiceWish{Replicas: 2, Sleep: session.Duration(30 * time.Minute), MaySleep: true,
			Rules: []session.ScalingRule{{Source: "router", Metric: "outstanding", ScaleUp: pointer(8.0),
				ScaleDown: pointer(1.0), MaxReplicas: 4}}},
		Revisions: []session.Revision{{Number: 2, Spec: spec, CreatedAt: ago(30)},
			{Number: 1, Spec: older, CreatedAt: ago(90)}},
		Live: []session.Replica{
			{Session: "def3run00000", Revision: 2, State: session.ReplicaHealthy, Since: ago(20), Outstanding: 3},
			{Session: "abc1wait0000", Revision: 2, State: session.ReplicaWaiting, Since: ago(1),
				Why: "Needs 1 GPU on lab, 0 are free."}},
		Tokens: []session.ServiceToken{{ID: "t1", Name: "editor", CreatedAt: ago(80), PerMinute: 60},
			{ID: "t2", Name: "ci", CreatedAt: ago(70), ExpiresAt: noon.AddDate(0, 0, 3)}},
		Traffic: session.ServiceTraffic{Outstanding: 3, Requests: 120, Failed: 2, Prompt: 4000, Completion: 31000,
			FirstWordMs: 180, FirstWordP99Ms: 950, TokensPerSecond: 41.5, Last: ago(0)},
		Events: []session.ServiceEvent{
			{At: ago(1), Kind: session.EventDegraded, Message: "Some replicas do not answer.",
				Why: "1 of 2 replicas are healthy."},
			{At: ago(90), Kind: session.EventCreated, Message: "It was created."}},
	}}
}

// servicePlane answers about one service. What is deployed becomes its newest revision.
func servicePlane(t *testing.T, s *api.Service) (*plane, *session.DeployRequest) {
	t.Helper()
	f, sent := newPlane(t), &session.DeployRequest{}
	f.handle("GET /api/v1/services", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.Service{*s})
	})
	f.handle("GET /api/v1/services/{service}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("service") != s.Name {
			no := session.NoService(r.PathValue("service"))
			refuse(w, *no)
			return
		}
		reply(w, http.StatusOK, s)
	})
	f.handle("POST /api/v1/services", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(sent); err != nil {
			t.Error(err)
		}
		answer := *s
		answer.Name, answer.Revision = sent.Name, 3
		reply(w, http.StatusOK, answer)
	})
	f.handle("POST /api/v1/preview", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Preview{Agent: "lab", Preview: session.Preview{
			Wait: &session.Wait{Message: "Needs 1 GPU on lab, 0 are free."}}})
	})
	return f, sent
}

func TestTablesOfServices(t *testing.T) {
	s := sampleService()
	f, _ := servicePlane(t, &s)
	for name, args := range map[string][]string{
		"service-ls":     {"service", "ls"},
		"service-show":   {"service", "show", "llama"},
		"service-tokens": {"service", "token", "ls", "llama"},
	} {
		t.Run(name, func(t *testing.T) {
			got := f.run(t, args...)
			if got.code != ExitOK || got.stderr != "" {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			golden(t, name, got.stdout)
		})
	}
	var shown api.Service
	if err := json.Unmarshal([]byte(f.run(t, "service", "show", "llama", "-o", "json").stdout), &shown); err != nil ||
		len(shown.Events) != 2 {
		t.Errorf("as JSON: %+v, %v", shown, err)
	}
	if got := f.run(t, "service", "show", "nobody"); got.code != ExitNotFound {
		t.Errorf("an unknown one: code %d, %q", got.code, got.stderr)
	}
	if got := f.run(t, "__complete", "service", "logs", ""); !strings.Contains(got.stdout,
		"llama\tdegraded, on lab\n") {
		t.Errorf("completed with %q", got.stdout)
	}
}

func TestAnUpdateChangesOnlyWhatIsGiven(t *testing.T) {
	s := sampleService()
	f, sent := servicePlane(t, &s)
	got := f.run(t, "service", "update", "llama", "--mem", "16g", "-e", "SEED=8", "--health", "/ready", "--sleep", "0",
		"--", "serve", "me")
	if got.code != ExitOK {
		t.Fatalf("code %d, %q", got.code, got.stderr)
	}
	want := s.Revisions[0].Spec
	if sent.Name != "llama" || sent.Owner != "ada" || sent.Spec.Agent != "lab" || sent.Spec.Image != want.Image ||
		sent.Spec.Accelerator != want.Accelerator || sent.Spec.Resources.CPU != 4 ||
		sent.Spec.Resources.Memory != 16<<30 || sent.Replicas != 2 || !sent.MaySleep || sent.Sleep != 0 ||
		len(sent.Rules) != 1 {
		t.Errorf("sent %+v", sent)
	}
	if !slices.Equal(sent.Spec.Env, []session.EnvVar{{Name: "HF_TOKEN", Value: session.Hidden},
		{Name: "SEED", Value: "8"}}) {
		t.Errorf("sent the variables %+v", sent.Spec.Env)
	}
	serves := sent.Spec.Serving
	if serves.Port != 8000 || serves.Health.Path != "/ready" || !slices.Equal(serves.Command, []string{"serve", "me"}) {
		t.Errorf("sent %+v", serves)
	}
	for _, line := range []string{"resources.memory: 8g → 16g\n", "env.SEED: 7 → 8\n",
		"serving.health.path: none → /ready\n", "no room beside the old ones", "Needs 1 GPU on lab, 0 are free."} {
		if !strings.Contains(got.stderr, line) {
			t.Errorf("it says\n%s\nwithout %q", got.stderr, line)
		}
	}
	if got := f.run(t, "service", "update", "llama", "--from", "1", "--cpu", "2"); got.code != ExitOK ||
		sent.Spec.Image != "llama-server:old" || strings.Contains(got.stderr, "image") {
		t.Errorf("from an older one: code %d, %q, sent %+v", got.code, got.stderr, sent)
	}
	if got := f.run(t, "service", "update", "llama", "--from", "9"); got.code != ExitUsage {
		t.Errorf("from one that does not exist: code %d, %q", got.code, got.stderr)
	}
}

func TestWaitingForAServiceEndsAsItDoes(t *testing.T) {
	ready := func(s *api.Service) {
		s.State, s.Why, s.Live[0].Revision = session.ServiceReady, "All is well.", 3
		s.Live = s.Live[:1]
	}
	for name, test := range map[string]struct {
		now  func(*api.Service)
		code int
		says string
	}{
		"ready":       {ready, ExitOK, "llama: READY. All is well.\n"},
		"rolled back": {func(s *api.Service) { s.Revision = 2 }, ExitFailure, "llama keeps revision 2. 1 of 2"},
		"failed": {func(s *api.Service) {
			s.State = session.ServiceFailed
			s.Events = append([]session.ServiceEvent{{Kind: session.EventGaveUp}}, s.Events...)
		}, ExitFailure, "llama failed. "},
		"asleep":       {func(s *api.Service) { s.State = session.ServiceAsleep }, ExitOK, "llama: ASLEEP. "},
		"never":        {func(*api.Service) {}, ExitTimeout, "The deployment of llama did not happen within 1.5s."},
		"ready before": {func(s *api.Service) { ready(s); s.Live[0].Revision = 2 }, ExitTimeout, "did not happen"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sampleService()
			f, _ := servicePlane(t, &s)
			later := sampleService()
			later.Revision = 3
			test.now(&later)
			f.handle("GET /api/v1/services/{service}", func(w http.ResponseWriter, r *http.Request) {
				reply(w, http.StatusOK, later)
			})
			got := f.run(t, "service", "update", "llama", "--from", "2", "--cpu", "2", "--wait",
				"--wait-timeout", "1500ms")
			if got.code != test.code || !strings.Contains(got.stderr, test.says) {
				t.Errorf("code %d, %q; want %d and %q", got.code, got.stderr, test.code, test.says)
			}
		})
	}
}

func TestLogsOfAllReplicas(t *testing.T) {
	s := sampleService()
	f, _ := servicePlane(t, &s)
	replica := func(id session.ID, name string, ends bool) api.Session {
		one := api.Session{Session: session.Session{ID: id, Name: name, Status: session.Running, Agent: "lab",
			CreatedAt: noon, Times: session.Times{StartedAt: &noon}, Spec: session.Spec{Access: session.Access{
				Serving: &session.Serving{Service: "llama"}}}}, Type: "inference"}
		if ends {
			one.Status = session.Terminated
		}
		return one
	}
	f.sessions = append(sampleSessions(), replica("cccccccccccc", "llama-3", false),
		replica("bbbbbbbbbbbb", "llama-2", false), replica("aaaaaaaaaaaa", "llama-1", true))
	f.handle("GET /api/v1/sessions/{id}/logs", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("first of " + r.PathValue("id")[:1] + "\nlast, tail " + r.FormValue("tail")))
	})
	for want, args := range map[string][]string{
		"llama-2 | first of b\nllama-2 | last, tail 5\nllama-3 | first of c\nllama-3 | last, tail 5\n": {"--tail", "5"},
		"first of c\nlast, tail ": {"--replica", "3"},
		"first of a\nlast, tail ": {"--replica", "aaaaaaaaaaaa"},
	} {
		got := f.run(t, append([]string{"service", "logs", "llama"}, args...)...)
		if got.code != ExitOK || got.stdout != want {
			t.Errorf("%q prints %q, want %q (%q)", args, got.stdout, want, got.stderr)
		}
	}
	if got := f.run(t, "service", "logs", "llama", "--replica", "9"); got.code != ExitNotFound {
		t.Errorf("a replica that never was: code %d, %q", got.code, got.stderr)
	}
	f.sessions = f.sessions[:0]
	f.sessions = append(f.sessions, replica("aaaaaaaaaaaa", "llama-1", true))
	if got := f.run(t, "service", "logs", "llama"); got.stdout != "first of a\nlast, tail " ||
		!strings.Contains(got.stderr, "llama-1, which ended last") {
		t.Errorf("of a failed one: %q, %q", got.stdout, got.stderr)
	}
}

func TestAServiceIsCreatedFromItsRecipe(t *testing.T) {
	s := sampleService()
	f, sent := servicePlane(t, &s)
	path := filepath.Join(t.TempDir(), "s.yaml")
	const text = "name: llama\nreplicas: 3\nspec:\n  image: a\n  env: {HF_TOKEN: }\n  serving:\n    port: 9000\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.run(t, "service", "create", "-f", path); got.code != ExitInvalid ||
		!strings.Contains(got.stderr, "HF_TOKEN has no value") {
		t.Errorf("without its secret: code %d, %q", got.code, got.stderr)
	}
	got := runIn(t, f.home, map[string]string{"HF_TOKEN": "hush"}, "service", "create", "other", "-f", path,
		"--cpu", "2", "--", "serve", "me")
	if got.code != ExitOK || sent.Name != "other" || sent.Replicas != 3 || sent.Spec.Resources.CPU != 2 ||
		sent.Spec.Serving.Port != 9000 || sent.Spec.Env[0].Value != "hush" || len(sent.Spec.Serving.Command) != 2 {
		t.Errorf("code %d, %q, sent %+v", got.code, got.stderr, sent)
	}
	if err := os.WriteFile(path, []byte(text+"    prot: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.run(t, "service", "create", "-f", path); got.code != ExitInvalid ||
		!strings.Contains(got.stderr, "s.yaml, line 8") || !strings.Contains(got.stderr, "Did you mean port?") {
		t.Errorf("a wrong field: code %d, %q", got.code, got.stderr)
	}
	if got := f.run(t, "service", "create", "--image", "a"); got.code != ExitUsage {
		t.Errorf("without a name: code %d, %q", got.code, got.stderr)
	}
	f.handle("GET /api/v1/services/{service}/recipe", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.ServiceRecipe{Name: "llama", YAML: text, Secrets: []string{"HF_TOKEN"}})
	})
	if got := f.run(t, "service", "recipe", "llama"); got.stdout != text || !strings.Contains(got.stderr, "HF_TOKEN") {
		t.Errorf("the recipe is printed as %q, %q", got.stdout, got.stderr)
	}
}
