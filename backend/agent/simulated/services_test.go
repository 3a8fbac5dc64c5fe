package simulated_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/pace"
	"slipway/backend/session"
	"slipway/gpu"
	"slipway/gpu/sim"
)

const patience = 30 * time.Second

// machine is a simulated machine whose time is thirty times as fast, and a client of its services.
type machine struct {
	*testing.T
	*agent.Agent
	client *http.Client
}

func open(t *testing.T) machine {
	t.Helper()
	a := simulated.Open(t, func(c *agent.Config) {
		began := time.Now()
		c.Clock = pace.New(30, began, began)
		c.Host.Moment = func() gpu.Moment {
			now := c.Clock.Now()
			return gpu.Moment{BootID: "boot", Boot: now.Sub(began), Awake: now.Sub(began), Wall: now}
		}
		c.Devices.Source = sim.Open(sim.Config{Clock: c.Host.Moment})
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.DialService(ctx)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return machine{t, a, &http.Client{Transport: transport, Timeout: patience}}
}

// lenient is a health check that leaves room for a slow computer, a second of which is half a minute of the machine.
func lenient(path string) session.Health {
	return session.Health{Path: path, MaxRetries: 1000, MaxWaitTime: session.Duration(time.Hour),
		InitialDelay: session.Duration(time.Hour)}
}

func (m machine) deploy(name string, wish session.ServiceWish, devices int) {
	m.Helper()
	wish.Public = true
	_, err := m.DeployService(m.Context(), session.DeployRequest{Name: name, ServiceWish: wish, Spec: session.Spec{
		Image: "python:3.12", Accelerator: gpu.Request{Devices: devices},
		Access: session.Access{Serving: &session.Serving{Port: 8000, Command: []string{"httpd", "-p", "8000"},
			Health: lenient("/")}}}})
	if err != nil {
		m.Fatal(err)
	}
}

func (m machine) await(name string, done func(session.Service) bool) session.Service {
	m.Helper()
	var last session.Service
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		list, err := m.ListServices(m.Context())
		if err != nil {
			m.Fatal(err)
		}
		i := slices.IndexFunc(list, func(s session.Service) bool { return s.Name == name })
		if i >= 0 && done(list[i]) {
			return list[i]
		} else if i >= 0 {
			last = list[i]
		}
	}
	m.Fatalf("%s is %+v", name, last)
	return last
}

func is(state session.ServiceState) func(session.Service) bool {
	return func(s session.Service) bool { return s.State == state }
}

// get asks a service and returns the status of its answer.
func (m machine) get(name string) int {
	m.Helper()
	answer, err := m.client.Get("http://localhost/services/" + name + "/")
	if err != nil {
		m.Error(err)
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

func TestAServiceSleepsAndIsWokenByARequest(t *testing.T) {
	t.Parallel()
	m := open(t)
	m.deploy("sleeper", session.ServiceWish{Replicas: 2, Sleep: session.Duration(2 * time.Minute)}, 0)
	m.await("sleeper", is(session.ServiceReady))
	asleep := m.await("sleeper", func(s session.Service) bool {
		return s.State == session.ServiceAsleep && len(s.Live) == 0
	})
	t.Log(asleep.Why)
	if got := m.get("sleeper"); got != http.StatusOK {
		t.Errorf("the request that wakes it is answered with %d", got)
	}
	m.await("sleeper", is(session.ServiceReady))
}

func TestAServiceThatNeverAnswersGivesUpAndSaysWhy(t *testing.T) {
	t.Parallel()
	m := open(t)
	_, err := m.DeployService(t.Context(), session.DeployRequest{Name: "broken",
		ServiceWish: session.ServiceWish{Replicas: 1}, Spec: session.Spec{Image: "python:3.12",
			Access: session.Access{Serving: &session.Serving{Port: 8000, Command: []string{"sh", "-c",
				"echo no weights here; exit 3"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	failed := m.await("broken", is(session.ServiceFailed))
	t.Log(failed.Why)
	again := true
	if _, err := m.ChangeService(t.Context(), "broken", session.ServiceChange{TryAgain: again}); err != nil {
		t.Fatal(err)
	}
	m.await("broken", is(session.ServiceDeploying))
}

func TestAServiceIsRemovedOnceItHasAnswered(t *testing.T) {
	t.Parallel()
	m := open(t)
	m.model("llama", "any")
	token := m.token("llama", "editor")
	m.await("llama", is(session.ServiceReady))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/chat/completions",
		strings.NewReader(`{"model": "llama", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Text)
	req.Header.Set("Content-Type", "application/json")
	answer, err := m.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := m.RemoveService(t.Context(), "llama"); err != nil { // the answer has begun
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("it answers %q, %v", text, err)
	}
	// Not only after the grace for requests under way, which is 20 s at this speed.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		live, err := m.List(t.Context(), session.Filter{})
		if err != nil || time.Now().After(end) {
			t.Fatalf("%+v, %v", live, err)
		}
		if !slices.ContainsFunc(live, func(s session.Session) bool { return !s.Status.Terminal() }) {
			break
		}
	}
}
