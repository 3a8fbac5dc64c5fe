//go:build unix

package agent

import (
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/agent/devices"
	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
	"slipway/gpu"
)

// load is what clients of a service got that asked it without a pause.
type load struct {
	mu      sync.Mutex // guards the rest
	whole   int
	failed  []string
	stopped chan struct{}
	clients sync.WaitGroup
}

// ask has so many clients ask the service, plain requests and streams in turn, until the load is ended.
func (m modelServer) ask(clients int) *load {
	l := &load{stopped: make(chan struct{})}
	for n := range clients {
		l.clients.Go(func() {
			for i := n; ; i++ {
				select {
				case <-l.stopped:
					return
				default:
				}
				wrong := m.askOnce(i%2 == 0)
				l.mu.Lock()
				if wrong == "" {
					l.whole++
				} else {
					l.failed = append(l.failed, wrong)
				}
				l.mu.Unlock()
			}
		})
	}
	return l
}

// askOnce asks for a few words and returns what is wrong with the answer.
func (m modelServer) askOnce(stream bool) string {
	answer, err := m.request(m.t.Context(), "/v1/chat/completions", map[string]any{"model": m.name, "max_tokens": 8,
		"ignore_eos": true, "stream": stream, "messages": []map[string]string{{"role": "user", "content": "sing"}}})
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case answer.StatusCode != http.StatusOK:
		return answer.Status + " " + string(text)
	case err != nil:
		return err.Error()
	case stream && !strings.HasSuffix(string(text), "data: [DONE]\n\n"):
		return "cut short: " + string(text)
	case !stream && !json.Valid(text):
		return "not JSON: " + string(text)
	}
	return ""
}

// end ends the load and returns how many requests were answered and how the others failed.
func (l *load) end() (whole int, failed []string) {
	close(l.stopped)
	l.clients.Wait()
	return l.whole, l.failed
}

// answered waits until more requests were answered.
func (l *load) answered(t *testing.T, more int) {
	t.Helper()
	count := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.whole
	}
	for from, end := count(), time.Now().Add(patience); count() < from+more; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d requests were answered, want %d more", count()-from, more)
		}
	}
}

func healthy(s session.Service, revision int) (n int) {
	for _, r := range s.Live {
		if r.State == session.ReplicaHealthy && r.Revision == revision {
			n++
		}
	}
	return n
}

// TestAServiceLosesNoRequest replaces, kills and breaks replicas of a real model server while clients ask it.
func TestAServiceLosesNoRequest(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	m := newReal(t, t.TempDir(), asPerson).serveModel("tiny", image, session.ServiceWish{Replicas: 2, Retry: true})
	ready := func(revision int) func(session.Service) bool {
		return func(s session.Service) bool {
			return s.State == session.ServiceReady && healthy(s, revision) == 2 && len(s.Live) == 2
		}
	}
	m.awaitService("ready", ready(1))
	const clients = 4

	t.Run("when another revision takes its place", func(t *testing.T) {
		m := m.within(t)
		l := m.ask(clients)
		l.answered(t, 20)
		m.deploy(modelSpec(image, "--seed", "7"))
		m.awaitService("updated", ready(2))
		l.answered(t, 20)
		if whole, failed := l.end(); len(failed) > 0 {
			t.Errorf("%d of %d failed: %s", len(failed), whole+len(failed), failed[0])
		}
	})
	t.Run("when a revision that never answers is rolled back", func(t *testing.T) {
		m := m.within(t)
		before := m.service().Live
		l := m.ask(clients)
		m.deploy(modelSpec(image, "--no-such-flag"))
		m.awaitService("rolled back", func(s session.Service) bool {
			return s.Revision == 2 && strings.Contains(s.Why, "3") && ready(2)(s)
		})
		l.answered(t, 20)
		if whole, failed := l.end(); len(failed) > 0 {
			t.Errorf("%d of %d failed: %s", len(failed), whole+len(failed), failed[0])
		}
		// Where the machine has no room for a third replica, one of the two made way for it.
		after := m.service()
		stays := func(r session.Replica) bool {
			return slices.ContainsFunc(before, func(old session.Replica) bool { return r.Session == old.Session })
		}
		if !slices.ContainsFunc(after.Live, stays) {
			t.Errorf("the replicas were %+v and are %+v", before, after.Live)
		}
		t.Log(after.Why)
	})
	t.Run("but those that a killed replica was answering", func(t *testing.T) {
		m := m.within(t)
		victim := m.service().Live[0].Session
		s, err := m.agent.Get(t.Context(), victim)
		if err != nil {
			t.Fatal(err)
		}
		l := m.ask(clients)
		l.answered(t, 20)
		host := enginetest.RequireDocker(t)
		if out, err := exec.Command("docker", "-H", host, "kill", s.Kernels[0].Container).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		m.awaitService("whole again", func(s session.Service) bool {
			return ready(2)(s) && !slices.ContainsFunc(s.Live,
				func(r session.Replica) bool { return r.Session == victim })
		})
		l.answered(t, 20)
		whole, failed := l.end()
		if len(failed) > clients {
			t.Errorf("%d of %d failed: %q", len(failed), whole+len(failed), failed)
		}
		t.Logf("%d of %d failed", len(failed), whole+len(failed))
	})
}

