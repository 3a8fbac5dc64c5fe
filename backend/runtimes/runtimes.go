// Package runtimes knows model servers: what each needs to serve a model, as data, and what the model-definition.yaml
// of a folder says. The user interface gets the table from build/tsgen.
package runtimes

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"slipway/backend/session"
)

// ModelTarget is where the folder with a model is mounted.
const ModelTarget = "/models"

// Source is where a server finds its model.
type Source string

// The sources: a file or directory in a mounted folder, or a name under which the server downloads it.
const (
	InFolder Source = "folder"
	ByName   Source = "name"
)

// When is the condition under which a part of a command is used.
type When string

// The conditions. Always is the empty one.
const (
	Always     When = ""
	FromFolder When = "folder"
	FromName   When = "name"
	WithGPU    When = "gpu"
	WithPart   When = "part" // a part of a device is requested
)

// Part is some arguments of a command. {model}, {served} and {port} in them stand for what is chosen.
type Part struct {
	When  When     `json:"when,omitempty"`
	Words []string `json:"words"`
}

// Runtime is a model server, and what is filled in for it unless a person says something else.
type Runtime struct {
	ID       string `json:"id"`
	Name     string `json:"name"` // as its makers write it; empty: it is no product
	Image    string `json:"image"`
	GPUImage string `json:"gpuImage,omitempty"` // to use with a GPU, where there is another
	Port     int    `json:"port"`
	Health   string `json:"health"` // path of the health check
	// from the start of its container to its first healthy answer: large models take minutes to load
	Delay   session.Duration `json:"delay"`
	Sources []Source         `json:"sources"`          // the usual one first; empty: its image has the model
	Path    bool             `json:"path,omitempty"`   // its command names a path in the folder
	File    string           `json:"file,omitempty"`   // the usual one there, where the model is one file
	Writes  bool             `json:"writes,omitempty"` // it writes into the folder
	Env     []session.EnvVar `json:"env,omitempty"`    // where a folder is mounted
	Command []Part           `json:"command"`          // empty: what the image starts by itself
}

const (
	soon = session.Duration(2 * time.Minute)
	some = session.Duration(10 * time.Minute)
	load = session.Duration(30 * time.Minute)
)

// part is the end of a command that sets how much of the memory of a device a server takes.
func part(flag string) Part { return Part{WithPart, []string{flag, session.GPUMemoryShare}} }

var table = []Runtime{
	{ID: "llamacpp", Name: "llama.cpp", Image: "ghcr.io/ggml-org/llama.cpp:server",
		GPUImage: "ghcr.io/ggml-org/llama.cpp:server-cuda", Port: 8080, Health: "/health", Delay: some,
		Sources: []Source{InFolder, ByName}, Path: true, File: "model.gguf",
		Command: []Part{{Words: []string{"/app/llama-server"}}, {FromFolder, []string{"--model", "{model}"}},
			{FromName, []string{"--hf-repo", "{model}"}},
			{Words: []string{"--alias", "{served}", "--port", "{port}", "--metrics"}},
			{WithGPU, []string{"--n-gpu-layers", "999"}}}},
	{ID: "vllm", Name: "vLLM", Image: "vllm/vllm-openai:latest", Port: 8000, Health: "/health", Delay: load,
		Sources: []Source{ByName, InFolder}, Path: true,
		Command: []Part{{Words: []string{"vllm", "serve", "{model}", "--served-model-name", "{served}", "--port",
			"{port}"}}, part("--gpu-memory-utilization")}},
	{ID: "sglang", Name: "SGLang", Image: "lmsysorg/sglang:latest", Port: 9001, Health: "/health", Delay: load,
		Sources: []Source{ByName, InFolder}, Path: true,
		Command: []Part{{Words: []string{"python3", "-m", "sglang.launch_server", "--model-path", "{model}",
			"--served-model-name", "{served}", "--port", "{port}"}}, part("--mem-fraction-static")}},
	{ID: "tgi", Name: "TGI", Image: "ghcr.io/huggingface/text-generation-inference:latest", Port: 3000,
		Health: "/info", Delay: load, Sources: []Source{ByName, InFolder}, Path: true,
		Command: []Part{{Words: []string{"text-generation-launcher", "--model-id", "{model}", "--port", "{port}"}},
			part("--cuda-memory-fraction")}},
	{ID: "nim", Name: "NVIDIA NIM", Image: "nvcr.io/nim/meta/llama-3.1-8b-instruct:latest", Port: 8000,
		Health: "/v1/health/ready", Delay: load, Sources: []Source{}, Command: []Part{}},
	{ID: "ollama", Name: "Ollama", Image: "ollama/ollama:latest", Port: 11434, Health: "/", Delay: soon,
		Sources: []Source{InFolder}, Writes: true, Env: []session.EnvVar{{Name: "OLLAMA_MODELS", Value: ModelTarget}},
		Command: []Part{{Words: []string{"ollama", "serve"}}}},
	{ID: "image", Port: 8000, Health: "/health", Delay: load, Sources: []Source{}, Command: []Part{}},
	{ID: "custom", Port: 8080, Health: "/health", Delay: load, Sources: []Source{InFolder}, Command: []Part{}},
}

