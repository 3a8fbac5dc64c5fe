package llm

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"slipway/backend/prometheus"
)

func TestMetricsHaveTheNamesOfTheRealServers(t *testing.T) {
	for kind, names := range map[Metrics]map[string]float64{
		LlamaMetrics: {"llamacpp:requests_processing": slots, "llamacpp:requests_deferred": 2,
			"llamacpp:prompt_tokens_total": slots, "llamacpp:tokens_predicted_total": 3 * slots},
		VLLMMetrics: {"vllm:num_requests_running": slots, "vllm:num_requests_waiting": 2,
			"vllm:prompt_tokens_total": slots, "vllm:generation_tokens_total": 3 * slots},
	} {
		serve(t, func(s *tested) {
			s.config.Metrics, s.config.Name = kind, `a "model"`
			var asked sync.WaitGroup
			for range slots + 2 {
				asked.Go(func() { s.ask(s.Context(), "/v1/completions", `{"prompt":"one","max_tokens":8}`) })
			}
			time.Sleep(3*wordTime + wordTime/2)
			w := s.ask(s.Context(), "/metrics", "")
			for name, want := range names {
				got, err := prometheus.Read(w.Body.String(), []string{name})
				if value, known := got[name]; err != nil || value != want || !known {
					s.Errorf("%s is %v, want %v: %v", name, value, want, err)
				}
			}
			asked.Wait()
		})
	}
	serve(t, func(s *tested) {
		s.config.Metrics = NoMetrics
		if w := s.ask(s.Context(), "/metrics", ""); w.Code != http.StatusNotImplemented {
			s.Errorf("a server without metrics answers %d: %s", w.Code, w.Body)
		}
	})
}
