package cli

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

func TestUpReopensARememberedProject(t *testing.T) {
	f := newPlane(t)
	known := hub.RecentProject{ID: "p", Name: "paper/notebooks", Agent: "lab", Folder: "abcdefghijkl", Image: "old:1",
		OpenedAt: noon, Address: "https://example.com/paper.git",
		ProjectRequest: session.ProjectRequest{Path: "notebooks", File: "Dockerfile", Environment: "python:3.12"}}
	found := session.Project{Kind: session.ProjectDockerfile, Image: "new:1", Dockerfile: "FROM python:3.12"}
	var read []session.ProjectRequest
	var launched []string
	gone := false
	f.handle("GET /api/v1/projects", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []hub.RecentProject{known})
	})
	f.handle("GET /api/v1/folders/abcdefghijkl", func(w http.ResponseWriter, _ *http.Request) {
		if gone {
			refuse(w, *session.NoFolder("abcdefghijkl"))
			return
		}
		reply(w, http.StatusOK, api.Folder{Folder: session.Folder{ID: known.Folder, Name: "paper", Agent: "lab"}})
	})
	f.handle("POST /api/v1/folders/abcdefghijkl/project", func(w http.ResponseWriter, r *http.Request) {
		var req session.ProjectRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		read = append(read, req)
		reply(w, http.StatusOK, found)
	})
	f.handle("POST /api/v1/folders/abcdefghijkl/project/open", func(w http.ResponseWriter, r *http.Request) {
		var req hub.ProjectOpening
		_ = json.NewDecoder(r.Body).Decode(&req)
		if req.Image != "" {
			launched = append(launched, req.Image)
		}
		reply(w, http.StatusOK, known)
	})
	refused := func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, session.Error{Code: session.CodeEngineUnsupported, Message: "Nothing runs here."})
	}
	f.handle("POST /api/v1/folders/abcdefghijkl/project/build", refused)
	f.handle("POST /api/v1/sessions", refused)
	const changed = "The project has changed since its image was built"
	up := func(args ...string) string { return f.run(t, append([]string{"up", "--detach"}, args...)...).stderr }

	if got := up("paper/notebooks"); !strings.Contains(got, changed) || len(launched) > 0 {
		t.Errorf("with other files: %q, launched %q", got, launched)
	}
	found.Present = true
	if got := up("--project-file", "apt.txt", "paper/notebooks"); strings.Contains(got, changed) {
		t.Errorf("with an image that is there: %q", got)
	}
	other := known.ProjectRequest
	other.File = "apt.txt"
	if want := []session.ProjectRequest{known.ProjectRequest, other}; !slices.Equal(read, want) {
		t.Errorf("read %+v", read)
	}
	if !slices.Equal(launched, []string{"new:1"}) {
		t.Errorf("launched with %q", launched)
	}
	f.handle("GET /api/v1/agents", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []api.Agent{})
	})
	if got := up("--on", "local", "paper/notebooks"); !strings.Contains(got, "no such file") || len(read) != 2 {
		t.Errorf("on another machine: %q", got)
	}
	gone = true
	if got := up("paper/notebooks"); !strings.Contains(got, "paper/notebooks is no longer on lab") {
		t.Errorf("without its folder: %q", got)
	}
	gone = false
	found.Dockerfile = "FROM python:3.12\nRUN true \\\n\t&& \x1b[2Jtrue\n"
	if got := f.run(t, "up", "--dockerfile", "paper/notebooks"); len(launched) != 1 ||
		got.stdout != "FROM python:3.12\nRUN true \\\n\t&& [2Jtrue\n" {
		t.Errorf("its Dockerfile is %q, launched %q", got.stdout, launched)
	}
	found.Dockerfile = ""
	if got := f.run(t, "up", "--dockerfile", "paper/notebooks"); !strings.Contains(got.stderr, "nothing to build") {
		t.Errorf("without one: %q, %q", got.stdout, got.stderr)
	}
	if got := f.run(t, "up", "--list"); got.code != ExitOK || !strings.Contains(got.stdout, "paper/notebooks   lab ") ||
		!strings.Contains(got.stdout, known.Address) {
		t.Errorf("listed as %+v", got)
	}
}

