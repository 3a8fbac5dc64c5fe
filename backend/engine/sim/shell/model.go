package shell

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/engine/sim/llm"
)

// Default ports of the model servers, as those of the real ones.
const (
	llamaPort = 8080
	vllmPort  = 8000
)

// llama simulates llama-server. It reads no model, so that the file need not exist.
func llama(c *command) int {
	file := c.option("--model", "-m")
	if file == "" {
		return c.usage("--model FILE [--port PORT] [--alias NAME]")
	}
	metrics := llm.NoMetrics
	if slices.Contains(c.operands, "--metrics") {
		metrics = llm.LlamaMetrics
	}
	return c.serveModel(cmp.Or(c.option("--alias", "-a"), path.Base(file)), llamaPort, metrics)
}

// vllm simulates vllm serve.
func vllm(c *command) int {
	if len(c.operands) < 2 || c.operands[0] != "serve" || strings.HasPrefix(c.operands[1], "-") {
		return c.usage("serve MODEL [--port PORT] [--served-model-name NAME]")
	}
	return c.serveModel(cmp.Or(c.option("--served-model-name"), c.operands[1]), vllmPort, llm.VLLMMetrics)
}

// option returns the last value of an option that has one of the names; empty: none has. Model servers have hundreds of
// options, which are all accepted.
func (c *command) option(names ...string) (value string) {
	for i, arg := range c.operands {
		for _, name := range names {
			if rest, ok := strings.CutPrefix(arg, name+"="); ok {
				value = rest
			} else if arg == name && i+1 < len(c.operands) {
				value = c.operands[i+1]
			}
		}
	}
	return value
}

// serveModel serves a simulated model until the command ends.
func (c *command) serveModel(name string, port int, metrics llm.Metrics) int {
	if text := c.option("--port"); text != "" {
		port, _ = strconv.Atoi(text) // 0 is refused
	}
	held := c.world.Memory / 5 // the model
	if !c.world.Load(c.process, 0, held) {
		c.printf("Killed\n")
		return 137
	}
	server := llm.New(llm.Config{Name: name, Clock: c.world.Clock, Log: c.out, Metrics: metrics,
		Busy: func(requests int) {
			c.world.Load(c.process, float64(min(requests, c.world.CPUs))*0.9, held)
		}})
	defer server.Close()
	c.printf("loading model %s (simulated: nothing is computed)\n", name)
	return c.serveOn(port, server, "server is listening on http://127.0.0.1:%d\n")
}
