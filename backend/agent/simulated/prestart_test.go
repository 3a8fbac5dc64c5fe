package simulated_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

// deployWith deploys a public service that does something before its server starts.
func (m machine) deployWith(name string, serving session.Serving, request gpu.Request) {
	m.Helper()
	serving.Port, serving.Health = 8000, lenient("/")
	_, err := m.DeployService(m.Context(), session.DeployRequest{Name: name,
		ServiceWish: session.ServiceWish{Replicas: 1, Public: true}, Spec: session.Spec{Image: "python:3.12",
			Accelerator: request, Access: session.Access{Serving: &serving}}})
	if err != nil {
		m.Fatal(err)
	}
}

func TestActionsComeBeforeTheServer(t *testing.T) {
	t.Parallel()
	m := open(t)
	m.deployWith("prepared", session.Serving{Command: []string{"httpd", "-p", "8000"},
		PreStart: []session.StartAction{{Action: "mkdir", Path: "www"}, {Action: "log", Message: "preparing"},
			{Action: "write_file", Path: "index.html", Body: "prepared\n"},
			{Action: "run_command", Command: []string{"cp", "index.html", "www/page.html"}}}}, gpu.Request{})
	m.await("prepared", is(session.ServiceReady))
	answer, err := m.client.Get("http://localhost/services/prepared/www/page.html")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "prepared\n" {
		t.Errorf("%d %q %v", answer.StatusCode, body, err)
	}
}

func TestAnActionThatFailsEndsTheReplicaAndSaysWhy(t *testing.T) {
	t.Parallel()
	m := open(t)
	m.deployWith("unprepared", session.Serving{Command: []string{"httpd", "-p", "8000"},
		PreStart: []session.StartAction{{Action: "run_command",
			Command: []string{"sh", "-c", "echo no such package; exit 7"}}}}, gpu.Request{})
	failed := m.await("unprepared", is(session.ServiceFailed))
	const want = "run_command, action 1 before the start, failed: sh ended with code 7: no such package"
	if !strings.Contains(failed.Why, want) {
		t.Errorf("it fails because %q", failed.Why)
	}
}

func TestAServerIsToldItsPartOfTheMemoryOfItsDevice(t *testing.T) {
	t.Parallel()
	m := open(t)
	m.deployWith("told", session.Serving{Command: []string{"sh", "-c", `echo "$0" "$SLIPWAY_GPU_FRACTION" >index.html
		exec httpd -p 8000`, session.GPUMemoryShare}}, gpu.Request{Shares: 300})
	m.await("told", is(session.ServiceReady))
	answer, err := m.client.Get("http://localhost/services/told/index.html")
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%+v %v", answer, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	told, fraction, _ := strings.Cut(strings.TrimSpace(string(body)), " ")
	if err != nil || told != fraction || !strings.HasPrefix(told, "0.2") {
		t.Errorf("the server is told %q, of %q", told, fraction)
	}
}
