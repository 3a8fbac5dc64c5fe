package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// modelServer is llama.cpp's server in a session, reached through the guest as the apps of a session are.
type modelServer struct {
	*real
	client *http.Client
}

const modelPort = 8000

// serveModel launches a session and starts the server in it. The image has no shell.
func (r *real) serveModel(image string) modelServer {
	r.t.Helper()
	s := r.runs(session.Spec{Name: "model", Image: image, Resources: session.Resources{CPU: 1, Memory: gpu.GiB}})
	output, err := r.agent.Exec(r.t.Context(), s.ID, session.ExecRequest{Command: []string{"/app/llama-server",
		"--model", "/models/tiny.gguf", "--port", strconv.Itoa(modelPort), "--threads", "1", "--metrics"}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		output.Close()
		r.endAll()
	})
	go func() { _, _ = io.Copy(io.Discard, output) }() // the server blocks if nobody reads its output
	return modelServer{r, r.client(s.ID, modelPort)}
}

// request asks the server; a nil body is a GET.
func (m modelServer) request(ctx context.Context, path string, body any) (*http.Response, error) {
	method, data := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, err
		}
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://model"+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // the server closes a connection after each streamed answer and does not say so
	return m.client.Do(req)
}

func (m modelServer) awaitHealth() {
	m.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		status := 0
		answer, err := m.request(m.t.Context(), "/health", nil)
		if err == nil {
			status = answer.StatusCode
			answer.Body.Close()
		}
		if status == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("the model is not served: %d, %v", status, err)
		}
	}
}

// metric returns a counter of the server.
func (m modelServer) metric(name string) int {
	m.t.Helper()
	answer, err := m.request(m.t.Context(), "/metrics", nil)
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

func TestAModelServerInASession(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	m := newReal(t, t.TempDir(), asPerson).serveModel(image)
	m.awaitHealth()
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
