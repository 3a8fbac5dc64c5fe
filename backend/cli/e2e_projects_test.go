//go:build linux && !race

package cli

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
)

// kind is a small project of one kind.
type kind struct {
	files []string // pairs of a path and a content
	sub   string   // the directory of the project in it
	run   string   // what says hello from tiny in the session
	wrong string   // what is said instead, if it cannot be built
}

// shelf is the project whose image the others extend: packages for pip and apt, which no network is asked for.
func shelf(t *testing.T) []string {
	return []string{"Dockerfile", "FROM " + enginetest.ImagePip + `
COPY tiny-1.0-py3-none-any.whl /packages/
RUN cd /packages && mkdir -p deb/DEBIAN deb/opt simple/tiny && echo hello from tiny >deb/opt/tiny \
    && printf 'Package: tiny-words\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.com>\n' >control \
    && { cat control; echo Description: words; } >deb/DEBIAN/control \
    && dpkg-deb -b deb tiny.deb && { dpkg-deb -f tiny.deb; echo Filename: ./tiny.deb; \
        echo Size: $(stat -c %s tiny.deb); echo SHA256: $(sha256sum tiny.deb | cut -d ' ' -f 1); } >Packages \
    && rm -f /etc/apt/sources.list /etc/apt/sources.list.d/* \
    && echo deb [trusted=yes] file:/packages ./ >/etc/apt/sources.list \
    && printf '[global]\nno-index = true\nfind-links = /packages /usr/share/python-wheels\n' >/etc/pip.conf
COPY index.html /packages/simple/tiny/
`, "tiny-1.0-py3-none-any.whl", enginetest.Wheel(t, "tiny"),
		"index.html", "<a href=../../tiny-1.0-py3-none-any.whl>tiny-1.0-py3-none-any.whl</a>\n"}
}

// projects are twenty projects, one for each kind of file, of which the last two are broken.
func projects(t *testing.T, base string) map[string]kind {
	from := "FROM " + base
	const hello = "cd /tmp && python3 -c 'import tiny; tiny.hello()'"
	const code = "def hello(): print('hello from tiny')\n"
	locked := fmt.Sprintf(`{"_meta": {"hash": {"sha256": ""}, "pipfile-spec": 6, "requires": {}, "sources": [
		{"name": "here", "url": "file:///packages/simple", "verify_ssl": false}]}, "develop": {}, "default": {
		"tiny": {"version": "==1.0", "index": "here", "hashes": ["sha256:%x"]}}}`,
		sha256.Sum256([]byte(enginetest.Wheel(t, "tiny"))))
	return map[string]kind{
		"requirements": {files: []string{"requirements.txt", "tiny==1.0\n"}, run: hello},
		"binder": {files: []string{"binder/requirements.txt", "tiny\n", "requirements.txt", "nonsense"},
			run: hello},
		"wheels": {files: []string{"requirements.txt", "./other-1.0-py3-none-any.whl\n",
			"other-1.0-py3-none-any.whl", enginetest.Wheel(t, "other")},
			run: "cd /tmp && python3 -c 'import other; other.hello()' | sed s/other/tiny/"},
		"setup": {files: []string{"setup.py",
			"from setuptools import setup\nsetup(name='tiny', version='1', py_modules=['tiny'])\n", "tiny.py", code},
			run: hello},
		"pyproject": {files: []string{"pyproject.toml", "[build-system]\nrequires = ['setuptools', 'wheel']\n" +
			"build-backend = 'setuptools.build_meta'\n[project]\nname = 'own'\nversion = '1'\n" +
			"dependencies = ['tiny']\n" +
			"[tool.setuptools]\npy-modules = ['own']\n", "own.py", "import tiny\n"},
			run: "cd /tmp && python3 -c 'import own; own.tiny.hello()'"},
		"pipenv": {files: []string{"Pipfile", "[[source]]\nname = 'here'\nurl = 'file:///packages/simple'\n" +
			"verify_ssl = false\n[packages]\ntiny = '==1.0'\n", "Pipfile.lock", locked}, run: hello},
		"debian": {files: []string{"apt.txt", "tiny-words # of this test\n"}, run: "cat /opt/tiny"},
		"statistics": {files: []string{"install.R", `cat("hello from tiny\n", file = "/said")`},
			run: `Rscript -e 'cat(readLines("/said"), "\n")'`},
		"post": {files: []string{"postBuild", "#!/bin/sh\ncp said /said\n", "said", "hello from tiny\n"},
			run: "cat /said"},
		"dockerfile": {files: []string{"Dockerfile", from + "\nCOPY said /\nENV WHERE=/said\n",
			"said", "hello from tiny\n"},
			run: "cat $WHERE"},
		"stages": {files: []string{"Dockerfile", from + " AS made\nRUN echo hello from tiny >/made\n" + from +
			"\nCOPY --from=made /made /said\n"}, run: "cat /said"},
		"ignored": {files: []string{"Dockerfile", from + "\nCOPY . /all\n", ".dockerignore", "secret\n", "secret", "x"},
			run: "test ! -e /all/secret && echo hello from tiny"},
		"container": {files: []string{".devcontainer/devcontainer.json",
			`{"build": {"dockerfile": "Dockerfile", "args": {"WHO": "tiny"}, "target": "dev"}}`,
			".devcontainer/Dockerfile", from + " AS dev\nARG WHO\nRUN echo hello from $WHO >/said\n" + from +
				"\nRUN false\n"}, run: "cat /said"},
		"image": {files: []string{".devcontainer.json", `{"image": "` + base + `", "containerEnv": {"WHO": "tiny"},
			"postCreateCommand": "pip install --user --break-system-packages tiny"}`},
			run: "until python3 -c 'import tiny' 2>/dev/null; do sleep 0.1; done; echo hello from $WHO"},
		"feature": {files: []string{".devcontainer/devcontainer.json",
			`{"image": "` + base + `", "features": {"./greet": {"who": "tiny"}}}`,
			".devcontainer/greet/devcontainer-feature.json",
			`{"id": "greet", "options": {"who": {"default": "all"}, "word": {"default": "hello"}}}`,
			".devcontainer/greet/install.sh", "#!/bin/sh\nset -e\n. ./lib\nsay \"$WORD from $WHO\" >/said\n",
			".devcontainer/greet/lib", "say() { echo \"$1\"; }\n", ".dockerignore", ".devcontainer\n"},
			run: "cat /said"},
		"features": {files: []string{".devcontainer/devcontainer.json",
			`{"build": {"dockerfile": "Dockerfile", "target": "dev"}, "features": {"./a": {}, "./b": {}}}`,
			".devcontainer/Dockerfile", from + " AS dev\nRUN echo tiny >/who\n" + from + "\nRUN false\n",
			".devcontainer/a/devcontainer-feature.json", `{"id": "a", "installsAfter": ["./b"]}`,
			".devcontainer/a/install.sh", "#!/bin/sh\necho \"hello from $(cat $NAMED)\" >/said\n",
			".devcontainer/b/devcontainer-feature.json", `{"id": "b", "containerEnv": {"NAMED": "/opt/who"}}`,
			".devcontainer/b/install.sh", "#!/bin/sh\nmv /who $NAMED\n"}, run: "test -n \"$NAMED\" && cat /said"},
		"below": {files: []string{"paper/requirements.txt", "tiny\n", "requirements.txt", "nonsense"}, sub: "paper",
			run: hello},
		"plain": {files: []string{"main.py", "print('hello from tiny')\n"}, // git works in what one owns
			run: "test $(stat -c %u plain) = $(id -u) && python3 plain/main.py"},
		"absent": {files: []string{"requirements.txt", "no-such-package==9.9\n"}, wrong: "no-such-package"},
		"conda": {files: []string{"environment.yml", "dependencies: [tiny]\n"},
			wrong: "environment.yml needs an environment with conda"},
	}
}

