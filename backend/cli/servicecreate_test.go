package cli

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/runtimes"
	"slipway/backend/session"
)

// deploying answers deployments, and returns where the last request is.
func (f *plane) deploying(t *testing.T) *session.DeployRequest {
	last := new(session.DeployRequest)
	f.handle("POST /api/v1/services", func(w http.ResponseWriter, r *http.Request) {
		*last = session.DeployRequest{}
		if err := json.NewDecoder(r.Body).Decode(last); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusOK, api.Service{Service: session.Service{Name: last.Name, Agent: "local", Revision: 1}})
	})
	return last
}

func TestAServiceIsCreatedWithARuntime(t *testing.T) {
	f := newPlane(t)
	last := f.deploying(t)
	for args, want := range map[string]struct {
		image, command string
		port           int
		mount          session.Mount
	}{
		"--runtime llamacpp -v models --model-file tiny.gguf": {"ghcr.io/ggml-org/llama.cpp:server",
			"/app/llama-server --model /models/tiny.gguf --alias chat --port 8080 --metrics", 8080,
			session.Mount{Folder: "models", Target: "/models", ReadOnly: true}},
		"--runtime vllm --model org/name --gpu vram:8g --served-name mine": {"vllm/vllm-openai:latest",
			"vllm serve org/name --served-model-name mine --port 8000 --gpu-memory-utilization {gpu-memory-share}",
			8000, session.Mount{}},
		"--runtime vllm -v models/qwen --gpu 1 --port 9000 --image vllm:1": {"vllm:1",
			"vllm serve /models --served-model-name chat --port 9000", 9000,
			session.Mount{Folder: "models", Path: "qwen", Target: "/models", ReadOnly: true}},
		"--runtime ollama -v models": {"ollama/ollama:latest", "ollama serve", 11434,
			session.Mount{Folder: "models", Target: "/models"}},
		"--runtime nim":               {"nvcr.io/nim/meta/llama-3.1-8b-instruct:latest", "", 8000, session.Mount{}},
		"--runtime vllm -- own --x":   {"vllm/vllm-openai:latest", "own --x", 8000, session.Mount{}},
		"--image mine -v models -- a": {"mine", "a", 8000, session.Mount{Folder: "models"}},
	} {
		t.Run(args, func(t *testing.T) {
			got := f.run(t, append([]string{"service", "create", "chat"}, strings.Fields(args)...)...)
			if got.code != ExitOK || got.stdout != "chat is on local, revision 1.\n" {
				t.Fatalf("code %d, %s%s", got.code, got.stdout, got.stderr)
			}
			spec := last.Spec
			var mount session.Mount
			if len(spec.Mounts) > 0 {
				mount = spec.Mounts[0]
			}
			if spec.Image != want.image || strings.Join(spec.Serving.Command, " ") != want.command ||
				spec.Serving.Port != want.port || mount != want.mount {
				t.Errorf("%+v with %+v", spec, spec.Serving)
			}
		})
	}
	for args, says := range map[string]string{
		"--runtime vlm":                                        `Unknown runtime "vlm": use llamacpp, vllm,`,
		"--runtime vllm":                                       "vllm needs --model NAME, or -v FOLDER",
		"--runtime ollama --model a":                           "ollama does not take --model",
		"--runtime ollama -v models --model-file a":            "ollama does not take --model-file",
		"--runtime llamacpp -v m --model a --model-file b":     "Use either --model or --model-file",
		"--image a --model b":                                  "--model and --model-file need --runtime",
		"--runtime vllm --definition models --image a":         "Use either --runtime or --definition",
		"--runtime vllm --model a --initial-delay soon":        "--initial-delay",
		"--runtime llamacpp -v models:/data --model-file tiny": "-v FOLDER without a path in the session",
	} {
		got := f.run(t, append([]string{"service", "create", "chat"}, strings.Fields(args)...)...)
		if got.code != ExitUsage || !strings.Contains(got.stderr, says) {
			t.Errorf("%s: code %d, %s", args, got.code, got.stderr)
		}
	}
}

func TestAServiceIsCreatedFromADefinition(t *testing.T) {
	f := newPlane(t)
	last := f.deploying(t)
	defined := session.Serving{Command: []string{"serve", "/models"}, Port: 8001, Models: []string{"tiny"},
		PreStart: []session.StartAction{{Action: "log", Message: "loading"}},
		Health:   session.Health{Path: "/up", MaxRetries: 3}}
	f.handle("GET /api/v1/services/definition", func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("folder") != "models" || r.FormValue("path") != "chat" || r.FormValue("agent") != "lab" {
			t.Errorf("it asks for %s", r.URL.RawQuery)
		}
		reply(w, http.StatusOK, runtimes.Definition{File: "chat/model-definition.yaml", ModelPath: "/models",
			Serving: defined})
	})
	create := strings.Fields("service create chat --on lab --image mine:1 --definition models/chat")
	if got := f.run(t, create...); got.code != ExitOK {
		t.Fatalf("code %d, %s", got.code, got.stderr)
	}
	defined.Health.InitialDelay = session.Duration(30 * time.Minute)
	mounts := []session.Mount{{Folder: "models", Target: "/models", ReadOnly: true}}
	if spec := last.Spec; !reflect.DeepEqual(*spec.Serving, defined) || !reflect.DeepEqual(spec.Mounts, mounts) {
		t.Errorf("%+v with %+v", spec, *spec.Serving)
	}
	own := strings.Fields("-v models:/data --port 9000 --health /own --initial-delay 5m --served-name own -- other")
	if got := f.run(t, append(create, own...)...); got.code != ExitOK {
		t.Fatalf("code %d, %s", got.code, got.stderr)
	}
	changed := session.Serving{Command: []string{"other"}, Port: 9000, Models: []string{"own"},
		PreStart: defined.PreStart,
		Health:   session.Health{Path: "/own", MaxRetries: 3, InitialDelay: session.Duration(5 * time.Minute)}}
	mounts[0] = session.Mount{Folder: "models", Target: "/data"}
	if spec := last.Spec; !reflect.DeepEqual(*spec.Serving, changed) || !reflect.DeepEqual(spec.Mounts, mounts) {
		t.Errorf("%+v with %+v", spec, *spec.Serving)
	}

	f.handle("GET /api/v1/services/definition", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, session.Error{Code: session.CodeInvalid,
			Message: "model-definition.yaml cannot be used.", Fields: []session.FieldError{{
				Field: "model-definition.yaml:12", Kind: session.KindUnknown, Message: `"prot" is not a field here.`,
				Hint: "Did you mean port?"}}})
	})
	const want = "slipway: model-definition.yaml cannot be used.\n" +
		"  model-definition.yaml:12: \"prot\" is not a field here. Did you mean port?\n  (session_create_invalid)\n"
	if got := f.run(t, create...); got.code != ExitInvalid || got.stderr != want {
		t.Errorf("code %d, %s", got.code, got.stderr)
	}
}
