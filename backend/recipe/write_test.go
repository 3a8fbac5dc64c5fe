package recipe

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestWhatIsWrittenIsReadAsTheSame(t *testing.T) {
	at := time.Date(2026, 4, 30, 23, 0, 0, 0, time.UTC)
	for name, spec := range map[string]session.Spec{
		"the least": {Image: "python:3.12"},
		"everything": {Name: "train-a", Type: "batch", Image: "python:3.12@sha256:" + strings.Repeat("ab", 32),
			Command: "python train.py\necho \"done: #1\"\n", Schedule: session.Schedule{
				NotBefore: &at,
				Agent:     "local",
				Priority:  new(0),
				After: []string{"train-b",
					"7"},
				PendingTimeout: session.Duration(2 * time.Hour),
			},
			Lifetime: session.Lifetime{
				Setup:       "set -e\npip install einops\n",
				Timeout:     session.Duration(30 * time.Minute),
				CommitOnEnd: 5,
				Idle: &session.IdlePolicy{Lifetime: session.Duration(2 * 24 * time.Hour),
					Use: session.UsePolicy{Window: session.Duration(30 * time.Minute), Any: true, GPU: new(5.0),
						CPU: new(0.0)}},
			},
			Env: []session.EnvVar{{Name: "SEED", Value: "7"}, {Name: "EMPTY"}, {Name: "YES", Value: "yes"},
				{Name: "NULL", Value: "null"}, {Name: "LINES", Value: "a\n  b\n"}, {Name: "ODD", Value: " # : {\t"}},
			Resources: session.Resources{CPU: 2, Memory: 4 * gpu.GiB, Shm: 1<<30 + 1},
			Tuning:    session.Tuning{Threads: 4, MPS: true},
			Mounts: []session.Mount{{Source: "/data", Target: "data", ReadOnly: true},
				{Folder: "sets", Path: "a b"}}, Access: session.Access{Ports: []int{8080, 9000}, NoSSH: true},
			Accelerator: gpu.Request{Shares: 500}, Cluster: 2, Label: "0x1F"},
		"idle checks off": {Image: "a", Lifetime: session.Lifetime{Idle: &session.IdlePolicy{}}},
		"a doubled name":  {Image: "a", Env: []session.EnvVar{{Name: "A", Value: "1"}, {Name: "A", Value: "2"}}},
		"amounts in bytes": {Image: "a", Resources: session.Resources{Memory: 3 * gpu.GiB / 2,
			Shm: 1000}},
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
	spec := session.Spec{Image: "a", Env: []session.EnvVar{{Name: "HF_TOKEN", Value: "hunter2"}, {Name: "SEED",
		Value: "7"}}}
	for _, spec := range []session.Spec{spec, {Image: "a", Env: append(spec.Env, spec.Env...)}} {
		text := string(Write(spec))
		if strings.Contains(text, "hunter2") || !strings.Contains(text, "HF_TOKEN") {
			t.Errorf("wrote\n%s", text)
		}
		if got, err := Parse([]byte(text)); err != nil || got.Env[0] != (session.EnvVar{Name: "HF_TOKEN"}) {
			t.Errorf("read %+v, %v", got.Env, err)
		}
	}
}

func TestAmountsAreWrittenAsPeopleDo(t *testing.T) {
	text := string(Write(session.Spec{Image: "a", Resources: session.Resources{CPU: 1, Memory: 4 << 30,
		Shm: 64 << 20}}))
	if !strings.Contains(text, "memory: 4g\n") || !strings.Contains(text, "shm: 64m\n") {
		t.Errorf("wrote\n%s", text)
	}
}

func TestComparedRecipesShowEveryField(t *testing.T) {
	left := session.Spec{Name: "a", Image: "python:3.12", Resources: session.Resources{CPU: 2, Memory: 4 << 30},
		Access: session.Access{Ports: []int{80, 81}}, Schedule: session.Schedule{Priority: new(0)},
		Env:    []session.EnvVar{{Name: "SEED", Value: "7"}, {Name: "API_KEY", Value: "x"}},
		Mounts: []session.Mount{{Source: "/data", ReadOnly: true}}}
	right := session.Spec{Image: "python:3.13", Resources: session.Resources{CPU: 2, Memory: 4096 * gpu.MiB},
		Lifetime: session.Lifetime{Idle: &session.IdlePolicy{}}, Accelerator: gpu.Request{Shares: 500},
		Env: []session.EnvVar{{Name: "API_KEY", Value: "y"}, {Name: "MODE"}}, Mounts: []session.Mount{{Folder: "data"}}}
	want := []Field{
		{Field: "name", Left: "a"},
		{Field: "image", Left: "python:3.12", Right: "python:3.13"},
		{Field: "env.SEED", Left: "7"},
		{Field: "env.API_KEY", Left: "(secret)", Right: "(secret)", Same: true},
		{Field: "env.MODE", Right: `""`},
		{Field: "resources.cpu", Left: "2", Right: "2", Same: true},
		{Field: "resources.memory", Left: "4g", Right: "4g", Same: true},
		{Field: "accelerator", Right: "0.5"},
		{Field: "mounts.data", Left: "/data (read-only)", Right: "data"},
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
func stripped(spec session.Spec) session.Spec {
	for i, v := range spec.Env {
		if session.SecretName(v.Name) {
			spec.Env[i].Value = ""
		}
	}
	if spec.NotBefore != nil {
		spec.NotBefore = new(spec.NotBefore.Truncate(time.Second))
	}
	return spec
}
