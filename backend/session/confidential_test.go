package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestRegistryOfAnImage(t *testing.T) {
	for ref, want := range map[string]string{
		"python:3.12": "docker.io", "pytorch/pytorch:2.5": "docker.io", "docker.io/library/python": "docker.io",
		"index.docker.io/a/b": "docker.io", "ghcr.io/a/b:1": "ghcr.io", "localhost/a": "localhost",
		"r.test:5000/a@sha256:0": "r.test:5000",
	} {
		if got := RegistryOf(ref); got != want {
			t.Errorf("RegistryOf(%q) = %q, want %q", ref, got, want)
		}
	}
}

func TestRegistriesAreNamedByHostOrAddress(t *testing.T) {
	for text, want := range map[string]string{
		"ghcr.io": "ghcr.io", " https://GHCR.io/v2/ ": "ghcr.io", "https://index.docker.io/v1/": "docker.io",
		"localhost:5000": "localhost:5000", "hub.docker.com": "docker.io",
		"": "", "ghcr": "", "a b.test": "", "r.test:port": "", "-r.test": "", "hf_x=y.test": "",
	} {
		if got := CleanRegistry(text); got != want {
			t.Errorf("CleanRegistry(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestSecretsOfASpecAreNamesOfVariables(t *testing.T) {
	spec := Spec{Image: "python:3.12", Env: []EnvVar{{Name: "A", Value: "b"}},
		Secrets: []string{"HF_TOKEN", "A", "not a name", "SLIPWAY_X", "HF_TOKEN", strings.Repeat("X", 300)}}
	var wrong []string
	for _, e := range spec.Validate(time.Now(), Limits{}) {
		wrong = append(wrong, e.Field+" "+string(e.Kind))
	}
	want := "secrets[1] duplicate, secrets[2] invalid, secrets[3] reserved, secrets[4] duplicate, secrets[5] invalid"
	if got := strings.Join(wrong, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestValuesMustFitTheSecrets(t *testing.T) {
	spec := Spec{Secrets: []string{"A", "B"}}
	for name, c := range map[string]struct {
		given Confidential
		field string
	}{
		"one is missing": {Confidential{Secrets: []EnvVar{{Name: "A", Value: "1"}}}, "secrets[1]"},
		"one is unknown": {Confidential{Secrets: []EnvVar{{Name: "A"}, {Name: "B"}, {Name: "C"}}}, "secrets[0]"},
		"one has a NUL":  {Confidential{Secrets: []EnvVar{{Name: "A"}, {Name: "B", Value: "\x00"}}}, "secrets[1]"},
		"half a login": {Confidential{Secrets: []EnvVar{{Name: "A"}, {Name: "B"}},
			Login: &RegistryLogin{Server: "https://ghcr.io", User: "ada", Password: "p"}}, "image"},
	} {
		wrong := c.given.Check(spec)
		if len(wrong) != 1 || wrong[0].Field != c.field {
			t.Errorf("%s: %+v", name, wrong)
		}
	}
	fits := Confidential{Secrets: []EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "1"}},
		Login: &RegistryLogin{Server: "ghcr.io", User: "ada", Password: "p"}}
	if wrong := fits.Check(spec); len(wrong) > 0 {
		t.Errorf("what fits is refused: %+v", wrong)
	}
}

func TestTheTokenOfAProxyIsNotPrinted(t *testing.T) {
	const token = "TESTTESTTESTTESTTESTTESTTE"
	var build ProjectBuild
	if err := json.Unmarshal([]byte(`{"proxy":"`+token+`"}`), &build); err != nil || build.Proxy != token {
		t.Errorf("it is read as %q, %v", string(build.Proxy), err)
	}
	if said := fmt.Sprintf("%v %+v %s", build, build, build.Proxy); strings.Contains(said, token) {
		t.Errorf("it is in %s", said)
	}
	for _, wrong := range []string{"", token[:25], strings.Repeat(token, 3), token + "@", strings.ToLower(token)} {
		if err := json.Unmarshal([]byte(`"`+wrong+`"`), &build.Proxy); CodeOf(err) != CodeAgentInvalid {
			t.Errorf("%q is accepted: %v", wrong, err)
		}
	}
}
