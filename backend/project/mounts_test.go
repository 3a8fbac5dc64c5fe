package project

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
)

// mountsOf returns the mounts of a devcontainer.json as lines, and the phrases of what is left by what asks for it.
func mountsOf(t *testing.T, at Place, json string) (lines []string, left map[string]string, plan *Plan) {
	t.Helper()
	files := tree(".devcontainer.json", `{"image": "a:1", "postCreateCommand": "pwd", `+json+"}",
		"data/deep/x", "", "file", "")
	plan, err := Read(t.Context(), files, at, session.ProjectRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range plan.Mounts {
		line := fmt.Sprintf("%s/%s %s", m.Folder, m.Path, m.Target)
		if m.ReadOnly {
			line += " ro"
		}
		lines = append(lines, line)
	}
	left = map[string]string{}
	for _, one := range plan.Left {
		left[one.What] = one.Why.Say
	}
	return lines, left, plan
}

func TestTheProjectIsWhereItAsksToBe(t *testing.T) {
	sub := vision
	sub.Path = "code/a"
	for name, c := range map[string]struct {
		at        Place
		json      string
		mount     string // empty: at the usual place
		workspace string
		left      string
	}{
		"the usual place": {vision, `"name": "x"`, "", "/home/work/vision", ""},
		"a folder":        {vision, `"workspaceFolder": "/src/"`, "visionvision/ /src", "/src", ""},
		"of a directory":  {sub, `"workspaceFolder": "/src"`, "visionvision/code/a /src", "/src", ""},
		"in a usual place": {sub, `"workspaceFolder": "/workspaces/a/b"`, "visionvision/code/a /workspaces/a",
			"/workspaces/a/b", ""},
		"a mount alone": {vision, `"workspaceMount": "type=bind,source=${localWorkspaceFolder}/data,target=/d,ro"`,
			"visionvision/data /d ro", "/d", ""},
		"a mount of a volume": {vision, `"workspaceMount": "source=models,target=/m", "workspaceFolder": "/m/x"`,
			"visionvision/ /m/x", "/m/x", "workspaceMount projectWorkspace"},
		"a mount of the parent": {vision,
			`"workspaceMount": "type=bind,source=${localWorkspaceFolder}/..,target=/m"`, "", "/home/work/vision",
			"workspaceMount projectMounts"},
		"no path": {vision, `"workspaceFolder": "src"`, "", "/home/work/vision", "workspaceFolder sourceAbsolute"},
		"system":  {vision, `"workspaceFolder": "/usr/src"`, "", "/home/work/vision", "workspaceFolder targetSystem"},
		"upwards": {vision, `"workspaceFolder": "/a/../b"`, "", "/home/work/vision", "workspaceFolder targetUp"},
		"the home": {vision, `"workspaceFolder": "/home/work/"`, "", "/home/work/vision",
			"workspaceFolder targetSystem"},
	} {
		lines, left, plan := mountsOf(t, c.at, c.json)
		if plan.workspace != c.workspace || strings.Join(lines, "; ") != c.mount {
			t.Errorf("%s: at %s with %q", name, plan.workspace, lines)
		}
		if !strings.Contains(plan.Setup, "\ncd "+c.workspace+"\n") {
			t.Errorf("%s: the setup is %q", name, plan.Setup)
		}
		var why []string
		for what, phrase := range left {
			why = append(why, what+" "+phrase)
		}
		if strings.Join(why, "; ") != c.left {
			t.Errorf("%s: left are %q", name, why)
		}
	}
}

func TestMountsAreOfTheProjectAndOfOwnFolders(t *testing.T) {
	const bind = "type=bind,source=${localWorkspaceFolder}"
	own := "visionvision/ /home/work/vision"
	for mount, c := range map[string]struct{ line, left string }{
		bind + "/data/deep,target=/d":                       {"visionvision/data/deep /d", ""},
		bind + "/data,target=/d,readonly":                   {"visionvision/data /d ro", ""},
		bind + "/data,target=/d,readonly=false":             {"visionvision/data /d", ""},
		bind + "/data,target=/home/work/.vscode":            {"visionvision/data /home/work/.vscode", ""},
		"source=models,target=/m,ro":                        {"modelsmodels/ /m ro", ""},
		"type=volume,src=mo${localEnv:X}dels,dst=/m":        {"", "projectMounts"},
		"type=volume,source=none,target=/m":                 {"", "projectVolume"},
		"type=volume,source=goodbye,target=/m":              {"", "projectVolume"},
		"type=volume,source=../models,target=/m":            {"", "projectMounts"},
		"type=volume,target=/m":                             {"", "projectMounts"},
		"type=volume,source=models,target=/m,volume-nocopy": {"", "projectMounts"},
		"type=tmpfs,target=/m":                              {"", "projectMounts"},
		"type=bind,source=/var/run/docker.sock,target=/m":   {"", "projectMounts"},
		"type=bind,source=${localEnv:HOME}/.ssh,target=/m":  {"", "projectMounts"},
		bind + "/../data,target=/m":                         {"", "projectMounts"},
		bind + "-other,target=/m":                           {"", "projectMounts"},
		bind + "/none,target=/m":                            {"", "sourceGone"},
		bind + "/file,target=/m":                            {"", "sourceFile"},
		bind + "/data,target=m":                             {"", "sourceAbsolute"},
		bind + "/data":                                      {"", "sourceAbsolute"},
		bind + "/data,target=/etc/x":                        {"", "targetSystem"},
		bind + "/data,target=/home/work":                    {"", "targetSystem"},
		bind + "/data,target=/home/work/.ssh":               {"", "targetSystem"},
		bind + "/data,target=${containerWorkspaceFolder}/d": {"", "targetInside"},
		"\"": {"", "projectMounts"},
	} {
		lines, left, _ := mountsOf(t, vision, fmt.Sprintf(`"mounts": [%q]`, mount))
		want := []string{own, c.line}
		if c.line == "" {
			want = nil
		}
		if !slices.Equal(lines, want) {
			t.Errorf("%s: mounted are %q, want %q", mount, lines, want)
		}
		if c.left == "" && len(left) > 0 || left[session.Clip("mounts "+mount)] != c.left {
			t.Errorf("%s: left is %q, want %q", mount, left, c.left)
		}
	}
	lines, left, _ := mountsOf(t, vision, `"mounts": [1, {"source": "models", "target": "/a/"},
		{"source": "models", "target": "/a"}]`)
	if want := []string{own, "modelsmodels/ /a"}; !slices.Equal(lines, want) || len(left) != 2 {
		t.Errorf("mounted are %q, left %q", lines, left)
	}
}
