//go:build linux

package backend

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/engine/enginetest"
	"slipway/backend/local"
)

// browser reaches names below localhost on this computer and keeps cookies by
// name, as a real one does.
func browser(t *testing.T) (*http.Client, *websocket.Dialer) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{}).DialContext(ctx, network, "127.0.0.1:"+port)
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}, &websocket.Dialer{Jar: jar, NetDialContext: dial}
}

// fetch is one request of a page of that origin.
func fetch(t *testing.T, client *http.Client, method, address, body string, out any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, cookie := range client.Jar.Cookies(r.URL) {
		if cookie.Name == "_xsrf" {
			r.Header.Set("X-XSRFToken", cookie.Value)
		}
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 400 {
		t.Fatalf("%s %s: %d %.500s, %v", method, address, response.StatusCode, data, err)
	}
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s %s: %.500s: %v", method, address, data, err)
		}
	}
}

func TestNotebookInAContainerRunsACellThroughItsOwnName(t *testing.T) {
	t.Setenv("DOCKER_HOST", enginetest.RequireDocker(t))
	r := startOn(t, t.TempDir(), local.EngineDocker, 0)
	var launched api.Session
	if status := r.call(t, "POST", "/api/v1/sessions",
		fmt.Sprintf(`{"spec":{"image":%q,"resources":{"cpu":1,"memory":"768m"}}}`, enginetest.ImageNotebook),
		&launched); status != 201 {
		t.Fatalf("launch answers %d", status)
	}
	t.Cleanup(func() {
		request, err := http.NewRequest("POST", r.URL+"/api/v1/sessions/"+string(launched.ID)+"/terminate",
			strings.NewReader(`{"forced":true}`))
		if err != nil {
			t.Fatal(err)
		}
		request.Header = r.header()
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
		}
		waitGone(t, r, string(launched.ID))
	})
	r.until(t, string(launched.ID), "RUNNING")
	opened := r.open(t, string(launched.ID), "notebook")
	client, dialer := browser(t)
	fetch(t, client, "GET", opened.URL, "", nil)
	origin := strings.TrimSuffix(opened.App.URL, "/")
	fetch(t, client, "GET", origin+"/tree", "", nil)
	var kernel struct {
		ID string `json:"id"`
	}
	fetch(t, client, "POST", origin+"/api/kernels", "{}", &kernel)
	code := "print(open('/sys/fs/cgroup/memory/memory.limit_in_bytes').read() if " +
		"__import__('os').path.exists('/sys/fs/cgroup/memory') else open('/sys/fs/cgroup/memory.max').read())"
	if got := runCell(t, dialer, origin, kernel.ID, code); strings.TrimSpace(got) != "805306368" {
		t.Errorf("the cell prints %q, want the 768 MiB that were asked for", got)
	}
}

// open opens an app of a session. Where all processors are taken, a program may need longer than the time in which it
// must answer. It is then opened again, as the error suggests.
func (r *running) open(t *testing.T, id, app string) (opened api.Opened) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		status := r.call(t, "POST", "/api/v1/sessions/"+id+"/apps/"+app+"/open", "{}", &opened)
		if status == 200 {
			return opened
		}
		if status != http.StatusGatewayTimeout || time.Now().After(deadline) {
			t.Fatalf("open answers %d: %+v", status, opened)
		}
	}
}

// runCell executes code in a kernel over its WebSocket and returns what it
// prints, or the traceback.
func runCell(t *testing.T, dialer *websocket.Dialer, origin, kernel, code string) string {
	t.Helper()
	parsed, err := url.Parse(origin)
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := dialer.DialContext(t.Context(), "ws://"+parsed.Host+"/api/kernels/"+kernel+"/channels",
		http.Header{"Origin": {origin}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	request := map[string]any{
		"channel": "shell", "parent_header": map[string]any{}, "metadata": map[string]any{},
		"header": map[string]any{"msg_id": "m1", "msg_type": "execute_request", "session": "s1", "username": "",
			"version": "5.3"},
		"content": map[string]any{"code": code, "silent": false, "store_history": true, "allow_stdin": false,
			"stop_on_error": true},
	}
	if err := conn.WriteJSON(request); err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	for {
		var message struct {
			Header struct {
				Type string `json:"msg_type"`
			} `json:"header"`
			Parent struct {
				ID string `json:"msg_id"`
			} `json:"parent_header"`
			Content struct {
				Text      string   `json:"text"`
				Traceback []string `json:"traceback"`
				State     string   `json:"execution_state"`
			} `json:"content"`
		}
		if err := conn.ReadJSON(&message); err != nil {
			t.Fatalf("after %q: %v", printed.String(), err)
		}
		if message.Parent.ID != "m1" {
			continue
		}
		switch message.Header.Type {
		case "stream":
			printed.WriteString(message.Content.Text)
		case "error":
			return strings.Join(message.Content.Traceback, "\n")
		case "status": // after all that is printed; the reply comes on another channel, perhaps before it
			if message.Content.State == "idle" {
				return printed.String()
			}
		}
	}
}

// waitGone waits until a session has ended.
func waitGone(t *testing.T, r *running, id string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		request, err := http.NewRequest("GET", r.URL+"/api/v1/sessions/"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header = r.header()
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var s api.Session
		err = json.NewDecoder(response.Body).Decode(&s)
		response.Body.Close()
		if err == nil && s.TerminatedAt != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("the session %s does not end", id)
}
