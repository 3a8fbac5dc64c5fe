package llm

import (
	"fmt"
	"net/http"
)

// Metrics says how a server names its metrics.
type Metrics int

// The kinds of metrics.
const (
	NoMetrics    Metrics = iota // it has none, as llama-server without --metrics
	LlamaMetrics                // those of llama-server
	VLLMMetrics                 // those of vLLM
)

// measure is one metric of the server.
type measure struct {
	name, kind, help string
	value            int
}

// metrics answers with those metrics that autoscaling uses, by the names and in the form of the real servers.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []measure
	line := "%s %d\n"
	switch s.config.Metrics {
	case LlamaMetrics:
		all = []measure{
			{"llamacpp:prompt_tokens_total", "counter", "Number of prompt tokens processed.", s.prompt},
			{"llamacpp:tokens_predicted_total", "counter", "Number of generation tokens processed.", s.predicted},
			{"llamacpp:requests_processing", "gauge", "Number of requests processing.", s.processing},
			{"llamacpp:requests_deferred", "gauge", "Number of requests deferred.", s.deferred},
		}
	case VLLMMetrics:
		all = []measure{
			{"vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", s.processing},
			{"vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", s.deferred},
			{"vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", s.prompt},
			{"vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", s.predicted},
		}
		line = fmt.Sprintf("%%s{engine=\"0\",model_name=%q} %%d.0\n", s.config.Name)
	default:
		refuse(w, http.StatusNotImplemented, "not_supported_error",
			"This server does not support metrics endpoint. Start it with `--metrics`")
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range all {
		_, _ = fmt.Fprintf(w, "# HELP %[1]s %[2]s\n# TYPE %[1]s %[3]s\n", m.name, m.help, m.kind)
		_, _ = fmt.Fprintf(w, line, m.name, m.value)
	}
}