// planeWithProject is a control plane with one remembered project, which asks for two secrets of which one is stored.
// The build of its image is refused.
func planeWithProject(t *testing.T, built func(hub.ProjectBuilding)) *plane {
	return planeWith(t, session.Project{Kind: session.ProjectDockerfile, Image: "new:1",
		Dockerfile: "FROM python:3.12", Secrets: []string{"PIP_TOKEN", "HF_TOKEN"}}, built)
}

func planeWith(t *testing.T, found session.Project, built func(hub.ProjectBuilding)) *plane {
	f := newPlane(t)
	known := hub.RecentProject{ID: "p", Name: "paper", Agent: "lab", Folder: "abcdefghijkl", OpenedAt: noon}
	folder := api.Folder{Folder: session.Folder{ID: known.Folder, Name: "paper", Agent: "lab"}}
	for request, answer := range map[string]any{
		"GET /api/v1/projects":                           []hub.RecentProject{known},
		"GET /api/v1/folders/abcdefghijkl":               folder,
		"POST /api/v1/folders/abcdefghijkl/project":      found,
		"POST /api/v1/folders/abcdefghijkl/project/open": known,
		"GET /api/v1/secrets": []hub.Secret{{Kind: hub.SecretVariable, Name: "PIP_TOKEN"},
			{Kind: hub.SecretRegistry, Name: "HF_TOKEN"}},
	} {
		f.handle(request, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, answer) })
	}
	f.handle("POST /api/v1/folders/abcdefghijkl/project/build", func(w http.ResponseWriter, r *http.Request) {
		var req hub.ProjectBuilding
		_ = json.NewDecoder(r.Body).Decode(&req)
		built(req)
		refuse(w, session.Error{Code: session.CodeEngineUnsupported, Message: "Nothing runs here."})
	})
	return f
}

func TestUpListsTheSecretsOfABuildAndAsks(t *testing.T) {
	var allowed [][]string
	f := planeWithProject(t, func(req hub.ProjectBuilding) { allowed = append(allowed, req.Secrets) })
	got := f.run(t, "up", "--detach", "--yes", "paper")
	if !strings.Contains(got.stderr, "No secret named HF_TOKEN is stored.") ||
		strings.Contains(got.stderr, "No secret named PIP_TOKEN") {
		t.Errorf("said %q", got.stderr)
	}
	if len(allowed) != 1 || !slices.Equal(allowed[0], []string{"PIP_TOKEN"}) {
		t.Errorf("the build may read %q", allowed)
	}
}

func TestUpMountsWhatTheProjectAsksForAndAsksForOtherFolders(t *testing.T) {
	eight := gpu.Request{Memory: 8 * gpu.GiB}
	f := planeWith(t, session.Project{Kind: session.ProjectDevContainer, File: ".devcontainer.json", Image: "new:1",
		Present: true, ProjectNeeds: session.ProjectNeeds{Accelerator: eight, Mounts: []session.FolderMount{
			{Folder: "abcdefghijkl", Name: "paper", Target: "/src"},
			{Folder: "abcdefghijkl", Name: "paper", Path: "data", Target: "/data"},
			{Folder: "modelsmodels", Name: "models", Target: "/models", ReadOnly: true}}}}, nil)
	var launched []session.Spec
	f.handle("POST /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		var req hub.LaunchRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		launched = append(launched, req.Spec)
		refuse(w, session.Error{Code: session.CodeEngineUnsupported, Message: "Nothing runs here."})
	})
	if got := f.run(t, "up", "--detach", "paper"); len(launched) > 0 || got.code == ExitOK {
		t.Errorf("without an answer: %+v, launched %+v", got, launched)
	}
	got := f.run(t, "up", "--detach", "--yes", "--volume", "other:/data", "paper")
	for _, said := range []string{"the folder paper as /src.", "the folder models as /models (read-only)."} {
		if !strings.Contains(got.stderr, said) {
			t.Errorf("it is not said %q: %s", said, got.stderr)
		}
	}
	want := []session.Mount{{Folder: "abcdefghijkl", Target: "/src"},
		{Folder: "modelsmodels", Target: "/models", ReadOnly: true}, {Folder: "other", Target: "/data"}}
	if len(launched) != 1 || !slices.Equal(launched[0].Mounts, want) || launched[0].Accelerator != eight {
		t.Errorf("launched with %+v: %s", launched, got.stderr)
	}
	f.run(t, "up", "--detach", "--yes", "--gpu", "2", "paper")
	if len(launched) != 2 || launched[1].Accelerator != (gpu.Request{Devices: 2}) {
		t.Errorf("the flag does not win: %+v", launched)
	}
}

