package environments

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// written is what is offered with a file of that content.
func written(t *testing.T, content string) ([]hub.Environment, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return In(dir).Environments()
}

func find(list []hub.Environment, id string) (hub.Environment, bool) {
	for _, e := range list {
		if e.ID == id {
			return e, true
		}
	}
	return hub.Environment{}, false
}

func TestWithoutAFileSlipwaysOwnAreOffered(t *testing.T) {
	list, err := In(t.TempDir()).Environments()
	if err != nil || len(list) < 10 || list[0].ID != "jupyter-scipy" || list[0].Versions[0].Jupyter != hub.JupyterLab {
		t.Fatalf("offered are %+v, %v", list, err)
	}
	torch, _ := find(list, "pytorch")
	if torch.MinCPU != 2 || torch.MinMemory != 4*gpu.GiB || torch.Accelerator != "optional" ||
		torch.Versions[0].Size == 0 {
		t.Errorf("PyTorch is %+v", torch)
	}
	for _, e := range list {
		if e.Title == "" || e.Summary == "" || e.Icon == "" || len(e.Versions) == 0 {
			t.Errorf("incomplete: %+v", e)
		}
	}
}

func TestAFileAddsChangesAndHides(t *testing.T) {
	list, err := written(t, `
environments:
  - id: team
    title: Our own
    summary: What we all use
    minimum: {cpu: 4, memory: 8g}
    accelerator: required
    versions:
      - {title: "2", image: "registry.example.com/team/all:2", size: 3g}
  - id: julia
    hidden: true
  - id: python
    title: Python of ours
    versions: [{title: "3.13", image: "python:3.13-slim", jupyter: notebook}]
`)
	if err != nil {
		t.Fatal(err)
	}
	if team := list[0]; team.ID != "team" || team.MinMemory != 8*gpu.GiB || team.Accelerator != "required" ||
		team.Versions[0].Size != 3*gpu.GiB || team.Icon == "" {
		t.Errorf("first is %+v", team)
	}
	if _, there := find(list, "julia"); there {
		t.Error("what is hidden is offered")
	}
	if python, _ := find(list, "python"); python.Title != "Python of ours" || len(python.Versions) != 1 ||
		python.Versions[0].Jupyter != hub.JupyterNotebook {
		t.Errorf("Python is %+v", python)
	}
	if empty, err := written(t, ""); err != nil || len(empty) < 10 {
		t.Errorf("an empty file gives %d, %v", len(empty), err)
	}
}

func TestABrokenFileNamesTheLineAndLeavesSlipwaysOwn(t *testing.T) {
	const good = "environments:\n  - id: team\n    title: Ours\n"
	for content, want := range map[string]string{
		good + "    versions: [{title: a, image: 'Not An Image'}]\n":            "line 4",
		good + "    versions: []\n":                                             "line 2: team has no versions",
		good + "    version: []\n":                                              `line 4: unknown field "version"`,
		good + "    minimum: {memory: lots}\n":                                  "line 4",
		good + "    accelerator: two\n    versions: [{title: a, image: a}]\n":   "line 2",
		good + "    versions: [{image: a}]\n":                                   "line 4",
		good + "    versions: [{title: a, image: a, jupyter: yes}]\n":           "line 4: jupyter: yes of team",
		"environments:\n  - id: Bad Id\n":                                       "line 2",
		"environments:\n  - {id: a, hidden: true}\n  - {id: a, hidden: true}\n": "line 3",
		"environments: [\n":                                                     "line",
		"others: []\n":                                                          "line 1",

		"environments:\n  - id: a\n    title: A\n    versions:\n      - {title: a, immage: a}\n": "line 5",
	} {
		list, err := written(t, content)
		if session.CodeOf(err) != session.CodeSettingsBroken || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), FileName) {
			t.Errorf("%q gives %v, want %s", content, err, want)
		}
		if len(list) < 10 || list[0].ID != "jupyter-scipy" {
			t.Errorf("%q leaves %d environments", content, len(list))
		}
	}
}

// A family promises in its title or summary only what its images have: see which of them are known to have Jupyter.
func TestTheCatalogueNamesJupyterOnlyWhereItIs(t *testing.T) {
	list, err := In(t.TempDir()).Environments()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		has := slices.ContainsFunc(e.Versions, func(v hub.EnvironmentVersion) bool { return v.Jupyter != "" })
		if says := strings.Contains(e.Title+e.Summary, "Jupyter"); says && !has {
			t.Errorf("%s promises Jupyter, and no version has it", e.ID)
		}
		if strings.Contains(e.Summary, "RStudio") {
			t.Errorf("%s promises RStudio, which no app opens", e.ID)
		}
		for _, v := range e.Versions {
			if strings.Contains(v.Title+v.Image, "upyter") != (v.Jupyter != "") {
				t.Errorf("%s %s (%s): has Jupyter: %q", e.ID, v.Title, v.Image, v.Jupyter)
			}
			if v.Jupyter != "" && e.Accelerator == "optional" && !strings.Contains(v.Title, "CPU only") &&
				!strings.Contains(v.Title, "CUDA") && !strings.Contains(v.Title, "GPU") {
				t.Errorf("%s %s does not say whether it uses a GPU", e.ID, v.Title)
			}
		}
	}
	torch, _ := find(list, "pytorch")
	if first := torch.Versions[0]; first.Jupyter != hub.JupyterLab || !strings.Contains(first.Image, "cuda12") {
		t.Errorf("PyTorch begins with %+v, not with JupyterLab for current cards", first)
	}
}
