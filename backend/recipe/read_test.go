package recipe

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

const wholeRecipe = `
name: train-a
type: batch
image: python:3.12
command: |
  python train.py
  echo done
setup: pip install einops
notBefore: 2026-05-01T08:00:00+09:00
timeout: 30m
env:
  SEED: 7
  EMPTY:
resources:
  cpu: 2
  memory: 4g
  shm: 1073741824
threads: 4
mounts:
  - source: /data
    target: data
    readOnly: true
ports: [8080, 9000:9002]
agent: local
accelerator: 0.5
mps: true
cluster: 2
priority: 0
after: [train-b]
pendingTimeout: 2h
label: vision
commitOnEnd: 3
idle:
  lifetime: 2d
  use:
    window: 30m
    any: true
    gpu: 5
    cpu: 0.5
`

func TestRecipesAreReadWhole(t *testing.T) {
	at := time.Date(2026, 4, 30, 23, 0, 0, 0, time.UTC)
	got, err := Parse([]byte(wholeRecipe))
	if err != nil {
		t.Fatal(err)
	}
	if got.NotBefore == nil || !got.NotBefore.Equal(at) {
		t.Errorf("notBefore is %v, want %v", got.NotBefore, at)
	}
	got.NotBefore = nil
	want := session.Spec{Name: "train-a", Type: "batch", Image: "python:3.12", Command: "python train.py\necho done\n",
		Lifetime: session.Lifetime{
			Setup:       "pip install einops",
			Timeout:     session.Duration(30 * time.Minute),
			CommitOnEnd: 3,
			Idle: &session.IdlePolicy{Lifetime: session.Duration(2 * 24 * time.Hour),
				Use: session.UsePolicy{Window: session.Duration(30 * time.Minute), Any: true, GPU: new(5.0),
					CPU: new(0.5)}},
		},
		Env:       []session.EnvVar{{Name: "SEED", Value: "7"}, {Name: "EMPTY"}},
		Resources: session.Resources{CPU: 2, Memory: 4 * gpu.GiB, Shm: 1 << 30},
		Tuning:    session.Tuning{Threads: 4, MPS: true},
		Mounts:    []session.Mount{{Source: "/data", Target: "data", ReadOnly: true}},
		Access:    session.Access{Ports: []int{8080, 9000, 9001, 9002}}, Schedule: session.Schedule{
			Agent:          "local",
			Priority:       new(0),
			After:          []string{"train-b"},
			PendingTimeout: session.Duration(2 * time.Hour),
		},
		Accelerator: gpu.Request{Shares: 500}, Cluster: 2,
		Label: "vision"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWrongRecipesSayWhereAndWhat(t *testing.T) {
	for text, want := range map[string]struct {
		line int
		says string
	}{
		"":                                 {0, "empty"},
		"image: a\nimagge: b":              {2, "Did you mean image?"},
		"image: a\nimage: b":               {2, "twice"},
		"image: a\ncpu: 2":                 {2, "The fields are name, type"},
		"image: a\nresources:\n  cpu: two": {3, `resources.cpu is "two"`},
		"image: a\nresources:\n  cpu: '2'": {3, "whole number"},
		"image: a\nresources: 4g":          {2, "group of fields"},
		"image: [a]":                       {1, "single value"},
		"image: a\nmounts: /data":          {2, "not a list"},
		"image: a\nmounts:\n- source: /d\n  readOnly: maybe": {4, "neither true nor false"},
		"image: a\nports: [80, x]":                           {2, `"x"`},
		"image: a\nnotBefore: tomorrow":                      {2, "RFC 3339"},
		"image: a\nenv:\n  A: 1\n  A: 2":                     {4, "twice"},
		"image: a\nenv:\n  A: [1]":                           {3, "text"},
		"image: &x a\nname: *x":                              {1, "anchor"},
		"image: a\n---\nimage: b":                            {0, "more than one document"},
		"image: 'a":                                          {0, "invalid YAML"},
		"- image: a":                                         {1, "group of fields"},
		"image: a\n\tname: b":                                {2, "invalid YAML"},
		"image: a\npriority: high":                           {2, `priority is "high"`},
		"image: a\npriority: 1.5":                            {2, "whole number"},
		"image: a\naccelerator: [1]":                         {2, "single value"},
		"image: a\nafter: train-a":                           {2, "not a list"},
		"image: a\nidle: 2h":                                 {2, "group of fields"},
		"image: a\nidle:\n  livetime: 2h":                    {3, "Did you mean lifetime?"},
		"image: a\nidle:\n  use:\n    gpu: low":              {4, `idle.use.gpu is "low"`},
		"image: a\nidle:\n  use:\n    gpu: '5'":              {4, "no number"},
		"image: a\nidle:\n  use:\n    gpu: .nan":             {4, "no number"},
		"image: a\nidle:\n  use:\n    any: 1":                {4, "neither true nor false"},
		"image: a\ncluster: {}":                              {2, "single value"},
	} {
		_, err := Parse([]byte(text))
		var got *Fault
		if !errors.As(err, &got) || got.Line != want.line || !strings.Contains(got.Message+" "+got.Hint, want.says) {
			t.Errorf("%q: %v (hint %q), want line %d and %q", text, err, hintOf(got), want.line, want.says)
		}
	}
}

func hintOf(err *Fault) string {
	if err == nil {
		return ""
	}
	return err.Hint
}

// FuzzParse holds that no file breaks the parser, and that what it took
// is taken again from the spec's own JSON, which is YAML too.
func FuzzParse(f *testing.F) {
	f.Add([]byte(wholeRecipe))
	f.Add([]byte("image: a\nenv: [{name: A, value: '1'}]\nports: 80:81"))
	f.Add([]byte("{image: a, resources: {memory: 1.5g}}"))
	f.Add([]byte("image: !!binary aGk=\n? [a]\n: b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		spec, err := Parse(data)
		var known *Fault
		if err != nil {
			if !errors.As(err, &known) || known.Message == "" || known.Hint == "" {
				t.Fatalf("failed with %v, want what is wrong and what to do", err)
			}
			return
		}
		if spec.NotBefore != nil && (spec.NotBefore.Year() < 0 || spec.NotBefore.Year() > 9999) {
			return
		}
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatalf("%+v has no JSON: %v", spec, err)
		}
		again, err := Parse(text)
		if err != nil {
			t.Fatalf("its own JSON %s is refused: %v", text, err)
		}
		second, err := json.Marshal(again)
		if err != nil || string(second) != string(text) {
			t.Fatalf("read again it is %s, was %s (%v)", second, text, err)
		}
	})
}
