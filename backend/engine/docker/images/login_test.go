package images

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/registry"

	"slipway/backend/session"
)

func TestLoginIsFoundWhereDockerKeepsIt(t *testing.T) {
	pair := base64.StdEncoding.EncodeToString([]byte("ada:pass"))
	for _, c := range []struct {
		name, config, domain string
		want                 registry.AuthConfig
	}{
		{"none", `{}`, "r.test", registry.AuthConfig{}},
		{"for this registry", `{"auths":{"r.test":{"auth":"` + pair + `"}}}`, "r.test",
			registry.AuthConfig{Username: "ada", Password: "pass", ServerAddress: "r.test"}},
		{"for this registry by its URL", `{"auths":{"https://r.test/v1/":{"auth":"` + pair + `"}}}`, "r.test",
			registry.AuthConfig{Username: "ada", Password: "pass", ServerAddress: "r.test"}},
		{"for another one", `{"auths":{"q.test":{"auth":"` + pair + `"}}}`, "r.test", registry.AuthConfig{}},
		{"for Docker Hub", `{"auths":{"https://index.docker.io/v1/":{"auth":"` + pair + `"}}}`, "docker.io",
			registry.AuthConfig{Username: "ada", Password: "pass", ServerAddress: hubServer}},
		{"a token", `{"auths":{"r.test":{"identitytoken":"tok"}}}`, "r.test",
			registry.AuthConfig{IdentityToken: "tok", ServerAddress: "r.test"}},
		{"from a store", `{"credsStore":"test"}`, "r.test", registry.AuthConfig{Username: "eve", Password: "kept",
			ServerAddress: "r.test"}},
		{"from a helper for one registry", `{"credHelpers":{"token.test":"test"}}`, "token.test",
			registry.AuthConfig{IdentityToken: "kept", ServerAddress: "token.test"}},
		{"from a store that has none", `{"credsStore":"test"}`, "none.test", registry.AuthConfig{}},
		{"from the file where the store has none", `{"credsStore":"test","auths":{"none.test":{"auth":"` + pair +
			`"}}}`, "none.test", registry.AuthConfig{Username: "ada", Password: "pass", ServerAddress: "none.test"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			writeTestFile(t, filepath.Join(dir, "config.json"), c.config)
			header, err := credentials{dir: dir, ask: askTest}.header(t.Context(), c.domain)
			if err != nil {
				t.Fatal(err)
			}
			var got registry.AuthConfig
			if header != "" {
				found, err := registry.DecodeAuthConfig(header)
				if err != nil {
					t.Fatal(err)
				}
				got = *found
			}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// askTest plays a credential helper.
func askTest(_ context.Context, program, server string) ([]byte, error) {
	switch {
	case program != "docker-credential-test":
		return nil, errors.New("no such program")
	case server == "none.test":
		return []byte("credentials not found in native keychain\n"), errors.New("exit status 1")
	case server == "token.test":
		return []byte(`{"Username":"<token>","Secret":"kept"}`), nil
	}
	return []byte(`{"Username":"eve","Secret":"kept"}`), nil
}

func TestLoginThatCannotBeReadSaysSo(t *testing.T) {
	for name, config := range map[string]string{"broken file": `{"auths":`, "missing helper": `{"credsStore":"gone"}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTestFile(t, filepath.Join(dir, "config.json"), config)
			_, err := credentials{dir: dir, ask: askTest}.header(t.Context(), "r.test")
			if session.CodeOf(err) != "engine_pull_forbidden" {
				t.Errorf("got %v", err)
			}
		})
	}
	if header, err := (credentials{dir: t.TempDir()}).header(t.Context(), "r.test"); header != "" || err != nil {
		t.Errorf("without any configuration: %q, %v", header, err)
	}
}

func writeTestFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
