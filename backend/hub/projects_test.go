package hub_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/project"
	"slipway/backend/session"
)

// cloned is a cloner that makes the files of a repository in a directory of the simulated machine.
type cloned struct{ dir, seen string }

func (cloned) HasGit() bool { return true }

func (c cloned) Clone(_ context.Context, _ *hub.Work, r project.Repository, _ string,
	tell func(string)) (string, error) {
	tell("Receiving objects:  50% (1/2)")
	err := os.MkdirAll(filepath.Join(c.dir, r.Name, ".git"), 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir, r.Name, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
	}
	return c.seen + "/" + r.Name, err
}

func TestARepositoryIsClonedForAnotherMachine(t *testing.T) {
	var disk string
	near := simulated.Open(t, func(c *agent.Config) { disk = filepath.Join(c.Dir, "disk", "scratch") })
	lab := simulated.Open(t, func(*agent.Config) {})
	w := world{}
	var err error
	w.Hub, err = hub.Open(hub.Config{Shelf: &hubtest.Shelf{}, Settings: noSettings(t), Owner: "ada",
		Members: []hub.Member{{Name: "local", Local: true, Agent: near.Agent()}, {Name: "lab", Agent: lab.Agent()}},
		Cloner:  cloned{disk, "/scratch"}})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	req := hub.ProjectCloning{Address: "https://example.com/paper.git", Agent: "lab"}
	begun, err := w.CloneProject(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	done := w.operation(t, begun.ID, ended)
	var steps []string
	for _, step := range done.Steps {
		steps = append(steps, step.Name)
	}
	if done.State != hub.OperationDone || done.Agent != "lab" || done.Folder != "paper" ||
		!slices.Equal(steps, []string{"clone", "link", "count", "copy"}) {
		t.Fatalf("it ended as %+v", done)
	}
	files, _, err := w.FilesIn(t.Context(), "paper", "lab")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := files.StatFile(t.Context(), files.Place, ".git/HEAD"); err != nil || info.Size != 21 {
		t.Errorf("the copy has %+v, %v", info, err)
	}
	if names := w.folderNames(t, ""); !slices.Equal(names, []string{"paper", "paper"}) {
		t.Errorf("the folders are %q", names)
	}
	for _, req := range []hub.ProjectCloning{req, {Address: req.Address}} {
		if _, err := w.CloneProject(t.Context(), req); session.CodeOf(err) != session.CodeFolderExists {
			t.Errorf("once more: %v", err)
		}
	}
	if _, err := w.CloneProject(t.Context(), hub.ProjectCloning{Address: "paper"}); session.CodeOf(err) !=
		session.CodeFileInvalid {
		t.Errorf("no address: %v", err)
	}
	req.Agent = "absent"
	if _, err := w.CloneProject(t.Context(), req); session.CodeOf(err) != session.CodeAgentNotFound {
		t.Errorf("a machine that is not there: %v", err)
	}
}
