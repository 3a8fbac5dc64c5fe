//go:build unix

package agent

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/engine/enginetest"
	"slipway/backend/session"
)

// projectIn makes a folder of a directory with these files: pairs of a path and a content.
func (r *real) projectIn(name string, files ...string) (session.Folder, string) {
	r.t.Helper()
	dir := r.t.TempDir()
	enginetest.WriteFiles(r.t, dir, files...)
	f, err := r.agent.CreateFolder(r.t.Context(), session.FolderRequest{Name: name, Path: dir})
	if err != nil {
		r.t.Fatal(err)
	}
	return f, dir
}

// build builds the image of a project, which is removed at the end.
func (r *real) build(f session.Folder, req session.ProjectRequest) session.ImageWork {
	r.t.Helper()
	work, err := r.agent.BuildProject(r.t.Context(), f.ID, session.ProjectBuild{ProjectRequest: req})
	for err == nil && work.State == session.WorkRunning {
		work, err = r.agent.AwaitImageWork(r.t.Context(), work.ID, work.Revision)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if work.State == session.WorkDone {
		r.t.Cleanup(func() {
			r.endAll()
			err := r.agent.RemoveImage(context.Background(), work.Ref)
			if err != nil && session.CodeOf(err) != session.CodeNoImage {
				r.t.Error(err)
			}
		})
	}
	return work
}

// wheel is a package for pip with one module, which says hello.
func wheel(t *testing.T, name string) string {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	at := name + "-1.0.dist-info/"
	for path, content := range map[string]string{name + ".py": "def hello(): print('hello from " + name + "')\n",
		at + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
		at + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		at + "RECORD":   ""} {
		part, err := w.Create(path)
		if err == nil {
			_, err = io.WriteString(part, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.String()
}

func TestAProjectBecomesASession(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir(), asPerson)
	f, dir := r.projectIn("vision", "requirements.txt", "./wheels/tiny-1.0-py3-none-any.whl\n",
		"wheels/tiny-1.0-py3-none-any.whl", wheel(t, "tiny"), "main.py", "import tiny\n")
	req := session.ProjectRequest{Environment: enginetest.ImagePip}
	found, err := r.agent.ReadProject(t.Context(), f.ID, req)
	if err != nil || found.File != "requirements.txt" || found.Present || !found.Generated {
		t.Fatalf("the project is %+v, %v", found, err)
	}
	work := r.build(f, req)
	if work.State != session.WorkDone || work.Ref != found.Image || work.Build == nil || len(work.Build.Steps) == 0 {
		t.Fatalf("the build ended as %+v, %+v", work, work.Error)
	}
	s := r.runs(session.Spec{Name: "vision", Image: found.Image, Mounts: []session.Mount{{Folder: string(f.ID)}}})
	r.says(s.ID, [][2]string{
		{"id -u; cd vision && python3 main.py && echo imported", "1000\nimported"},
	})
	again := r.build(f, req)
	if again.State != session.WorkDone || again.Build != nil {
		t.Errorf("without a change it was built again: %+v", again)
	}
	if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte("print(1)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if now, err := r.agent.ReadProject(t.Context(), f.ID, req); err != nil || now.Image == found.Image {
		t.Errorf("the requirements name files of the project, and after a change the image is %+v, %v", now, err)
	}
}

// kinds are one project for each kind of file, and what proves in a session that it has what was asked for.
func kinds(t *testing.T) map[string]struct {
	files []string
	run   string
} {
	const from = "FROM " + enginetest.ImagePip + "\n"
	tiny := wheel(t, "tiny")
	const setup = "from setuptools import setup\nsetup(name='tiny', version='1', py_modules=['tiny'])\n"
	const hello = "cd /tmp && python3 -c 'import tiny; tiny.hello()'"
	return map[string]struct {
		files []string
		run   string
	}{
		"requirements": {[]string{"requirements.txt", "./tiny-1.0-py3-none-any.whl\n",
			"tiny-1.0-py3-none-any.whl", tiny}, hello},
		"binder": {[]string{"binder/requirements.txt", "./tiny-1.0-py3-none-any.whl\n",
			"binder/tiny-1.0-py3-none-any.whl", tiny, "requirements.txt", "nonsense"}, hello},
		"setup": {[]string{"setup.py", setup, "tiny.py", "def hello(): print('hello from tiny')\n"}, hello},
		"dockerfile": {[]string{"Dockerfile", from + "COPY said /\nENV WHERE=/said\n", "said", "hello from tiny\n"},
			"cat $WHERE"},
		"stages": {[]string{"Dockerfile", from[:len(from)-1] + " AS made\nRUN echo hello from tiny >/made\n" + from +
			"COPY --from=made /made /said\n"}, "cat /said"},
		"ignored": {[]string{"Dockerfile", from + "COPY . /all\n", ".dockerignore", "secret\n", "secret", "x"},
			"test ! -e /all/secret && echo hello from tiny"},
		"devcontainer": {[]string{".devcontainer/devcontainer.json",
			`{"build": {"dockerfile": "Dockerfile", "args": {"WHO": "tiny"}, "target": "dev"}}`,
			".devcontainer/Dockerfile", from[:len(from)-1] + " AS dev\nARG WHO\nRUN echo hello from $WHO >/said\n" +
				from + "RUN false\n"}, "cat /said"},
		"feature": {[]string{".devcontainer/devcontainer.json",
			`{"image": "` + enginetest.ImagePip + `", "features": {"./greet": {"who": "tiny"}}}`,
			".devcontainer/greet/devcontainer-feature.json",
			`{"id": "greet", "options": {"who": {"default": "all"}, "word": {"default": "hello"}}}`,
			".devcontainer/greet/install.sh", "#!/bin/sh\nset -e\n. ./lib\nsay \"$WORD from $WHO\" >/said\n",
			".devcontainer/greet/lib", "say() { echo \"$1\"; }\n", ".dockerignore", ".devcontainer\n"}, "cat /said"},
		"features": {[]string{".devcontainer/devcontainer.json",
			`{"build": {"dockerfile": "Dockerfile", "target": "dev"}, "features": {"./a": {}, "./b": {}}}`,
			".devcontainer/Dockerfile", from[:len(from)-1] + " AS dev\nRUN echo tiny >/who\n" + from + "RUN false\n",
			".devcontainer/a/devcontainer-feature.json", `{"id": "a", "installsAfter": ["./b"]}`,
			".devcontainer/a/install.sh", "#!/bin/sh\necho \"hello from $(cat $NAMED)\" >/said\n",
			".devcontainer/b/devcontainer-feature.json", `{"id": "b", "containerEnv": {"NAMED": "/opt/who"}}`,
			".devcontainer/b/install.sh", "#!/bin/sh\nmv /who $NAMED\n"}, "test -n \"$NAMED\" && cat /said"},
		"r": {[]string{"install.R", `cat("hello from tiny\n", file = "/said")`}, "cat /said"},
		"post": {[]string{"postBuild", "#!/bin/sh\ncp said /said\n", "said", "hello from tiny\n",
			"apt.txt", "# none\n"}, "cat /said"},
	}
}

func TestEachKindOfProjectBecomesASession(t *testing.T) {
	for name, host := range map[string]func(testing.TB) string{"Docker 20.10": enginetest.RequireDocker,
		"Docker of today": enginetest.RequireModernDocker} {
		t.Run(name, func(t *testing.T) {
			r := newRealAt(t, t.TempDir(), host(t), asPerson)
			req := session.ProjectRequest{Environment: enginetest.ImagePip}
			for name, c := range kinds(t) {
				f, _ := r.projectIn(name, c.files...)
				work := r.build(f, req)
				if work.State != session.WorkDone {
					t.Errorf("%s: the build ended as %s, %+v\n%s", name, work.State, work.Error, work.Build.Log)
					continue
				}
				s := r.runs(session.Spec{Name: "of-" + name, Image: work.Ref,
					Mounts: []session.Mount{{Folder: string(f.ID)}}})
				r.says(s.ID, [][2]string{{c.run, "hello from tiny"}})
				if _, err := r.agent.Terminate(t.Context(), s.ID, true); err != nil { // the next one needs its CPU
					t.Fatal(err)
				}
				r.awaitEnd(s.ID)
			}
		})
	}
}

func TestAProjectThatCannotBeBuiltSaysWhy(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir(), asPerson)
	f, _ := r.projectIn("broken", "requirements.txt", "--no-index\nno-such-package==9.9\n")
	work := r.build(f, session.ProjectRequest{Environment: enginetest.ImagePip})
	if work.State != session.WorkFailed || work.Error.Code != session.CodeBuildFailed ||
		!strings.Contains(work.Build.Log, "no-such-package") {
		t.Errorf("it ended as %+v, %+v", work, work.Error)
	}
	if _, err := r.agent.BuildProject(t.Context(), f.ID, session.ProjectBuild{
		ProjectRequest: session.ProjectRequest{Path: "absent"}}); session.CodeOf(err) != session.CodeFileNotFound {
		t.Errorf("a directory that is not there: %v", err)
	}
}
