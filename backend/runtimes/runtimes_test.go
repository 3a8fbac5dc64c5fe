package runtimes_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"slipway/backend/runtimes"
	"slipway/backend/session"
	"slipway/gpu"
)

var update = flag.Bool("update", false, "write testdata/commands.json")

// command is one line of testdata/commands.json, with which the tests of the user interface compare theirs.
type command struct {
	Runtime string         `json:"runtime"`
	Model   runtimes.Model `json:"model"`
	GPU     bool           `json:"gpu,omitempty"`
	Part    bool           `json:"part,omitempty"`
	Argv    []string       `json:"argv"`
}

// TestEveryCommand has all commands of all runtimes. Look at the difference after -update.
func TestEveryCommand(t *testing.T) {
	var out bytes.Buffer
	out.WriteString("[\n")
	for _, r := range runtimes.All() {
		models := []runtimes.Model{{}}
		for _, source := range r.Sources {
			models = append(models, map[runtimes.Source][]runtimes.Model{
				runtimes.ByName: {{Source: source, Name: "org/name-7B", Served: "chat"}},
				runtimes.InFolder: {{Source: source, Served: "chat"},
					{Source: source, Name: "/a b/x.gguf/", Served: "chat"}},
			}[source]...)
		}
		if len(r.Sources) > 0 {
			models = models[1:]
		}
		for _, model := range models {
			for _, devices := range [][2]bool{{}, {true, false}, {true, true}} {
				line, err := json.Marshal(command{r.ID, model, devices[0], devices[1],
					r.Argv(model, r.Port, devices[0], devices[1])})
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(line, ",\n"...))
			}
		}
	}
	got := append(bytes.TrimSuffix(out.Bytes(), []byte(",\n")), "\n]\n"...)
	const golden = "testdata/commands.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is out of date; run go test ./backend/runtimes -update: %v", golden, err)
	}
}

func TestEveryRuntimeMakesAValidSpec(t *testing.T) {
	for _, r := range runtimes.All() {
		spec := session.Spec{Type: session.Inference, Accelerator: gpu.Request{Shares: 500},
			Mounts: []session.Mount{{Folder: "models"}}}
		if r.Image == "" {
			spec.Image = "mine"
		}
		r.Fill(&spec, "chat", runtimes.Model{Source: runtimes.InFolder})
		if wrong := spec.Validate(time.Now(), session.Limits{}); len(wrong) > 0 {
			t.Errorf("%s: %+v", r.ID, wrong)
		}
		if mount := spec.Mounts[0]; mount.Target != runtimes.ModelTarget || mount.ReadOnly == r.Writes {
			t.Errorf("%s has %+v", r.ID, mount)
		}
	}
}

func TestWhatIsSaidStays(t *testing.T) {
	r, _ := runtimes.Find("ollama")
	spec := session.Spec{Image: "mine:1", Env: []session.EnvVar{{Name: "OLLAMA_MODELS", Value: "/here"}},
		Mounts: []session.Mount{{Folder: "a", Target: "here"}, {Folder: "b", ReadOnly: true}},
		Access: session.Access{Serving: &session.Serving{Command: []string{"own"}, Port: 9000, Models: []string{"m"},
			Health: session.Health{Path: "/up", InitialDelay: session.Duration(time.Hour)}}}}
	before := *spec.Serving
	r.Fill(&spec, "chat", runtimes.Model{Source: runtimes.InFolder})
	if got := *spec.Serving; spec.Image != "mine:1" || got.Port != before.Port || got.Command[0] != "own" ||
		got.Health != before.Health || len(spec.Env) != 1 {
		t.Errorf("%+v", spec)
	}
	if got := spec.Mounts; got[0].Target != "here" || got[1].Target != runtimes.ModelTarget || !got[1].ReadOnly {
		t.Errorf("%+v", got)
	}
	if _, found := runtimes.Find("no"); found {
		t.Error("there is a runtime no")
	}
}

func TestTheCommandFollowsTheRequestForDevices(t *testing.T) {
	r, _ := runtimes.Find("vllm")
	for _, c := range []struct {
		request gpu.Request
		limited bool
	}{{gpu.Request{}, false}, {gpu.Request{Devices: 2}, false}, {gpu.Request{Profile: "1g.10gb"}, false},
		{gpu.Request{Shares: 300}, true}, {gpu.Request{Memory: 8 * gpu.GiB}, true}} {
		spec := session.Spec{Accelerator: c.request}
		r.Fill(&spec, "chat", runtimes.Model{Source: runtimes.ByName, Name: "org/name"})
		command := strings.Join(spec.Serving.Command, " ")
		if strings.HasSuffix(command, "--gpu-memory-utilization "+session.GPUMemoryShare) != c.limited {
			t.Errorf("%+v: %s", c.request, command)
		}
	}
}
