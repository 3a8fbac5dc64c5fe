//go:build linux

package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"slipway/backend/api"
	"slipway/backend/client"
	"slipway/backend/hub"
	"slipway/backend/local"
	"slipway/backend/place"
	"slipway/backend/service"
	"slipway/backend/session"
	"slipway/backend/terminal"
)

// running is a control plane of a test.
type running struct {
	service.Ready
	home  place.Home
	token string
	stop  context.CancelFunc
	done  chan error
}

// start serves in dir on the simulated engine until the test ends.
func start(t *testing.T, dir string, port int) *running {
	t.Helper()
	return startOn(t, dir, local.EngineSim, port)
}

// startOn serves in dir until stop is called or the test ends.
func startOn(t *testing.T, dir, engine string, port int) *running {
	t.Helper()
	return startBy(t, dir, func(ctx context.Context, ready func(service.Ready)) error {
		return service.Run(ctx, service.Config{Home: place.Home{Dir: dir}, Engine: engine, Port: port, Ready: ready})
	})
}

// startBy has serve serve in dir until stop is called or the test ends.
func startBy(t *testing.T, dir string, serve func(context.Context, func(service.Ready)) error) *running {
	t.Helper()
	r := &running{home: place.Home{Dir: dir}, done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	ready := make(chan service.Ready, 1)
	go func() { r.done <- serve(ctx, func(told service.Ready) { ready <- told }) }()
	t.Cleanup(func() { r.end(t) })
	select {
	case r.Ready = <-ready:
	case err := <-r.done:
		r.done <- err
		t.Fatalf("serve ended: %v", err)
	case <-time.After(patience):
		t.Fatal("serve does not answer")
	}
	var err error
	if r.token, err = r.home.Token(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end stops the control plane and waits for it; a second call does nothing.
func (r *running) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err, open := <-r.done:
		if open {
			close(r.done)
		}
		if err != nil {
			t.Errorf("serve ended with %v", err)
		}
	case <-time.After(patience):
		t.Error("serve does not end")
	}
}

func (r *running) header() http.Header {
	return http.Header{"Authorization": {"Bearer " + r.token}}
}

// answer sends a request and returns the status and the body of what comes.
func answer(t *testing.T, client *http.Client, method, address, body string, header http.Header) (int, []byte) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = header
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, data
}

func (r *running) call(t *testing.T, method, path, body string, out any) int {
	t.Helper()
	status, data := answer(t, http.DefaultClient, method, r.URL+path, body, r.header())
	if out != nil {
		if err := json.Unmarshal(data, out); err != nil {
			t.Fatalf("%s %s answered %s", method, path, data)
		}
	}
	return status
}

// until polls a session until it has the status, across processes' borders.
func (r *running) until(t *testing.T, id, status string) api.Session {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var s api.Session
		r.call(t, "GET", "/api/v1/sessions/"+id, "", &s)
		if string(s.Status) == status {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("the session is %s, not %s: %+v", s.Status, status, s.Error)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestServeIsFoundWhileItAnswersAndNotAfter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	r := start(t, dir, 0)
	found, err := client.Connect(t.Context(), r.home)
	if err != nil || found.URL != r.URL || found.Serving.PID != os.Getpid() || found.Serving.Engine != "sim" {
		t.Fatalf("found %+v, %v", found, err)
	}
	for _, name := range []string{"token", "serve.json", "slipway.log", "sim/agent.db", "sim/hub.db"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "agent.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the simulated engine left books among the real ones: %v", err)
	}
	t.Run("a second one is refused", func(t *testing.T) {
		err := service.Run(t.Context(), service.Config{Home: r.home, Engine: local.EngineSim})
		if session.CodeOf(err) != "server_start_conflict" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("the link logs a browser in", func(t *testing.T) {
		response, err := http.Get(r.LoginURL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 200 || len(response.Cookies()) != 1 {
			t.Errorf("%d with cookies %v", response.StatusCode, response.Cookies())
		}
	})
	t.Run("it is on loopback only", func(t *testing.T) {
		port := strings.TrimPrefix(r.URL, "http://127.0.0.1:")
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, address := range addresses {
			ip := address.(*net.IPNet).IP
			if ip.IsLoopback() || ip.To4() == nil {
				continue
			}
			if conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip.String(), port), time.Second); err == nil {
				conn.Close()
				t.Errorf("it answers on %s", ip)
			}
		}
	})
	t.Run("shutdown ends it", func(t *testing.T) {
		if status := r.call(t, "POST", "/api/v1/shutdown", "", nil); status != 202 {
			t.Fatalf("answers %d", status)
		}
		if err := <-r.done; err != nil {
			t.Fatalf("ended with %v", err)
		}
		close(r.done)
		if _, err := r.home.Serving(); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("serve.json is left: %v", err)
		}
	})
	t.Run("the next one has the same token and port", func(t *testing.T) {
		next := start(t, dir, 0)
		if next.token != r.token || next.URL != r.URL {
			t.Errorf("%s with another token or at another place than %s", next.URL, r.URL)
		}
	})
}

