package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

const goneRecipe = `image: a
agent: lab-2
group: lab
accelerator: mig:9g.99gb
mounts:
  - {folder: sets, path: train}
  - {folder: "models", target: /models}
  - {source: /data/old}
after: [prepare]
`

// gone is what a server says of goneRecipe where none of it is.
var gone = session.Error{Code: "session_create_invalid", Message: "6 fields are wrong.", Fields: []session.FieldError{
	{Field: "group", Kind: "not-found", Message: "No agent is in a resource group \"lab\"."},
	{Field: "agent", Kind: "not-found", Message: "There is no agent named \"lab-2\".",
		Hint: "Leave it empty to let Slipway choose."},
	{Field: "accelerator", Kind: "out-of-range",
		Message: "No device has instances 9g.99gb."},
	{Field: "mounts[0].folder", Kind: session.KindNotFound,
		Message: "There is no folder sets on this machine."},
	{Field: "mounts[2].source", Kind: "invalid",
		Message: "There is no directory /data/old on this machine."},
	{Field: "after[0]", Kind: "not-found", Message: "There is no session prepare to wait for."},
}}

func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatAFileNamesAndIsNotThereIsToldWithItsRepair(t *testing.T) {
	plane, file := newPlane(t), written(t, goneRecipe)
	plane.handle("POST /api/v1/sessions",
		func(w http.ResponseWriter, _ *http.Request) { refuse(w, gone) })
	plane.handle("POST /api/v1/preview", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Preview{Preview: session.Preview{Errors: gone.Fields}, Agent: "local"})
	})
	for _, args := range [][]string{{"run", "-f", file, "-d"}, {"recipe", "check", file}} {
		got := plane.run(t, args...)
		if got.code != ExitInvalid || got.stdout != "" {
			t.Errorf("%v: code %d, %q", args, got.code, got.stdout)
		}
		for _, want := range []string{
			"group: No agent is in a resource group \"lab\". Or add --group NAME, or --group= for any.",
			"agent: There is no agent named \"lab-2\". Leave it empty to let Slipway choose. Or add --on NAME, or " +
				"--on= for any agent.",
			"--gpu none.",
			"add --create-folders, -v OTHER:/home/work/sets, or --no-volume sets.",
			"add -v OTHER:/home/work/old, or --no-volume /data/old.",
			"add --no-after prepare.",
		} {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("%v lacks %q in\n%s", args, want, got.stderr)
			}
		}
	}
}

func TestFlagsRepairAFileAndLeaveTheRest(t *testing.T) {
	plane, file := newPlane(t), written(t, goneRecipe)
	last := plane.launching(t, pending)
	got := plane.run(t, "run", "-f", file, "-d", "--on=", "--group=", "--gpu", "none", "-v", "other:/home/work/sets:ro",
		"--no-volume", "/data/old", "--no-after", "prepare")
	want := session.Spec{Image: "a", Accelerator: gpu.Request{}, Schedule: session.Schedule{After: []string{}},
		Mounts: []session.Mount{{Folder: "other", Target: "/home/work/sets", ReadOnly: true},
			{Folder: "models", Target: "/models"}}}
	request := last.Load()
	if got.code != ExitOK || request == nil {
		t.Fatalf("code %d, %q", got.code, got.stderr)
	}
	if request.Spec.After = append([]string{}, request.Spec.After...); !reflect.DeepEqual(request.Spec, want) {
		t.Errorf("got  %+v\nwant %+v", request.Spec, want)
	}
	for flag, says := range map[string]string{"--no-volume=models2": "does not mount this",
		"--no-after=other": "does not wait for this"} {
		if got := plane.run(t, "run", "-f", file, "-d", flag); got.code != ExitUsage ||
			!strings.Contains(got.stderr, says) {
			t.Errorf("%s: code %d, %q", flag, got.code, got.stderr)
		}
	}
}

func TestMissingFoldersAreCreatedWhereNothingElseIsWrong(t *testing.T) {
	file := written(t, "image: a\nmounts: [{folder: sets}, {folder: sets, path: in, target: two}]\n")
	for name, c := range map[string]struct {
		wrong []session.FieldError
		made  []string
	}{
		"nothing else is": {[]session.FieldError{{Field: "mounts[0].folder", Kind: session.KindNotFound},
			{Field: "mounts[1].folder", Kind: session.KindNotFound}}, []string{"sets on lab"}},
		"an agent is": {[]session.FieldError{{Field: "agent", Kind: "not-found"},
			{Field: "mounts[0].folder", Kind: session.KindNotFound}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plane := newPlane(t)
			plane.launching(t, pending)
			plane.handle("POST /api/v1/preview", func(w http.ResponseWriter, _ *http.Request) {
				reply(w, http.StatusOK, api.Preview{Preview: session.Preview{Errors: c.wrong}, Agent: "lab"})
			})
			var made []string
			plane.handle("POST /api/v1/folders", func(w http.ResponseWriter, r *http.Request) {
				var req api.FolderRequest
				if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
					t.Error(err)
				}
				made = append(made, req.Name+" on "+req.Agent)
				reply(w, http.StatusCreated, api.Folder{Folder: session.Folder{Name: req.Name, Agent: req.Agent}})
			})
			if got := plane.run(t, "run", "-f", file, "-d", "--create-folders"); got.code != ExitOK ||
				!reflect.DeepEqual(made, c.made) {
				t.Errorf("made %v, code %d, %q", made, got.code, got.stderr)
			}
		})
	}
}
