package shell

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/backend/pace"
)

func TestAModelIsServedUntilTheProcessEnds(t *testing.T) {
	for name, argv := range map[string][]string{
		"tiny.gguf": {"/app/llama-server", "--threads", "2", "--model", "/models/tiny.gguf", "--port=8123"},
		"org/tiny":  {"vllm", "serve", "org/tiny", "--max-model-len", "4096", "--port", "8123"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Clock = pace.New(60, time.Now(), time.Now())
			var log bytes.Buffer
			job, err := Start(w, JobConfig{Argv: argv, Output: &log})
			if err != nil {
				t.Fatal(err)
			}
			client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _,
				_ string) (net.Conn, error) {
				return w.Dial(ctx, 8123)
			}}}
			defer client.CloseIdleConnections()
			ask := func(path string) (status int, body string) {
				answer, err := client.Get("http://session" + path)
				if err != nil {
					return 0, err.Error()
				}
				text, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Error(err)
				}
				if err := answer.Body.Close(); err != nil {
					t.Error(err)
				}
				return answer.StatusCode, string(text)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if status, body := ask("/health"); status == http.StatusOK {
					break
				} else if time.Now().After(end) {
					t.Fatal(body)
				}
			}
			if _, models := ask("/v1/models"); !strings.Contains(models, `"id":"`+name+`"`) {
				t.Errorf("it serves %s", models)
			}
			streams := make(chan error)
			go func() {
				answer, err := client.Post("http://session/v1/completions", "application/json",
					strings.NewReader(`{"prompt":"a","stream":true,"ignore_eos":true}`))
				streams <- err
				if err == nil {
					_, err = io.ReadAll(answer.Body)
					streams <- err
				}
			}()
			if err := <-streams; err != nil {
				t.Fatal(err)
			}
			for _, p := range w.Processes() {
				if strings.Contains(p.Command, "tiny") && p.Command == strings.Join(argv, " ") && p.TTY == "?" {
					w.Kill(p.PID)
				}
			}
			if err := <-streams; err == nil {
				t.Error("a stream that is cut looks complete")
			}
			if code := job.Wait(); code == 0 {
				t.Error("it ended with 0")
			}
			for _, line := range []string{"server is listening on http://127.0.0.1:8123\n",
				"request: GET /v1/models 200\n", "request: POST /v1/completions cancelled\n"} {
				if !strings.Contains(log.String(), line) {
					t.Errorf("the log lacks %q: %q", line, log.String())
				}
			}
			if ports := w.Listening(); len(ports) > 0 {
				t.Errorf("it still listens on %v", ports)
			}
		})
	}
}

func TestAModelServerNeedsAModel(t *testing.T) {
	for script, want := range map[string]string{
		"llama-server --port 8123": "usage: llama-server --model FILE [--port PORT] [--alias NAME]\n",
		"vllm serve":               "usage: vllm serve MODEL [--port PORT] [--served-model-name NAME]\n",
		"llama-server -m a.gguf --port 80": "loading model a.gguf (simulated: nothing is computed)\n" +
			"llama-server: the port must be a number from 1024 to 65535\n",
	} {
		if got, code := run(t, newWorld(t), script); got != want || code == 0 {
			t.Errorf("%s: %q, %d", script, got, code)
		}
	}
}
