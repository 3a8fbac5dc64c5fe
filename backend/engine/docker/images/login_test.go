package images

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/docker/docker/api/types/registry"

	"slipway/backend/session"
)

func TestLoginIsFoundWhereDockerKeepsIt(t *testing.T) {
	withTestHelper(t)
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
		{"emptied by a store", `{"auths":{"r.test":{}}}`, "r.test", registry.AuthConfig{}},
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
			header, err := loginHeader(t.Context(), dir, c.domain)
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

// withTestHelper puts a credential helper named test first in the PATH.
func withTestHelper(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "docker-credential-test")
	writeTestFile(t, path, `#!/bin/sh
[ "$1" = get ] || exit 2
read -r server
case $server in
none.test) echo "credentials not found in native keychain"; exit 1 ;;
token.test) echo '{"Username":"<token>","Secret":"kept"}' ;;
broken.test) echo "a login" ;;
slow.test) exec sleep 600 ;;
*) echo '{"Username":"eve","Secret":"kept"}' ;;
esac
`)
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func TestAHelperEndsWithThePull(t *testing.T) {
	withTestHelper(t)
	dir := t.TempDir()
	writeTestFile(t, filepath.Join(dir, "config.json"), `{"credsStore":"test"}`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := loginHeader(ctx, dir, "slow.test"); session.CodeOf(err) != "engine_pull_forbidden" {
		t.Errorf("got %v", err)
	}
}

func TestLoginThatCannotBeReadSaysSo(t *testing.T) {
	withTestHelper(t)
	for name, config := range map[string]string{
		"broken file": `{"auths":`, "missing helper": `{"credsStore":"gone"}`,
		"helper that answers something else": `{"credHelpers":{"broken.test":"test"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTestFile(t, filepath.Join(dir, "config.json"), config)
			_, err := loginHeader(t.Context(), dir, "broken.test")
			if session.CodeOf(err) != "engine_pull_forbidden" {
				t.Errorf("got %v", err)
			}
		})
	}
	if header, err := loginHeader(t.Context(), t.TempDir(), "r.test"); header != "" || err != nil {
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
