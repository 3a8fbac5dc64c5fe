package recipe

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestWhatIsWrittenIsReadAsTheSame(t *testing.T) {
	at := time.Date(2026, 4, 30, 23, 0, 0, 0, time.UTC)
	for name, spec := range map[string]api.Spec{
		"the least": {Image: "python:3.12"},
		"everything": {Name: "train-a", Type: "batch", Image: "python:3.12@sha256:" + strings.Repeat("ab", 32),
			Command: "python train.py\necho \"done: #1\"\n", NotBefore: &at, Timeout: "30m",
			Env: []api.EnvVar{{Name: "SEED", Value: "7"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"},
				{Name: "NULL", Value: "null"}, {Name: "LINES", Value: "a\n  b\n"}, {Name: "ODD", Value: " # : {\t"}},
			Resources: api.Resources{CPU: 2, Memory: api.Bytes{Text: "4g"}, Shm: api.Bytes{N: 1<<30 + 1}},
			Threads:   4, Mounts: []api.Mount{{Source: "/data", Target: "data", ReadOnly: true},
				{Folder: "sets", Path: "a b"}}, Ports: []int{8080, 9000}, Agent: "local",
			Accelerator: "0.5", MPS: true, Cluster: 2, Priority: new(0), After: []string{"train-b", "7"},
			PendingTimeout: "2h", Label: "0x1F", NoSSH: true, CommitOnEnd: 5,
			Idle: &api.IdlePolicy{Lifetime: "2d", Use: &api.UsePolicy{Window: "30m", Any: true, GPU: new(5.0),
				CPU: new(0.0)}}},
		"idle checks off": {Image: "a", Idle: &api.IdlePolicy{}},
		"a doubled name":  {Image: "a", Env: []api.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}},
		"amounts in bytes": {Image: "a", Resources: api.Resources{Memory: api.Bytes{Text: "1.5g"},
			Shm: api.Bytes{N: 1000}}},
	} {
		t.Run(name, func(t *testing.T) {
			text := Write(spec)
			got, err := Parse(text)
			if err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
			if !reflect.DeepEqual(got, spec) {
				t.Errorf("got  %+v\nwant %+v\nfrom\n%s", got, spec, text)
			}
		})
	}
}

func TestSecretsAreNamedAndNotWritten(t *testing.T) {
	spec := api.Spec{Image: "a", Env: []api.EnvVar{{Name: "HF_TOKEN", Value: "hunter2"}, {Name: "SEED", Value: "7"}}}
	for _, spec := range []api.Spec{spec, {Image: "a", Env: append(spec.Env, spec.Env...)}} {
		text := string(Write(spec))
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "HF_TOKEN") {
			t.Errorf("wrote\n%s", text)
		}
		if got, err := Parse([]byte(text)); err != nil || got.Env[0] != (api.EnvVar{Name: "HF_TOKEN"}) {
			t.Errorf("read %+v, %v", got.Env, err)
		}
	}
}

func TestAmountsAreWrittenAsPeopleDo(t *testing.T) {
	text := string(Write(api.Spec{Image: "a", Resources: api.Resources{CPU: 1, Memory: api.Bytes{N: 4 << 30},
		Shm: api.Bytes{N: 64 << 20}}}))
	if !strings.Contains(text, "memory: 4g\n") || !strings.Contains(text, "shm: 64m\n") {
		t.Errorf("wrote\n%s", text)
	}
}

func TestComparedRecipesShowEveryField(t *testing.T) {
	left := api.Spec{Name: "a", Image: "python:3.12", Resources: api.Resources{CPU: 2, Memory: api.Bytes{N: 4 << 30}},
		Ports: []int{80, 81}, Priority: new(0),
		Env:    []api.EnvVar{{Name: "SEED", Value: "7"}, {Name: "API_KEY", Value: "x"}},
		Mounts: []api.Mount{{Source: "/data", ReadOnly: true}}}
	right := api.Spec{Image: "python:3.13", Resources: api.Resources{CPU: 2, Memory: api.Bytes{Text: "4096m"}},
		Idle: &api.IdlePolicy{}, Accelerator: "0.5",
		Env: []api.EnvVar{{Name: "API_KEY", Value: "y"}, {Name: "MODE"}}, Mounts: []api.Mount{{Folder: "data"}}}
	want := []api.RecipeField{
		{Field: "name", Left: "a"},
		{Field: "image", Left: "python:3.12", Right: "python:3.13"},
		{Field: "env.SEED", Left: "7"},
		{Field: "env.API_KEY", Left: "(secret)", Right: "(secret)", Same: true},
		{Field: "env.MODE", Right: `""`},
		{Field: "resources.cpu", Left: "2", Right: "2", Same: true},
		{Field: "resources.memory", Left: "4g", Right: "4g", Same: true},
		{Field: "mounts.data", Left: "/data (read-only)", Right: "data"},
		{Field: "accelerator", Right: "0.5"},
		{Field: "idle", Right: "{}"},
		{Field: "ports", Left: "80 81"},
		{Field: "priority", Left: "0"},
	}
	if got := Compare(left, right); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// FuzzWrite holds that whatever was read is written in a way that is read as the same.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(wholeRecipe))
	f.Add([]byte("image: \"a\\u0085b\"\nenv: {A: \"\\tx\\r\\n\", B: '~', C: 'on'}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := Parse(data)
		if err != nil || spec.NotBefore != nil && (spec.NotBefore.Year() < 1 || spec.NotBefore.Year() > 9999) {
			return
		}
		text := Write(spec)
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("what was written is refused: %v\n%s", err, text)
		}
		first, _ := json.Marshal(stripped(spec))
		second, _ := json.Marshal(stripped(again))
		if string(first) != string(second) {
			t.Fatalf("read again it is\n%s, was\n%s, written\n%s", second, first, text)
		}
	})
}

// stripped is a spec without what writing it leaves out on purpose.
func stripped(spec api.Spec) api.Spec {
	for i, v := range spec.Env {
		if session.SecretName(v.Name) {
			spec.Env[i].Value = ""
		}
	}
	spec.Resources.Memory, spec.Resources.Shm = written(spec.Resources.Memory), written(spec.Resources.Shm)
	if spec.NotBefore != nil {
		spec.NotBefore = new(spec.NotBefore.Truncate(time.Second))
	}
	return spec
}

func written(b api.Bytes) api.Bytes {
	text, ok := amount(b).(string)
	if !ok {
		return b
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return api.Bytes{N: n}
	}
	return api.Bytes{Text: text}
}
