package agent

import (
	"context"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent/reclaim"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestRealIdleSessions(t *testing.T) {
	t.Parallel()
	enginetest.RequireDocker(t)
	r := newReal(t, t.TempDir())
	policy := &session.IdlePolicy{Network: session.Duration(time.Minute)}
	idle := r.awaitRunning(r.launch(session.Spec{Name: "idle", Lifetime: session.Lifetime{Idle: policy}}).ID)
	busy := r.awaitRunning(r.launch(session.Spec{Name: "busy", Lifetime: session.Lifetime{Idle: policy}}).ID)
	shown := watch(t, r.agent, idle.ID, "echo at the prompt")
	watch(t, r.agent, busy.ID, "sleep 600")

	ended := r.awaitEnd(idle.ID)
	if ended.Reason != session.ReasonIdle || ended.Status != session.Terminated {
		t.Errorf("the idle one ended as %s: %+v", ended.Reason, ended.Error)
	}
	if shown.shows("slipway keep idle") == 0 {
		t.Error("its terminal was told nothing")
	}
	if s, err := r.agent.Get(context.Background(), busy.ID); err != nil || s.Status != session.Running ||
		hasIdleWarning(s) || len(s.Idle) != 1 || !strings.Contains(s.Idle[0].Message, "sleep 600") {
		t.Errorf("the busy one is %s, judged %+v, %v", s.Status, s.Idle, err)
	}
}

// A notebook's server says by itself when its kernels last worked.
func TestRealKernelsTellWhenTheyWorked(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir())
	book := r.awaitRunning(r.launch(session.Spec{Image: enginetest.ImageNotebook,
		Resources: session.Resources{Memory: gpu.GiB}}).ID)
	ctx := context.Background()
	app, err := r.agent.StartApp(ctx, book.ID, session.AppRequest{App: "notebook"})
	if err != nil {
		t.Fatal(err)
	}
	client := r.client(book.ID, app.Port)
	defer client.CloseIdleConnections()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Jar = jar
	page, err := client.Get("http://localhost/tree") // it hands out the cookie that a change must show
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	request, err := http.NewRequest(http.MethodPost, "http://localhost/api/kernels",
		strings.NewReader(`{"name":"python3"}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, cookie := range jar.Cookies(request.URL) {
		if cookie.Name == "_xsrf" {
			request.Header.Set("X-XSRFToken", cookie.Value)
		}
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatalf("no kernel: %s", answer.Status)
	}
	guest := r.agent.guests.Now(book.ID, session.MainKernel)
	at, what, err := reclaim.KernelsOf(ctx, guest, app.Port, time.Now())
	if err != nil || time.Since(at).Abs() > time.Minute || !strings.Contains(what, "python3") {
		t.Errorf("kernels: %q at %s, %v", what, at, err)
	}
}