// TestUpHasAMachineCloneWithoutGit opens a repository where this computer has no git.
func TestUpHasAMachineCloneWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	f := planeWithProject(t, func(hub.ProjectBuilding) {}) // refuses to build
	folders := []api.Folder{}
	f.handle("GET /api/v1/folders", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, folders) })
	var asked []hub.ProjectCloning
	f.handle("POST /api/v1/projects/clone", func(w http.ResponseWriter, r *http.Request) {
		var req hub.ProjectCloning
		_ = json.NewDecoder(r.Body).Decode(&req)
		asked = append(asked, req)
		refuse(w, session.Error{Code: session.CodeEngineUnsupported, Message: "There is no git on the machine lab."})
	})
	up := func(args ...string) result {
		return f.run(t, append(append([]string{"up", "--detach"}, args...),
			"https://example.com/paper.git@v2#notebooks")...)
	}
	if got := up("--on", "lab"); got.code == ExitOK || !strings.Contains(got.stderr, "no git on the machine lab") {
		t.Errorf("it is cloned there: %+v", got)
	}
	want := hub.ProjectCloning{Address: "https://example.com/paper.git@v2#notebooks", Agent: "lab"}
	if !slices.Equal(asked, []hub.ProjectCloning{want}) {
		t.Errorf("asked for %+v", asked)
	}
	folders = []api.Folder{{Folder: session.Folder{ID: "abcdefghijkl", Name: "paper", Agent: "lab",
		State: session.FolderReady}}}
	if got := up("--on", "lab"); len(asked) != 1 || !strings.Contains(got.stderr, "folder paper is there already") {
		t.Errorf("a folder that is there: %+v, asked %+v", got, asked)
	}
	if got := up(); len(asked) != 1 || !strings.Contains(got.stderr, "no git on this computer") ||
		!strings.Contains(got.stderr, "--on") {
		t.Errorf("on this computer: %+v, asked %+v", got, asked)
	}
}

func TestUpBuildsWhereItIsAsked(t *testing.T) {
	var asked []hub.BuildPlace
	f := planeWithProject(t, func(req hub.ProjectBuilding) { asked = append(asked, req.Where) })
	for _, where := range []string{"there", "through", "here"} {
		f.run(t, "up", "--detach", "--yes", "--build", where, "paper")
	}
	f.run(t, "up", "--detach", "--yes", "paper")
	want := []hub.BuildPlace{hub.BuildThere, hub.BuildThrough, hub.BuildHere, hub.BuildThere}
	if !slices.Equal(asked, want) {
		t.Errorf("it is built at %q, want %q", asked, want)
	}
	got := f.run(t, "up", "--build", "away", "paper")
	if got.code != ExitUsage || !strings.Contains(got.stderr, `there, through or here, not "away"`) ||
		len(asked) > len(want) {
		t.Errorf("at a place that is not known: %+v", got)
	}
}

