package simulated_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway/backend/session"
)

// TestAServiceScalesByTheMetricsOfItsServer keeps all slots of a simulated llama-server busy, so that
// requests wait in it.
func TestAServiceScalesByTheMetricsOfItsServer(t *testing.T) {
	t.Parallel()
	m := open(t)
	short := session.Duration(10 * time.Second)
	_, err := m.DeployService(t.Context(), session.DeployRequest{Name: "chat",
		ServiceWish: session.ServiceWish{Replicas: 1, Public: true, Rules: []session.ScalingRule{{
			Source: session.FromFramework, Metric: "llamacpp:requests_deferred", ScaleUp: new(1.0),
			ScaleDown: new(1.0 / 2), MaxReplicas: 2, Window: short, Cooldown: short}}},
		Spec: session.Spec{Image: "python:3.12", Access: session.Access{Serving: &session.Serving{Port: 8000,
			Health:  lenient("/health"),
			Command: []string{"llama-server", "--model", "tiny.gguf", "--metrics", "--port", "8000"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	does := func(does session.RuleDoes, replicas int) func(session.Service) bool {
		return func(s session.Service) bool {
			rules := s.Scaling.Rules
			return s.State == session.ServiceReady && len(s.Live) == replicas && len(rules) == 1 &&
				rules[0].Does == does && rules[0].Value != nil
		}
	}
	m.await("chat", does(session.RuleFewest, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked sync.WaitGroup
	for range 8 { // twice as many as the server answers at a time
		asked.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/completions",
				strings.NewReader(`{"model":"chat","prompt":"a","ignore_eos":true}`))
			if err != nil {
				t.Error(err)
				return
			}
			if answer, err := m.client.Do(req); err == nil { // else it was cancelled
				_ = answer.Body.Close()
			}
		})
	}
	m.await("chat", func(s session.Service) bool { return s.Scaling.Target == 2 && len(s.Live) == 2 })
	cancel()
	asked.Wait()
	m.await("chat", does(session.RuleFewest, 1))
}