// TestTwentyProjectsBecomeSessions goes from the directory of each project to a command in a session of its image, by
// the real program.
func TestTwentyProjectsBecomeSessions(t *testing.T) {
	leaveOutIfShort(t)
	for name, host := range map[string]func(testing.TB) string{"Docker 20.10": enginetest.RequireDocker,
		"Docker of today": enginetest.RequireModernDocker} {
		t.Run(name, func(t *testing.T) {
			p := installOn(t, "docker", host(t))
			dir := filepath.Join(t.TempDir(), "shelf")
			enginetest.WriteFiles(t, dir, shelf(t)...)
			p.must("up", "--mem", "256m", "--wait", dir)
			base := p.session("show", "shelf").Image
			p.must("stop", "--wait", "shelf")
			all := projects(t, base)
			if len(all) != 20 {
				t.Errorf("there are %d projects", len(all))
			}
			for name, k := range all {
				p.opensOne(t, name, k, base)
			}
			p.forgetsProjects()
		})
	}
}

func (p *installed) opensOne(t *testing.T, name string, k kind, base string) {
	dir := filepath.Join(t.TempDir(), name)
	enginetest.WriteFiles(t, dir, k.files...)
	got := p.do("up", "--mem", "256m", "--environment", base, filepath.Join(dir, k.sub), "sh", "-c", k.run)
	switch {
	case k.wrong != "":
		if got.code == ExitOK || !strings.Contains(got.stderr, k.wrong) {
			t.Errorf("%s: %+v", name, got)
		}
		return
	case got.code != ExitOK || strings.TrimSpace(got.stdout) != "hello from tiny":
		t.Errorf("%s: exit code %d\n%s%s", name, got.code, got.stdout, got.stderr)
		return
	}
	p.must("stop", "--wait", filepath.Base(filepath.Join(dir, k.sub)))
}
