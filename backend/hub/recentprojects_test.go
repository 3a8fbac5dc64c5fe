package hub_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/agent"
	"slipway/backend/agent/simulated"
	"slipway/backend/hub"
	"slipway/backend/hub/hubtest"
	"slipway/backend/session"
)

// projectWorld is a hub with one simulated machine.
type projectWorld struct {
	world
	disk string // the directory /scratch of the machine
}

func openProjects(t *testing.T) (w projectWorld) {
	t.Helper()
	near := simulated.Open(t, func(c *agent.Config) { w.disk = filepath.Join(c.Dir, "disk", "scratch") })
	w.shelf = &hubtest.Shelf{}
	var err error
	w.Hub, err = hub.Open(hub.Config{Shelf: w.shelf, Settings: noSettings(t), Owner: "ada",
		Members: []hub.Member{{Name: "local", Local: true, Agent: near.Agent()}}})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t)
	return w
}

// folder makes a directory with a directory in it a folder.
func (w projectWorld) folder(t *testing.T, name string) session.Folder {
	t.Helper()
	err := os.MkdirAll(filepath.Join(w.disk, name, "notebooks"), 0o755)
	f, made := w.CreateFolder(t.Context(), "", session.FolderRequest{Name: name, Path: "/scratch/" + name})
	if err = errors.Join(err, made); err != nil {
		t.Fatal(err)
	}
	return f
}

func (w projectWorld) write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.disk, file), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (w projectWorld) open(t *testing.T, f session.Folder, req hub.ProjectOpening) hub.RecentProject {
	t.Helper()
	req.Environment = cmp.Or(req.Environment, "python:3.12")
	opened, err := w.OpenProject(t.Context(), string(f.ID), "", req)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func projectNames(known []hub.RecentProject) string {
	var names []string
	for _, one := range known {
		names = append(names, one.Name)
	}
	return strings.Join(names, " ")
}

func TestProjectsThatWereOpenedAreRemembered(t *testing.T) {
	w := openProjects(t)
	first := w.folder(t, "p0")
	pinned := w.open(t, first, hub.ProjectOpening{Address: "https://example.com/p0.git@v2"})
	if _, err := w.PinProject(pinned.ID, hub.ProjectPin{Pinned: true}); err != nil {
		t.Fatal(err)
	}
	for i := range 7 {
		w.open(t, w.folder(t, fmt.Sprintf("a%d", i)), hub.ProjectOpening{})
	}
	const want = "a6 a5 a4 a3 a2 p0"
	if got := projectNames(w.Projects()); got != want {
		t.Fatalf("remembered %q", got)
	}
	if got := openOn(t, w.shelf, nil).Projects(); projectNames(got) != want || got[5].Address == "" || !got[5].Pinned {
		t.Fatalf("after a restart %+v", got)
	}
	again := w.open(t, first, hub.ProjectOpening{})
	if again.ID != pinned.ID || !again.Pinned || again.Address != pinned.Address || w.Projects()[0].ID != again.ID {
		t.Errorf("opened again: %+v", again)
	}
	below := hub.ProjectOpening{ProjectRequest: session.ProjectRequest{Path: "notebooks/"}}
	if one := w.open(t, first, below); one.Name != "p0/notebooks" || one.Path != "notebooks" || one.Address != "" {
		t.Errorf("a directory in it: %+v", one)
	}
	if err := w.ForgetProject(again.ID); err != nil || strings.Contains(projectNames(w.Projects()), "p0 ") {
		t.Errorf("forgotten: %v, %+v", err, w.Projects())
	}
	for name, err := range map[string]error{
		"forget": w.ForgetProject(again.ID),
		"pin":    second(w.PinProject(again.ID, hub.ProjectPin{})),
	} {
		if session.CodeOf(err) != session.CodeRecipeNotFound {
			t.Errorf("%s again: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestARememberedProjectHasTheImageThatItWasLaunchedWith(t *testing.T) {
	w := openProjects(t)
	f := w.folder(t, "paper")
	w.write(t, "paper/requirements.txt", "torch\n")
	req := session.ProjectRequest{Environment: "python:3.12"}
	read := func() session.Project {
		t.Helper()
		found, err := w.ReadProject(t.Context(), string(f.ID), "", req)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := read().Image
	if one := w.open(t, f, hub.ProjectOpening{}); one.Image != "" {
		t.Errorf("before the first launch: %+v", one)
	}
	w.open(t, f, hub.ProjectOpening{Image: before})
	if one := w.open(t, f, hub.ProjectOpening{}); one.Image != before || read().Image != before {
		t.Errorf("unchanged: %+v", one)
	}
	w.write(t, "paper/requirements.txt", "torch\nnumpy\n")
	if one := w.open(t, f, hub.ProjectOpening{}); one.Image != before || read().Image == before {
		t.Errorf("changed: %+v", one)
	}
	other := session.ProjectRequest{Environment: "julia:1"}
	if one := w.open(t, f, hub.ProjectOpening{ProjectRequest: other}); one.Image != "" {
		t.Errorf("with another environment: %+v", one)
	}
}

func TestProjectsAreRememberedOnlyIfTheyCanBe(t *testing.T) {
	w := openProjects(t)
	f := w.folder(t, "paper")
	for code, opening := range map[session.Code]struct {
		folder string
		hub.ProjectOpening
	}{
		session.CodeFolderNotFound: {folder: "nothing"},
		session.CodeFileInvalid:    {string(f.ID), hub.ProjectOpening{Address: "https://ada:hush@example.com/x.git"}},
	} {
		_, err := w.OpenProject(t.Context(), opening.folder, "", opening.ProjectOpening)
		if session.CodeOf(err) != code {
			t.Errorf("%s: %v", code, err)
		}
	}
	w.shelf.SetRaw("hub.projects", []byte(`[{"id":"a","agent":"gone","folder":"f"},{"id":"a"},{"name":"x"}]`))
	if got := openOn(t, w.shelf, nil).Projects(); len(got) != 1 || got[0].Agent != "gone" {
		t.Errorf("those of an agent that is gone: %+v", got)
	}
	w.shelf.SetRaw("hub.projects", []byte(`[{"id":`))
	if got := openOn(t, w.shelf, nil).Projects(); len(got) != 0 {
		t.Errorf("of a broken file: %+v", got)
	}
}

func TestRememberedProjectsAreToldToWatchers(t *testing.T) {
	w := openProjects(t)
	watcher := w.Watch(hub.Cursor{}, false)
	defer watcher.Close()
	next(t, watcher)
	w.open(t, w.folder(t, "paper"), hub.ProjectOpening{})
	for {
		if e := next(t, watcher); e.Projects != nil {
			if projectNames(*e.Projects) != "paper" {
				t.Errorf("told %+v", *e.Projects)
			}
			return
		}
	}
}
