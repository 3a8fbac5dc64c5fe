//go:build unix

package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// modelServer is a service whose replicas are llama.cpp's server, reached through the router of the agent.
type modelServer struct {
	*real
	name, token string
	client      *http.Client
}

const modelPort = 8000

// modelSpec is the spec of a replica. The image has no shell.
func modelSpec(image string, more ...string) session.Spec {
	return session.Spec{Image: image, Type: session.Inference,
		Resources: session.Resources{CPU: 1, Memory: gpu.GiB},
		Access: session.Access{Serving: &session.Serving{Port: modelPort, Command: append([]string{
			"/app/llama-server", "--model", "/models/tiny.gguf", "--port", strconv.Itoa(modelPort), "--threads", "1",
			"--metrics"}, more...)}}}
}

// serveModel deploys a service and makes a token for it.
func (r *real) serveModel(name, image string, wish session.ServiceWish) modelServer {
	r.t.Helper()
	return r.serve(name, modelSpec(image), wish)
}

func (r *real) serve(name string, spec session.Spec, wish session.ServiceWish) modelServer {
	r.t.Helper()
	if _, err := r.agent.DeployService(r.t.Context(), session.DeployRequest{Name: name, Spec: spec,
		ServiceWish: wish}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := r.agent.RemoveService(context.Background(), name); err != nil {
			r.t.Error(err)
		}
		r.endAll()
	})
	token, err := r.agent.AddServiceToken(r.t.Context(), name, session.TokenRequest{Name: "test"})
	if err != nil {
		r.t.Fatal(err)
	}
	return modelServer{real: r, name: name, token: token.Text, client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return r.agent.DialService(ctx) }}}}
}

// service returns the service as it is now.
func (m modelServer) service() session.Service {
	m.t.Helper()
	list, err := m.agent.ListServices(m.t.Context())
	if err != nil {
		m.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(s session.Service) bool { return s.Name == m.name })
	if i < 0 {
		m.t.Fatalf("there is no service %s", m.name)
	}
	return list[i]
}

// awaitService waits until the service is as it should be.
func (m modelServer) awaitService(what string, done func(session.Service) bool) session.Service {
	m.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := m.service()
		if done(s) {
			return s
		}
		if time.Now().After(end) {
			m.t.Fatalf("the service is not %s: %+v", what, s)
		}
	}
}

// request asks the server; a nil body is a GET.
func (m modelServer) request(ctx context.Context, path string, body any) (*http.Response, error) {
	if body == nil {
		return m.send(ctx, http.MethodGet, path, "", nil)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return m.send(ctx, http.MethodPost, path, "application/json", bytes.NewReader(data))
}

func (m modelServer) send(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, body)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	return m.client.Do(req)
}

// metric returns a counter of the server.
func (m modelServer) metric(name string) int {
	m.t.Helper()
	answer, err := m.request(m.t.Context(), "/services/"+m.name+"/metrics", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^llamacpp:` + name + ` (\d+)`).FindSubmatch(text)
	if found == nil {
		m.t.Fatalf("there is no %s in %s", name, text)
	}
	value, err := strconv.Atoi(string(found[1]))
	if err != nil {
		m.t.Fatal(err)
	}
	return value
}

// chatChunk is one event of a streamed answer.
type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *struct {
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
}

// chat asks for an answer of so many tokens, in events.
func (m modelServer) chat(ctx context.Context, tokens int) *http.Response {
	m.t.Helper()
	answer, err := m.request(ctx, "/v1/chat/completions", map[string]any{
		"model":      m.name,
		"messages":   []map[string]string{{"role": "user", "content": "sing of the sea"}},
		"max_tokens": tokens, "ignore_eos": true, "temperature": 0, "stream": true,
		"stream_options": map[string]bool{"include_usage": true},
	})
	if err != nil {
		m.t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); answer.StatusCode != http.StatusOK ||
		!strings.HasPrefix(kind, "text/event-stream") {
		m.t.Fatalf("the answer is %s, %s", answer.Status, kind)
	}
	return answer
}

// events calls each with the data of every event until it returns false.
func (m modelServer) events(body io.Reader, each func(data string) bool) {
	m.t.Helper()
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is && !each(data) {
			return
		}
	}
	if err := lines.Err(); err != nil {
		m.t.Error(err)
	}
}

// answered reads a whole answer and returns its text and how many tokens the server says it has.
func (m modelServer) answered(tokens int) (text string, counted int) {
	m.t.Helper()
	answer := m.chat(m.t.Context(), tokens)
	defer answer.Body.Close()
	done := false
	m.events(answer.Body, func(data string) bool {
		if done = data == "[DONE]"; done {
			return true
		}
		var chunk chatChunk
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			m.t.Fatalf("%s: %v", data, err)
		}
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
		}
		if chunk.Usage != nil {
			counted = chunk.Usage.Completion
		}
		return true
	})
	if !done {
		m.t.Errorf("the answer does not end: %q", text)
	}
	return text, counted
}

func TestAServiceAnswers(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	m := newReal(t, t.TempDir(), asPerson).serveModel("tiny", image, session.ServiceWish{Replicas: 1})
	m.awaitService("ready", func(s session.Service) bool { return s.State == session.ServiceReady })
	const made = "tokens_predicted_total"

	before := m.metric(made)
	text, counted := m.answered(40)
	if words := strings.Fields(text); len(words) < 20 || counted != 40 {
		t.Errorf("40 tokens are %d, and %q", counted, text)
	}
	if again, _ := m.answered(40); again != text {
		t.Errorf("the same question is answered with %q and %q", text, again)
	}
	if total := m.metric(made) - before; total != 80 {
		t.Errorf("the server made %d tokens for two answers of 40", total)
	}

	// Whoever leaves in mid-stream frees the server, although guest and agent are in between.
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	const long = 3000
	answer := m.chat(ctx, long)
	seen := 0
	m.events(answer.Body, func(string) bool { seen++; return seen < 5 })
	leave()
	answer.Body.Close()
	left := time.Now()
	for m.metric("requests_processing") != 0 {
		if time.Since(left) > patience {
			t.Fatal("the server still works for somebody who has left")
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Logf("it noticed within %s", time.Since(left))
	if total := m.metric(made) - before - 80; total >= long {
		t.Errorf("it made all %d tokens", total)
	}
}
