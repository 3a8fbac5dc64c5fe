package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/session"
)

// writeContext makes a Docker context in a configuration directory.
func writeContext(t *testing.T, dir, name, host string, tls bool) string {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	writeTestFile(t, filepath.Join(dir, "contexts/meta", id, "meta.json"),
		fmt.Sprintf(`{"Name":%q,"Endpoints":{"docker":{"Host":%q}}}`, name, host))
	if !tls {
		return ""
	}
	at := filepath.Join(dir, "contexts/tls", id, "docker")
	writeTestFile(t, filepath.Join(at, "ca.pem"), "")
	return at
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

func TestHostIsFoundAsTheDockerCommandFindsIt(t *testing.T) {
	dir := t.TempDir()
	writeTestFile(t, filepath.Join(dir, "config.json"), `{"currentContext": "lab"}`)
	writeContext(t, dir, "lab", "unix:///lab.sock", false)
	certificates := writeContext(t, dir, "far", "tcp://far:2376", true)
	plain := t.TempDir()
	for _, c := range []struct {
		name, host, config string
		env                map[string]string
		answers            string
		want               endpoint
	}{
		{"what was configured wins", "unix:///mine.sock", dir, map[string]string{"DOCKER_HOST": "unix:///other.sock"},
			"", endpoint{host: "unix:///mine.sock"}},
		{"DOCKER_HOST before any context", "", dir, map[string]string{"DOCKER_HOST": "unix:///env.sock",
			"DOCKER_CONTEXT": "far"}, "", endpoint{host: "unix:///env.sock"}},
		{"DOCKER_CONTEXT before the current one", "", dir, map[string]string{"DOCKER_CONTEXT": "far"}, "",
			endpoint{host: "tcp://far:2376", tls: certificates}},
		{"the current context", "", dir, nil, "/b.sock", endpoint{host: "unix:///lab.sock"}},
		{"the context default is the default socket", "", dir, map[string]string{"DOCKER_CONTEXT": "default"},
			"/a.sock", endpoint{host: "unix:///a.sock"}},
		{"the first socket that answers", "", plain, nil, "/b.sock", endpoint{host: "unix:///b.sock"}},
		{"the machine's own if none answers", "", plain, nil, "", endpoint{host: "unix:///var/run/docker.sock"}},
		{"certificates by DOCKER_CERT_PATH", "", plain, map[string]string{"DOCKER_HOST": "tcp://x:2376",
			"DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": "/certs"}, "", endpoint{host: "tcp://x:2376", tls: "/certs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := resolveHost(c.host, environment{
				getenv: func(name string) string { return c.env[name] }, config: c.config,
				sockets: []string{"/a.sock", "/b.sock"},
				answers: func(socket string) bool { return socket == c.answers },
			})
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestHostThatCannotBeUsedSaysWhy(t *testing.T) {
	for name, want := range map[string]session.Code{"ssh": "engine_create_unsupported",
		"missing": "server_start_invalid"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeContext(t, dir, "ssh", "ssh://ada@lab", false)
			_, err := resolveHost("", environment{
				getenv: func(v string) string { return map[string]string{"DOCKER_CONTEXT": name}[v] }, config: dir})
			if session.CodeOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if _, err := Open("nonsense", nil); session.CodeOf(err) != "server_start_invalid" {
		t.Errorf("got %v for an address that makes no sense", err)
	}
}

func TestPodmanComesAfterDocker(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	t.Setenv("HOME", "/home/ada")
	want := []string{"/var/run/docker.sock", "/run/user/7/docker.sock", "/home/ada/.docker/run/docker.sock",
		"/home/ada/.docker/desktop/docker.sock", "/run/user/7/podman/podman.sock", "/run/podman/podman.sock"}
	if got := defaultSockets(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
