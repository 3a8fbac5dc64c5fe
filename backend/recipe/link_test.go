package recipe

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"slipway/backend/session"
	"slipway/gpu"
)

func TestLinksAreRead(t *testing.T) {
	whole := base64.RawURLEncoding.EncodeToString([]byte("image: python:3.12\nresources: {cpu: 2}\n"))
	for text, want := range map[string]Link{
		"slipway://open/train-a": {Kind: "open", Session: "train-a"},
		"slipway://project?address=https%3A%2F%2Fexample.com%2Fa.git%40v2%23b": {Kind: "project",
			Project: "https://example.com/a.git@v2#b"},
		"slipway://run?image=python%3A3.12": {Kind: "run", Spec: &session.Spec{Image: "python:3.12"}},
		"slipway://run?image=a&cpu=2&memory=4g&accelerator=0.5&env=A%3Db%3Dc&port=8080&folder=data:d": {Kind: "run",
			Spec: &session.Spec{Image: "a", Accelerator: gpu.Request{Shares: 500},
				Resources: session.Resources{CPU: 2, Memory: 4 * gpu.GiB},
				Env:       []session.EnvVar{{Name: "A", Value: "b=c"}}, Access: session.Access{Ports: []int{8080}},
				Mounts: []session.Mount{{Folder: "data", Target: "d"}}}},
		"slipway://run?recipe=" + whole + "&name=train-b": {Kind: "run",
			Spec: &session.Spec{Name: "train-b", Image: "python:3.12", Resources: session.Resources{CPU: 2}}},
	} {
		got, err := ParseLink(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func TestWrongLinksAreRefused(t *testing.T) {
	for text, says := range map[string]string{
		"https://run?image=a":                                 "not a Slipway link",
		"slipway://delete/everything":                         "no links to",
		"slipway://open/../../etc":                            "no session",
		"slipway://run?cpu=2":                                 "no image",
		"slipway://project?address=/etc":                      "not the address of a git repository",
		"slipway://project?address=https://a:hunter2@b/c":     "a user or a password in the address",
		"slipway://project?address=https://hunter2@b/c":       "a user or a password in the address",
		"slipway://project?address=https://b/c?t=hunter2":     "a query in the address",
		"slipway://run?image=a&cpu=many":                      "whole number",
		"slipway://run?image=a&mount=/etc":                    "not allowed in a link",
		"slipway://run?image=a&env=HF_TOKEN=hunter2":          "looks secret",
		"slipway://run?recipe=!!":                             "base64url",
		"slipway://run?recipe=aW1hZ2dlOiBh":                   "not a field",
		"slipway://run?recipe=aW1hZ2U6IGEKc2VjcmV0czogW1hdCg": "your secrets: X",
		"slipway://run?image=%zz":                             "not a valid URL",
		"slipway://run?image=" + strings.Repeat("a", maxLink): "32 KiB",
	} {
		_, err := ParseLink(text)
		var fault *Fault
		if !errors.As(err, &fault) || !strings.Contains(fault.Message, says) || fault.Hint == "" ||
			strings.Contains(fault.Message, "hunter2") {
			t.Errorf("%.60s: %v, want %q", text, err, says)
		}
	}
}