// TestAServiceOutlivesItsAgent ends the agent and opens it again while its replicas run.
func TestAServiceOutlivesItsAgent(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	m := newReal(t, t.TempDir(), asPerson).serveModel("tiny", image, session.ServiceWish{Replicas: 2})
	ready := func(s session.Service) bool { return s.State == session.ServiceReady }
	before := m.awaitService("ready", ready)
	m.reopen(asPerson)
	opened := time.Now()
	if wrong := m.askOnce(true); wrong != "" { // it is held until a replica has answered a check
		t.Error(wrong)
	}
	t.Logf("the first answer took %s", time.Since(opened))
	after := m.awaitService("ready", ready)
	for i, r := range after.Live {
		if r.Session != before.Live[i].Session {
			t.Errorf("the replicas were %+v and are %+v", before.Live, after.Live)
		}
	}
	if len(after.Tokens) != 1 || after.Tokens[0] != before.Tokens[0] {
		t.Errorf("the tokens are %+v", after.Tokens)
	}
}

// within returns the service as a part of a test sees it.
func (m modelServer) within(t *testing.T) modelServer {
	m.real = m.in(t)
	return m
}

// deploy deploys another revision.
func (m modelServer) deploy(spec session.Spec) {
	m.t.Helper()
	if _, err := m.agent.DeployService(m.t.Context(), session.DeployRequest{Name: m.name, Spec: spec,
		ServiceWish: m.service().ServiceWish}); err != nil {
		m.t.Fatal(err)
	}
}

// TestARuleFollowsTheLoad adds a replica of a real model server while the first has too many requests under way.
func TestARuleFollowsTheLoad(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	rule := session.ScalingRule{Source: session.FromRouter, Metric: session.MetricOutstanding, ScaleUp: new(3.0),
		ScaleDown: new(1.0), Window: session.Duration(time.Second), Cooldown: session.Duration(time.Second),
		MaxReplicas: 2}
	m := newReal(t, t.TempDir(), asPerson).serveModel("ruled", image,
		session.ServiceWish{Replicas: 1, Rules: []session.ScalingRule{rule}})
	m.awaitService("ready", ready)
	began := time.Now()
	clients := m.ask(8)
	m.awaitService("larger", func(s session.Service) bool { return len(s.Live) == 2 })
	t.Logf("a replica is launched %s after the load began", time.Since(began))
	m.awaitService("ready with two", func(s session.Service) bool { return healthy(s, 1) == 2 })
	clients.answered(t, 50)
	if whole, failed := clients.end(); len(failed) > 0 {
		t.Errorf("%d of %d requests failed, the first: %s", len(failed), whole+len(failed), failed[0])
	}
	m.awaitService("small again", func(s session.Service) bool {
		return s.Scaling.Target == 1 && len(s.Live) == 1 && healthy(s, 1) == 1
	})
}

// TestTwoServicesAlternateOnARealEngine has two model servers, for one of which there is a device, answer in turn. The
// device is a node that every machine has, described as one of AMD, because those are attached by their nodes.
func TestTwoServicesAlternateOnARealEngine(t *testing.T) {
	t.Parallel()
	image := enginetest.RequireModel(t)
	r := newReal(t, t.TempDir(), asPerson, func(c *Config) {
		c.Host.Moment = devices.OwnMoment()
		c.Devices.Source = &scriptedDevices{moment: c.Host.Moment, devices: []gpu.Device{{UUID: "GPU-a",
			Vendor: gpu.AMD, Model: "T", Memory: 24 * gpu.GiB, Nodes: []string{"/dev/full"}}},
			sample: func(at gpu.Moment) gpu.Sample {
				return gpu.Sample{At: at, Devices: []gpu.DeviceSample{{UUID: "GPU-a", MemoryUsed: new(gpu.Bytes(0))}}}
			}}
	})
	var both [2]modelServer
	for i, name := range []string{"first", "second"} {
		spec := modelSpec(image)
		spec.Accelerator.Devices = 1
		both[i] = r.serve(name, spec, session.ServiceWish{Replicas: 1, MaySleep: true})
	}
	for i := range 20 {
		now, other := both[i%2], both[(i+1)%2]
		if a, b := now.service(), other.service(); healthy(a, a.Revision)+healthy(b, b.Revision) > 1 {
			t.Fatalf("both are served at a time: %+v, %+v", a.Live, b.Live)
		}
		if i != 7 {
			if wrong := now.askOnce(i%3 == 0); wrong != "" {
				t.Errorf("request %d: %s", i, wrong)
			}
			continue
		}
		const tokens = 400
		stream := now.chat(t.Context(), tokens)
		waits := make(chan string, 1)
		go func() { waits <- other.askOnce(true) }()
		text, err := io.ReadAll(stream.Body)
		stream.Body.Close()
		if err != nil || !strings.HasSuffix(string(text), "data: [DONE]\n\n") ||
			strings.Count(string(text), `"content":"`) < tokens/2 {
			t.Errorf("the long stream is not whole: %v, %q", err, text)
		}
		if wrong := <-waits; wrong != "" {
			t.Errorf("the request that waits for its end: %s", wrong)
		}
	}
}