// installed returns an image that the simulated machine has.
func (r *running) installed(t *testing.T) string {
	t.Helper()
	var images []hub.Image
	r.call(t, "GET", "/api/v1/images", "", &images)
	for _, image := range images {
		if len(image.Refs) > 0 {
			return image.Refs[0]
		}
	}
	t.Fatal("the simulated machine has no image")
	return ""
}

func TestSessionOnTheSimulatedEngineOutlivesServe(t *testing.T) {
	dir := t.TempDir()
	r := start(t, dir, 0)
	image := r.installed(t)
	var launched api.Session
	if status := r.call(t, "POST", "/api/v1/sessions", fmt.Sprintf(`{"key":"k","spec":{"name":"demo","image":%q}}`,
		image), &launched); status != 201 {
		t.Fatalf("launch answers %d", status)
	}
	r.until(t, string(launched.ID), "RUNNING")
	if got := r.shell(t, string(launched.ID), "echo $((6*7))\n", "42"); !strings.Contains(got, "42") {
		t.Errorf("the shell says %q", got)
	}
	r.end(t)
	next := start(t, dir, 0)
	s := next.until(t, string(launched.ID), "RUNNING")
	if s.Name != "demo" || s.Image != image {
		t.Errorf("session %+v", s)
	}
	var again api.Session
	next.call(t, "POST", "/api/v1/sessions", fmt.Sprintf(`{"key":"k","spec":{"name":"demo","image":%q}}`, image),
		&again)
	if again.ID != launched.ID {
		t.Errorf("the key led to another session after the restart: %s", again.ID)
	}
	var recents []hub.Recent
	if next.call(t, "GET", "/api/v1/recents", "", &recents); len(recents) != 1 || recents[0].Name != "demo" {
		t.Errorf("recents %+v", recents)
	}
	next.call(t, "POST", "/api/v1/sessions/"+string(launched.ID)+"/terminate", "", nil)
	if s := next.until(t, string(launched.ID), "TERMINATED"); s.Reason != "user-requested" {
		t.Errorf("reason %q", s.Reason)
	}
}

// shell opens a terminal, types input and returns the output up to want.
func (r *running) shell(t *testing.T, id, input, want string) string {
	t.Helper()
	var opened session.Terminal
	if status := r.call(t, "POST", "/api/v1/sessions/"+id+"/terminals", `{"cols":80,"rows":24}`,
		&opened); status != 201 {
		t.Fatalf("opening a terminal answers %d", status)
	}
	conn, _, err := websocket.DefaultDialer.DialContext(t.Context(),
		"ws"+strings.TrimPrefix(r.URL, "http")+"/api/v1/sessions/"+id+"/terminals/"+opened.ID+"/attach?client=test",
		r.header())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	frame := terminal.Frame{Type: terminal.FrameInput, Payload: append(make([]byte, 8), input...)}
	if err := conn.WriteMessage(websocket.BinaryMessage, frame.Message()); err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	for !strings.Contains(output.String(), want) {
		_, message, err := conn.ReadMessage()
		if err != nil {
			t.Fatalf("after %q: %v", output.String(), err)
		}
		if frame, err := terminal.ParseMessage(message); err == nil && frame.Type == terminal.FrameData {
			_, data, dataErr := frame.Data()
			if dataErr != nil {
				t.Fatal(dataErr)
			}
			output.Write(data)
		}
	}
	return output.String()
}

func TestDoctorGivesEachFaultARemedy(t *testing.T) {
	r := start(t, t.TempDir(), 0)
	var checks []session.Check
	if status := r.call(t, "GET", "/api/v1/doctor", "", &checks); status != 200 || len(checks) < 4 {
		t.Fatalf("%d %+v", status, checks)
	}
	for _, c := range checks {
		if c.ID == "" || c.Title == "" || c.Text == "" || c.Result == "failed" && c.Remedy == "" {
			t.Errorf("check %+v is not whole", c)
		}
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
