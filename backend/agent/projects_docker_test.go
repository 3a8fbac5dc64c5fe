//go:build unix

package agent

import (
	"context"
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

func TestAProjectBecomesASession(t *testing.T) {
	t.Parallel()
	r := newReal(t, t.TempDir(), asPerson)
	f, dir := r.projectIn("vision", "requirements.txt", "./wheels/tiny-1.0-py3-none-any.whl\n",
		"wheels/tiny-1.0-py3-none-any.whl", enginetest.Wheel(t, "tiny"), "main.py", "import tiny\n")
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
