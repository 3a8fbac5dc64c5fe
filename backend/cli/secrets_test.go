package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"slipway/backend/hub"
)

// with runs the command line with a text on stdin.
func (f *plane) with(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	config := testConfig(f.home, nil, &stdout, &stderr, args)
	config.Stdin = strings.NewReader(stdin)
	code := Main(t.Context(), config)
	return result{code, stdout.String(), stderr.String()}
}

func TestSecretsAreReadFromStdin(t *testing.T) {
	f := newPlane(t)
	var sent []hub.SecretContent
	f.handle("PUT /api/v1/secrets", func(w http.ResponseWriter, r *http.Request) {
		var content hub.SecretContent
		if err := json.NewDecoder(r.Body).Decode(&content); err != nil {
			t.Error(err)
		}
		sent = append(sent, content)
		reply(w, http.StatusOK, hub.Secret{Kind: content.Kind, Name: content.Name, User: content.User, Kept: "keyring",
			UpdatedAt: noon})
	})
	got := f.with(t, "hush\n", "secret", "set", "HF_TOKEN")
	if got.code != ExitOK || got.stdout != "HF_TOKEN is stored in the keyring.\n" {
		t.Errorf("secret set: %+v", got)
	}
	if got = f.with(t, " key \r\n", "registry", "login", "nvcr.io", "-u", "$oauthtoken"); got.code != ExitOK {
		t.Errorf("registry login: %+v", got)
	}
	want := []hub.SecretContent{{Kind: "variable", Name: "HF_TOKEN", Value: "hush"},
		{Kind: "registry", Name: "nvcr.io", User: "$oauthtoken", Value: " key "}}
	if len(sent) != 2 || sent[0] != want[0] || sent[1] != want[1] {
		t.Errorf("sent %+v", sent)
	}
	for _, args := range [][]string{{"secret", "set", "HF_TOKEN=hush"}, {"registry", "login", "nvcr.io"},
		{"run", "--secret", "HF_TOKEN=hush", "python:3.12"}} {
		if got := f.with(t, "hush", args...); got.code != ExitUsage || strings.Contains(got.stderr, "hush") {
			t.Errorf("slipway %q: %+v", args, got)
		}
	}
	if got := f.with(t, "", "secret", "set", "HF_TOKEN"); got.code == ExitOK || len(sent) != 2 {
		t.Errorf("without a value: %+v", got)
	}
}

func TestSecretsAreListedByKind(t *testing.T) {
	f := newPlane(t)
	f.handle("GET /api/v1/secrets", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []hub.Secret{{Kind: "variable", Name: "HF_TOKEN", Kept: "keyring", UpdatedAt: noon},
			{Kind: "registry", Name: "ghcr.io", User: "ada", Kept: "file", UpdatedAt: noon}})
	})
	var deleted []string
	f.handle("DELETE /api/v1/secrets/{kind}/{name}", func(w http.ResponseWriter, r *http.Request) {
		deleted = append(deleted, r.PathValue("kind")+" "+r.PathValue("name"))
		w.WriteHeader(http.StatusNoContent)
	})
	for _, c := range []struct{ args, has, lacks string }{
		{"secret list", "the keyring", "ghcr.io"}, {"registry ls", "a file that only you can read", "HF_TOKEN"},
	} {
		got := f.run(t, strings.Fields(c.args)...)
		if got.code != ExitOK || !strings.Contains(got.stdout, c.has) || strings.Contains(got.stdout, c.lacks) {
			t.Errorf("slipway %s: %+v", c.args, got)
		}
	}
	f.run(t, "secret", "remove", "HF_TOKEN")
	f.run(t, "registry", "logout", "ghcr.io")
	if got := strings.Join(deleted, ", "); got != "variable HF_TOKEN, registry ghcr.io" {
		t.Errorf("deleted %s", got)
	}
}
