//go:build linux && !race

package cli

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// inspected is what Docker says of a container.
func inspected(t *testing.T, container string) string {
	t.Helper()
	address := strings.TrimPrefix(enginetest.RequireDocker(t), "unix://")
	docker := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return new(net.Dialer).DialContext(ctx, "unix", address)
	}}}
	answer, err := docker.Get("http://docker/containers/" + container + "/json")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("docker inspect: %s, %v", data, err)
	}
	return string(data)
}

// TestSecretsAreNowhereElse stores a secret, starts a session and builds an image with it on Docker, and looks for its
// value in everything that is shown and kept.
func TestSecretsAreNowhereElse(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds and runs the whole program")
	}
	enginetest.RequireDocker(t)
	p := install(t, "docker")
	p.env = append(p.env, "SLIPWAY_KEYRING=off")
	const value = "hf_Sw0rdf1sh-of-the-test"
	if got := p.with(value+"\n", "secret", "set", "HF_TOKEN"); got.code != ExitOK {
		t.Fatalf("secret set: %+v", got)
	}
	_, seen := watchProcesses(t, value)
	s := p.launch("with-secret", "--cpu", "1", "--mem", "256m", "--secret", "HF_TOKEN")
	has := func() {
		t.Helper()
		// from stdin, as an argument of the test's own would be found
		script := `test "$HF_TOKEN" = ` + value + "\nexit $?\n"
		if got := p.with(script, "exec", "-i", "with-secret", "--", "sh"); got.code != ExitOK {
			t.Errorf("the variable is not in the session: %+v", got)
		}
	}
	has()
	p.must("shutdown")
	has() // after a restart of the agent
	dir := filepath.Join(t.TempDir(), "built")
	enginetest.WriteFiles(t, dir, "Dockerfile", "FROM "+p.image+"\nRUN --mount=type=secret,id=HF_TOKEN,required=true "+
		"grep -q hf_ /run/secrets/HF_TOKEN && echo "+rand.Text()+" >/read\n")
	p.must("up", "--yes", "--mem", "256m", dir, "test", "-e", "/read")
	built := p.session("show", "built").Spec.Image
	p.must("stop", "--wait", "-y", "built")
	p.must("image", "rm", "-y", built)
	for _, line := range seen() {
		if !strings.HasPrefix(line, "environ") { // of the person's own processes in the container
			t.Errorf("a process shows the value: %s", line)
		}
	}
	if text := inspected(t, s.Container()); strings.Contains(text, value) || !strings.Contains(text, "Config") {
		t.Errorf("docker inspect shows the value:\n%s", text)
	}
	for _, args := range [][]string{{"show", "with-secret"}, {"history", "with-secret"},
		{"recipe", "export", "with-secret"}, {"recipe", "export", "with-secret", "--as", "docker"},
		{"recipe", "export", "with-secret", "--as", "run"}, {"ps", "-a"},
		{"secret", "ls"}, {"logs", "with-secret"}, {"diagnostics"}} {
		for _, form := range []string{outputTable, outputJSON} {
			text := p.must(append(args, "-o", form)...)
			if strings.Contains(text, value) {
				t.Errorf("slipway %q shows the value:\n%s", args, text)
			}
			if args[0] == "recipe" && !strings.Contains(text, "HF_TOKEN") {
				t.Errorf("slipway %q does not name the secret:\n%s", args, text)
			}
		}
	}
	p.kept(value, filepath.Join(p.home.Dir, "secrets.json"), string(s.ID), "config.json")
	p.must("commit", "with-secret", "secret-free")
	p.must("stop", "--wait", "-y", "with-secret")
	p.must("shutdown")
	p.kept(value, filepath.Join(p.home.Dir, "secrets.json"))
	if s := p.session("show", string(s.ID)); s.Status != session.Terminated || !slices.Equal(s.Spec.Secrets,
		[]string{"HF_TOKEN"}) {
		t.Errorf("the session ended as %+v", s)
	}
	p.must("image", "rm", "-y", "slipway-custom/"+s.Owner+":secret-free")
}

// kept fails the test unless exactly these files have a text, and no other user can read them.
func (p *installed) kept(text string, names ...string) {
	p.t.Helper()
	found, _ := filesWith(p.t, p.home.Dir, text)
	if len(found) != len(names) {
		p.t.Errorf("the value is in %q, want %q", found, names)
	}
	for _, path := range found {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || !slices.ContainsFunc(names,
			func(name string) bool { return strings.HasSuffix(path, name) }) {
			p.t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}
}
