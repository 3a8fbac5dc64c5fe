//go:build linux && !race

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
)

// gitHere returns what a Dockerfile copies to have this computer's git: its program and libraries, the image is of the
// same release of the distribution.
func gitHere(t *testing.T) (files []string) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "ldd", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{program}
	for _, found := range regexp.MustCompile(`(?m)=> (/\S+/lib(?:pcre|z)\S+)`).FindAllStringSubmatch(string(said), -1) {
		paths = append(paths, found[1])
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, "git/"+filepath.Base(path), string(data))
	}
	return files
}

// TestGitWorksInASessionOfAProject commits in a mounted directory that belongs to another user, and as an
// administrator.
func TestGitWorksInASessionOfAProject(t *testing.T) {
	leaveOutIfShort(t)
	config := filepath.Join(t.TempDir(), "gitconfig")
	if err := os.WriteFile(config, []byte("[user]\nname = Ada L\nemail = ada@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	p := installOn(t, "docker", enginetest.RequireDocker(t))
	dir := filepath.Join(t.TempDir(), "paper")
	enginetest.WriteFiles(t, dir, gitHere(t)...)
	enginetest.WriteFiles(t, dir, ".gitignore", "git\n", "Dockerfile", "FROM "+p.image+`
COPY git /git/
ENV LD_LIBRARY_PATH=/git
RUN chmod +x /git/git && ln -s /git/git /usr/local/bin/git
`)
	if said, err := exec.CommandContext(t.Context(), "git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, said)
	}
	for _, args := range [][]string{{"chown", "-R", "4321:4321", dir}, {"chmod", "-R", "a+rwX", dir}} {
		if said, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, said)
		}
	}
	const commit = " && git status --short && git add . && git commit -q -m all && git log -1 --format='%an <%ae>'"
	const by = "Ada L <ada@example.com>\n"
	got := p.do("up", "--mem", "256m", dir, "sh", "-c", "cd paper"+commit)
	if got.code != ExitOK || got.stdout != "?? .gitignore\n?? Dockerfile\n"+by {
		t.Errorf("in the mounted directory: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	image := p.session("show", "paper").Image
	got = p.do("exec", "paper", "--", "sh", "-c", "cd paper && git config user.name Bob && echo >>Dockerfile"+commit)
	if got.stdout != " M Dockerfile\nBob <ada@example.com>\n" {
		t.Errorf("with an author in .git/config: %+v", got)
	}
	p.must("stop", "--wait", "paper")
	got = p.do("run", "--admin", "--mem", "256m", "--image", image, "--name", "root", "sh", "-c",
		"git init -q own && cd own && touch new"+commit)
	if !strings.HasSuffix(got.stdout, "?? new\n"+by) {
		t.Errorf("as an administrator: %+v", got)
	}
	p.do("stop", "--wait", "root")
	if recipe := p.must("recipe", "export", "root"); strings.Contains(recipe, "ada@example.com") {
		t.Errorf("the recipe has the address: %s", recipe)
	}
	p.forgetsProjects()
}
