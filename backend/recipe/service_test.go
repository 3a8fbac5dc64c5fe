package recipe

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

func sampleService() Service {
	rule := session.ScalingRule{Source: "router", Metric: "outstanding", ScaleUp: new(8.5), ScaleDown: new(0.0),
		StepSize: 2, Window: session.Duration(time.Minute), MaxReplicas: 4}
	return Service{Name: "llama",
		ServiceWish: session.ServiceWish{Replicas: 2, Sleep: session.Duration(30 * time.Minute), MaySleep: true,
			Retry: true, Rules: []session.ScalingRule{rule}},
		Spec: session.Spec{Image: "llama-server", Resources: session.Resources{CPU: 4, Memory: 8 * gpu.GiB},
			Accelerator: gpu.Request{Shares: 500}, Env: []session.EnvVar{{Name: "SEED", Value: "7"}},
			Mounts: []session.Mount{{Folder: "models", Target: "models"}},
			Access: session.Access{Serving: &session.Serving{Port: 8000, Models: []string{"a", "b"},
				Command: []string{"/app/llama-server", "--model", "models/a b.gguf"},
				Health:  session.Health{Path: "/healthz", InitialDelay: session.Duration(30 * time.Minute)}}}}}
}

func TestAServiceIsReadAsItIsWritten(t *testing.T) {
	want := sampleService()
	set := want
	set.Spec.Type, set.Spec.Name = session.Inference, "llama-7"
	serving := *want.Spec.Serving
	serving.Service, serving.Revision = "llama", 3
	set.Spec.Serving = &serving
	text := WriteService(set, "A note.")
	got, err := ParseService(text)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v\nfrom\n%s", err, got, want, text)
	}
	if set.Spec.Serving.Revision != 3 || !strings.Contains(string(text), "\n# A note.\n") {
		t.Errorf("wrote\n%s\nof %+v", text, set)
	}
}

func TestARecipeOfAServiceHasNoSecrets(t *testing.T) {
	s := sampleService()
	s.Spec.Env = append(s.Spec.Env, session.EnvVar{Name: "HF_TOKEN", Value: "hunter2"})
	text := string(WriteService(s))
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "HF_TOKEN:") {
		t.Errorf("wrote\n%s", text)
	}
}

func TestWrongServicesNameTheLine(t *testing.T) {
	const serving = "spec:\n  image: a\n  serving:\n    port: 8000\n"
	for text, want := range map[string]Fault{
		"name: a\nowner: b\n" + serving:            {Line: 2, Message: `"owner" is not a field here.`},
		"name: a\nbyAdmin: true\n" + serving:       {Line: 2, Message: `"byAdmin" is not a field here.`},
		"tokens: []\n" + serving:                   {Line: 1, Message: `"tokens" is not a field here.`},
		"replicas: two\n" + serving:                {Line: 1, Message: `replicas is "two", which is no whole number.`},
		"sleep: soon\n" + serving:                  {Line: 1},
		serving + "    command: serve me\n":        {Line: 5, Message: "spec.serving.command is not a list."},
		serving + "rules:\n- metricNme: waiting\n": {Line: 6, Message: `"metricNme" is not a field here.`},
		"image: a\n": {Line: 1, Message: `"image" is not a field here.`},
		"spec:\n  image: a\n": {
			Message: "this is not the recipe of a service: it has no spec with serving."},
	} {
		var got *Fault
		if _, err := ParseService([]byte(text)); !errors.As(err, &got) || got.Line != want.Line ||
			want.Message != "" && got.Message != want.Message {
			t.Errorf("%q fails with %+v, want %+v", text, got, want)
		}
	}
}

// FuzzService holds that no file breaks the parser, and that what it took is written in a way that is read as the same.
func FuzzService(f *testing.F) {
	f.Add(WriteService(sampleService()))
	f.Add([]byte("name: a\nrules: [{metricSource: router, scaleUpThreshold: 1e3}]\nspec: {serving: {port: 1}}\n"))
	f.Add([]byte(`{"spec":{"serving":{"port":8000,"command":["\u0000"]},"env":{"A_TOKEN":null}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := ParseService(data)
		if err != nil || first.Spec.NotBefore != nil { // years beyond 9999 are not written
			return
		}
		text := WriteService(first)
		again, err := ParseService(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if twice := WriteService(again); string(twice) != string(text) {
			t.Errorf("first\n%s\nthen\n%s", text, twice)
		}
	})
}