func TestUpLinksADirectoryOfWhichAnImageIsBuiltHere(t *testing.T) {
	f := planeWithProject(t, func(hub.ProjectBuilding) {})
	sends := f.syncing(t)
	var made []string
	f.handle("POST /api/v1/folders", func(w http.ResponseWriter, r *http.Request) {
		var req api.FolderRequest
		_ = json.NewDecoder(r.Body).Decode(&req)
		made = append(made, req.Agent+": "+req.Name+" "+req.Path)
		reply(w, http.StatusCreated, api.Folder{Folder: session.Folder{ID: "abcdefghijkl", Name: req.Name,
			Agent: req.Agent}})
	})
	dir := t.TempDir()
	up := func(flags ...string) []string {
		made = nil
		args := append([]string{"up", "--detach", "--yes", "--on", "lab", "--folder", "study"}, flags...)
		f.run(t, append(args, dir)...)
		return made
	}
	for _, where := range []string{"there", "here"} {
		if got := up("--build", where); !slices.Equal(got, []string{"local: study " + dir, "lab: study "}) {
			t.Errorf("for a build %s it makes the folders %q", where, got)
		}
	}
	want := api.FileSyncing{This: api.FileEnd{Folder: "study", Agent: "local"},
		That: api.FileEnd{Folder: "study", Agent: "lab"}, Send: true}
	if got := *sends; !slices.Equal(got, []api.FileSyncing{want, want}) {
		t.Errorf("it syncs %+v", got)
	}
}

// syncing makes lab another machine, to which syncs succeed. It returns what they were asked for.
func (f *plane) syncing(t *testing.T) *[]api.FileSyncing {
	t.Helper()
	var sends []api.FileSyncing
	now := noon
	done := api.Operation{ID: "o1", Kind: hub.FileSync, State: hub.OperationDone, EndedAt: &now, Steps: []api.OpStep{}}
	for request, answer := range map[string]any{
		"GET /api/v1/agents":        []api.Agent{{Name: "local", Local: true}, {Name: "lab"}},
		"GET /api/v1/machines":      []hub.Machine{},
		"GET /api/v1/folders":       []api.Folder{},
		"GET /api/v1/operations/o1": done,
	} {
		f.handle(request, func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, answer) })
	}
	f.handle("POST /api/v1/files/sync", func(w http.ResponseWriter, r *http.Request) {
		var req api.FileSyncing
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		sends = append(sends, req)
		reply(w, http.StatusAccepted, done)
	})
	return &sends
}

func TestUpLaunchesNothingIfASyncIsRefused(t *testing.T) {
	f := planeWithProject(t, func(hub.ProjectBuilding) { t.Error("it is built") })
	f.syncing(t)
	f.handle("POST /api/v1/folders", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusCreated, api.Folder{Folder: session.Folder{ID: "abcdefghijkl", Name: "paper"}})
	})
	now := noon
	failed := api.Operation{ID: "o1", Kind: hub.FileSync, State: hub.OperationFailed, EndedAt: &now,
		Steps: []api.OpStep{}, Error: &session.Error{Code: session.CodeFileConflict,
			Message: `Changed on local and on lab: "a".`, Hint: "Decide: slipway folder sync paper@local paper@lab"}}
	f.handle("GET /api/v1/operations/o1", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, failed)
	})
	f.handle("POST /api/v1/files/sync", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusAccepted, failed)
	})
	got := f.run(t, "up", "--detach", "--yes", "--on", "lab", t.TempDir())
	if got.code != ExitFailure || !strings.Contains(got.stderr, `Changed on local and on lab: "a".`) ||
		!strings.Contains(got.stderr, "slipway folder sync paper@local paper@lab") {
		t.Errorf("it ends as %+v", got)
	}
	f.handle("POST /api/v1/folders", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, session.Error{Code: session.CodeFolderExists, Message: "There is a folder paper already."})
	})
	if got := f.run(t, "up", "--on", "lab", t.TempDir()); got.code == ExitOK ||
		!strings.Contains(got.stderr, "--folder") {
		t.Errorf("where another folder has the name: %+v", got)
	}
}
