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
	f := planeWith(t, session.Project{Kind: session.ProjectDevContainer, File: ".devcontainer.json", Image: "new:1",
		Present: true, ProjectNeeds: session.ProjectNeeds{Mounts: []session.FolderMount{
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
	if len(launched) != 1 || !slices.Equal(launched[0].Mounts, want) {
		t.Errorf("launched with %+v: %s", launched, got.stderr)
	}
}
