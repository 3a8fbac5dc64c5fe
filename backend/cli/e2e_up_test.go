//go:build linux && !race

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
)

// opensProjects goes from a directory, and from a repository, to a command in a session of its image.
func (p *installed) opensProjects(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "paper")
	enginetest.WriteFiles(t, dir, "Dockerfile", "FROM "+p.image+"\nENV PAPER=1\nCOPY said /said\n")
	enginetest.WriteFiles(t, dir, "said", "one\n")
	up := func(args ...string) result {
		return p.do(append([]string{"up", "--mem", "256m", "--environment", p.image}, args...)...)
	}
	first := up(dir, "cat", "paper/said")
	if first.code != 0 || first.stdout != "one\n" || !strings.Contains(first.stderr, "Build the image") {
		t.Fatalf("up: %+v", first)
	}
	if p.image == enginetest.ImageMinimal {
		if got := p.must("exec", "paper", "--", "sh", "-c", "cat /said; echo $PAPER"); got != "one\n1\n" {
			t.Errorf("the image has %q", got)
		}
	}
	again := up(dir, "cat", "paper/said")
	if again.code != 0 || again.stdout != "one\n" || strings.Contains(again.stderr, "Build the image") {
		t.Errorf("up again: %+v", again)
	}
	enginetest.WriteFiles(t, dir, "said", "two\n")
	if got := up(dir); got.code == 0 || !strings.Contains(got.stderr, "older image") {
		t.Errorf("up with another file: %+v", got)
	}
	p.must("stop", "--wait", "paper")
	if got := up(dir, "cat", "paper/said"); got.stdout != "two\n" || !strings.Contains(got.stderr, "Build the image") ||
		!strings.Contains(got.stderr, "has changed since its image was built") {
		t.Errorf("up after the stop: %+v", got)
	}
	p.must("stop", "--wait", "paper")
	got := up("paper", "cat", "paper/said")
	if got.stdout != "two\n" || strings.Contains(got.stderr, "Build the image") {
		t.Errorf("up by its name: %+v", got)
	}
	p.must("stop", "--wait", "paper")
	p.opensARepository(t, dir)
	p.setsUp(t)
	for _, one := range p.sessions("ps") {
		if one.Name != "e2e-one" && one.Name != "e2e-two" {
			t.Errorf("%s is left", one.Name)
		}
	}
	p.forgetsProjects()
}

// opensARepository clones a repository of the project, with the branch and the directory that its address names.
func (p *installed) opensARepository(t *testing.T, dir string) {
	far, into := filepath.Join(t.TempDir(), "thesis.git"), t.TempDir()
	for _, args := range [][]string{
		{"init", "-q", "-b", "draft", dir}, {"-C", dir, "add", "."},
		{"-C", dir, "-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-q", "-m", "all"},
		{"clone", "-q", "--bare", dir, far},
	} {
		if said, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, said)
		}
	}
	cmd := p.command("up", "--mem", "256m", "file://"+far+"@draft", "cat", "thesis/said")
	cmd.Dir = into
	said, err := cmd.Output()
	if err != nil || string(said) != "two\n" {
		t.Errorf("up of a repository: %q, %v", said, err)
	}
	if _, err := os.Stat(filepath.Join(into, "thesis", ".git")); err != nil {
		t.Error(err)
	}
	if got := p.do("up", "https://ada:secret@example.com/x.git"); got.code != ExitUsage ||
		strings.Contains(got.stderr, "secret") {
		t.Errorf("a password in an address: %+v", got)
	}
	p.must("stop", "--wait", "thesis")
}

// setsUp has a session run what a devcontainer.json asks for after its start, with its output in the log.
func (p *installed) setsUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "contained")
	enginetest.WriteFiles(t, dir, ".devcontainer.json",
		`{"image": "`+p.image+`", "postCreateCommand": "echo set up in $(pwd); echo done > made"}`)
	if got := p.do("up", "--mem", "256m", "--wait", dir); got.code != 0 ||
		!strings.Contains(got.stderr, "Its commands run in the session") {
		t.Fatalf("up: %+v", got)
	}
	made := p.must("exec", "contained", "--", "sh", "-c",
		"while ! [ -s contained/made ]; do sleep 0.1; done; cat contained/made")
	log := p.must("logs", "contained")
	if made != "done\n" || !strings.Contains(log, "postCreateCommand\nset up in /home/work/contained\n") {
		t.Errorf("it made %q and logged %q", made, log)
	}
	p.must("stop", "--wait", "contained")
}

// forgetsProjects removes the images of its projects. Other tests build their own with the same daemon meanwhile.
func (p *installed) forgetsProjects() {
	of := map[string]bool{}
	for _, s := range p.sessions("ps", "-a") {
		of[s.Spec.Image] = true
	}
	for image := range of {
		if strings.Contains(image, ":project-") {
			p.must("image", "rm", "--yes", image)
		}
	}
}
