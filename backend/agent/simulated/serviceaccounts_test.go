package simulated_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/engine"
	enginesim "slipway/backend/engine/sim"
	"slipway/backend/hostfs"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/backend/store"
	"slipway/gpu"
	"slipway/gpu/sim"
)

// place is a machine with one device whose agent is stopped and started again.
type place struct {
	dir   string
	began time.Time
}

// open starts the agent until the end of a test.
func (p place) open(t *testing.T) machine {
	t.Helper()
	books, err := store.Open(store.Config{Path: filepath.Join(p.dir, "agent.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = books.Close() })
	a := simulated.Open(t, func(c *agent.Config) {
		c.Dir, c.Store = p.dir, books
		c.Clock = pace.New(30, p.began, p.began)
		c.Host.Moment = func() gpu.Moment {
			now := c.Clock.Now()
			return gpu.Moment{BootID: "boot", Boot: now.Sub(p.began), Awake: now.Sub(p.began), Wall: now}
		}
		c.Devices.Source = sim.Open(sim.Config{Clock: c.Host.Moment})
		c.Host.Files = hostfs.FS{Root: filepath.Join(p.dir, "disk"), Home: "/home/ada"}
		if err := enginesim.MakeDisk(c.Host.Files.Root, "ada", 1); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		containers, err := enginesim.Open(enginesim.Config{Dir: filepath.Join(p.dir, "engine"), Data: p.dir,
			Instance: books.Instance(), Speed: 200, Clock: c.Clock})
		if err != nil {
			t.Fatal(err)
		}
		c.Engine = engine.Of(containers)
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.DialService(ctx)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return machine{t, a, &http.Client{Transport: transport, Timeout: patience}}
}

// model deploys a service that serves a simulated model on the device.
func (m machine) model(name, variant string) {
	m.Helper()
	_, err := m.DeployService(m.Context(), session.DeployRequest{Name: name,
		ServiceWish: session.ServiceWish{Replicas: 1}, Spec: session.Spec{Image: "python:3.12",
			Accelerator: gpu.Request{Devices: 1}, Access: session.Access{Serving: &session.Serving{Port: 8000,
				Health:  lenient("/health"),
				Command: []string{"llama-server", "--model", variant + ".gguf", "--port", "8000"}}}}})
	if err != nil {
		m.Fatal(err)
	}
}

func (m machine) token(service, name string) session.NewToken {
	m.Helper()
	token, err := m.AddServiceToken(m.Context(), service, session.TokenRequest{Name: name})
	if err != nil {
		m.Fatal(err)
	}
	return token
}

// chat asks a model and returns the tokens that it reports.
func (m machine) chat(service string, token session.NewToken, stream bool) (prompt, completion int64) {
	m.Helper()
	body, err := json.Marshal(map[string]any{"model": service, "stream": stream, "max_tokens": 12,
		"messages":       []map[string]string{{"role": "user", "content": "Hello there"}},
		"stream_options": map[string]bool{"include_usage": true}})
	if err != nil {
		m.Fatal(err)
	}
	req, err := http.NewRequestWithContext(m.Context(), http.MethodPost, "http://localhost/v1/chat/completions",
		strings.NewReader(string(body)))
	if err != nil {
		m.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Text)
	req.Header.Set("Content-Type", "application/json")
	answer, err := m.client.Do(req)
	if err != nil {
		m.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		m.Fatalf("%s answers %d %s, %v", service, answer.StatusCode, text, err)
	}
	for line := range strings.Lines(string(text)) {
		var part struct {
			Usage struct {
				Prompt     int64 `json:"prompt_tokens"`
				Completion int64 `json:"completion_tokens"`
			} `json:"usage"`
		}
		if json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &part) == nil && part.Usage.Prompt > 0 {
			prompt, completion = part.Usage.Prompt, part.Usage.Completion
		}
	}
	if prompt == 0 || completion == 0 {
		m.Errorf("it reports no tokens: %s", text)
	}
	return prompt, completion
}

// served are the accounts of a service: of each token by its name, of the replicas of each revision, and all of them.
func (m machine) served(service string) (tokens map[string]session.Requests, replicas map[int]session.ServiceUse,
	all session.ServiceUse) {
	m.Helper()
	rows, err := m.ServiceAccounts(m.Context(), session.AccountSpan{From: time.Now().Add(-24 * time.Hour)})
	if err != nil {
		m.Fatal(err)
	}
	tokens, replicas = map[string]session.Requests{}, map[int]session.ServiceUse{}
	for _, row := range rows {
		if row.Service != service || row.Owner != "ada" {
			m.Errorf("a row is %+v", row)
		}
		all.Add(row.ServiceUse)
		if row.Kind == session.AccountReplicas {
			use := replicas[row.Revision]
			use.Add(row.ServiceUse)
			replicas[row.Revision] = use
		} else {
			sum := tokens[row.TokenName]
			sum.Add(row.Requests)
			tokens[row.TokenName] = sum
		}
	}
	return tokens, replicas, all
}

// settled waits until all of some requests and revisions are counted: a device is sampled after it was used.
func (m machine) settled(service string, requests int64, revisions int) {
	m.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		_, replicas, all := m.served(service)
		used := 0
		for _, use := range replicas {
			if use.EnergyDynamic+use.EnergyIdle > 0 {
				used++
			}
		}
		if all.Total() >= requests && used >= revisions {
			return
		}
	}
	m.Errorf("%d requests to %d revisions are not counted", requests, revisions)
}

func TestAccountsOfAServiceOutliveItsTokensItsRevisionsAndIt(t *testing.T) {
	t.Parallel()
	p := place{t.TempDir(), time.Now()}
	var editor, script session.NewToken
	var prompt, completion, requests int64
	ask := func(m machine, token session.NewToken, stream bool) {
		asked, made := m.chat("llama", token, stream)
		prompt, completion, requests = prompt+asked, completion+made, requests+1
	}
	check := func(m machine, ofEditor, ofScript int64, revisions int) {
		m.Helper()
		m.settled("llama", requests, revisions)
		tokens, replicas, all := m.served("llama")
		if tokens["editor"].Answered != ofEditor || tokens["script"].Answered != ofScript || len(tokens) != 2 {
			m.Errorf("by token: %+v", tokens)
		}
		if all.Answered != requests || all.Prompt != prompt || all.Completion != completion || all.Failed != 0 {
			m.Errorf("in all %+v, want %d requests, %d and %d tokens", all.RequestCounts, requests, prompt, completion)
		}
		if all.FirstWord.Count() == 0 || all.FirstWord.Count() >= requests || all.Whole.Count() != requests ||
			all.BytesIn == 0 || all.BytesOut <= all.BytesIn {
			m.Errorf("in all %+v", all)
		}
		for revision, use := range replicas {
			if use.Total() != 0 || use.AllocGPUMs <= 0 || use.AllocCPUMs <= 0 ||
				use.EnergyDynamic+use.EnergyIdle <= 0 {
				m.Errorf("the replicas of revision %d: %+v", revision, use.ReplicaUse)
			}
		}
		if wh := all.WhPerThousandTokens(); wh == nil || *wh <= 0 {
			m.Errorf("energy for tokens is unknown")
		}
	}
	t.Run("with two tokens", func(t *testing.T) {
		m := p.open(t)
		m.model("llama", "first")
		editor, script = m.token("llama", "editor"), m.token("llama", "script")
		m.await("llama", is(session.ServiceReady))
		for i := range 4 {
			ask(m, editor, i%2 == 0)
		}
		ask(m, script, true)
		check(m, 4, 1, 1)
		traffic := m.await("llama", is(session.ServiceReady)).Traffic
		if traffic.Requests != requests || traffic.Completion != completion {
			t.Errorf("the service shows %+v", traffic)
		}
		if err := m.RevokeServiceToken(t.Context(), "llama", script.ID); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("after a restart, with another revision", func(t *testing.T) {
		m := p.open(t)
		m.await("llama", is(session.ServiceReady))
		check(m, 4, 1, 1)
		ask(m, editor, false)
		m.model("llama", "second")
		m.await("llama", func(s session.Service) bool { return s.State == session.ServiceReady && s.Revision == 2 })
		ask(m, editor, true)
		check(m, 6, 1, 2)
		if err := m.RemoveService(t.Context(), "llama"); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			list, err := m.ListServices(t.Context())
			if err != nil || time.Now().After(end) {
				t.Fatalf("%+v, %v", list, err)
			}
			live, err := m.List(t.Context(), session.Filter{})
			if err != nil {
				t.Fatal(err)
			}
			runs := slices.ContainsFunc(live, func(s session.Session) bool { return !s.Status.Terminal() })
			if len(list) == 0 && !runs {
				break
			}
		}
	})
	t.Run("after it was removed", func(t *testing.T) {
		m := p.open(t)
		check(m, 6, 1, 2)
	})
}