// All returns the runtimes in the order in which they are offered.
func All() []Runtime { return slices.Clone(table) }

// Find returns the runtime of an id.
func Find(id string) (Runtime, bool) {
	i := slices.IndexFunc(table, func(r Runtime) bool { return r.ID == id })
	if i < 0 {
		return Runtime{}, false
	}
	return table[i], true
}

// Model is what a server serves.
type Model struct {
	Source Source `json:"source"`
	Name   string `json:"name"`   // under which the server downloads it, or a path in the folder; empty: the usual one
	Served string `json:"served"` // under which clients ask for it
}

// Argv is the command with which a server serves a model on a port; empty: what its image starts by itself. gpu tells
// whether devices are requested, and part whether that is a part of one.
func (r Runtime) Argv(m Model, port int, gpu, part bool) []string {
	name := m.Name
	if m.Source == InFolder {
		if name = strings.Trim(name, "/"); name == "" {
			name = r.File
		}
		name = strings.TrimSuffix(ModelTarget+"/"+name, "/")
	}
	fill := strings.NewReplacer("{model}", name, "{served}", m.Served, "{port}", strconv.Itoa(port))
	used := map[When]bool{Always: true, FromFolder: m.Source == InFolder, FromName: m.Source == ByName, WithGPU: gpu,
		WithPart: part}
	argv := []string{}
	for _, p := range r.Command {
		for _, word := range p.Words {
			if used[p.When] {
				argv = append(argv, fill.Replace(word))
			}
		}
	}
	return argv
}

// Fill fills in what a spec of a service leaves empty: image, command, port, health check and, with a folder, where it
// is mounted and the variables of the runtime. service is the name of the service.
func (r Runtime) Fill(spec *session.Spec, service string, m Model) {
	serving := session.Serving{}
	if spec.Serving != nil {
		serving = *spec.Serving
	}
	gpu := !spec.Accelerator.IsZero()
	if spec.Image == "" {
		if spec.Image = r.Image; gpu && r.GPUImage != "" {
			spec.Image = r.GPUImage
		}
	}
	if serving.Port == 0 {
		serving.Port = r.Port
	}
	if serving.Health.Path == "" {
		serving.Health.Path = r.Health
	}
	if serving.Health.InitialDelay == 0 {
		serving.Health.InitialDelay = r.Delay
	}
	m.Served = service
	if len(serving.Models) > 0 {
		m.Served = serving.Models[0]
	}
	if m.Source == InFolder {
		r.mount(spec)
	}
	if len(serving.Command) == 0 {
		part := spec.Accelerator.Memory > 0 || spec.Accelerator.Shares > 0
		if argv := r.Argv(m, serving.Port, gpu, part); len(argv) > 0 {
			serving.Command = argv
		}
	}
	spec.Serving = &serving
}

// mount mounts the first folder or directory without a target where the command expects it, and adds the variables of
// the runtime.
func (r Runtime) mount(spec *session.Spec) {
	i := slices.IndexFunc(spec.Mounts, func(m session.Mount) bool { return m.Target == "" })
	if i < 0 {
		return
	}
	spec.Mounts = slices.Clone(spec.Mounts)
	spec.Mounts[i].Target, spec.Mounts[i].ReadOnly = ModelTarget, spec.Mounts[i].ReadOnly || !r.Writes
	for _, v := range r.Env {
		if !slices.ContainsFunc(spec.Env, func(own session.EnvVar) bool { return own.Name == v.Name }) {
			spec.Env = append(spec.Env, v)
		}
	}
}
