package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
)

// TestCpBetweenMachinesIsAnOperation copies from a folder of one machine to one of another, and shows what is asked of
// the control plane for each way to write that.
func TestCpBetweenMachinesIsAnOperation(t *testing.T) {
	f := newPlane(t)
	f.handle("GET /api/v1/folders/{folder}", func(w http.ResponseWriter, r *http.Request) {
		at := r.PathValue("folder") + "@" + r.FormValue("agent")
		if at != "data@lab" && at != "data@desk" {
			refuse(w, *session.NoFolder(at))
			return
		}
		reply(w, http.StatusOK, api.Folder{Folder: session.Folder{ID: session.FolderID("id-" + at)}})
	})
	f.handle("GET /api/v1/folders/{folder}/files/stat", func(w http.ResponseWriter, r *http.Request) {
		info := api.FileInfo{FileInfo: session.FileInfo{Kind: session.KindDirectory}}
		switch r.FormValue("path") {
		case "a.csv":
			info.Kind = session.KindFile
		case "new":
			refuse(w, session.Error{Code: session.CodeFileNotFound, Message: "Not there.", Hint: "Look."})
			return
		}
		reply(w, http.StatusOK, info)
	})
	var asked api.FileCopying
	now := noon.Add(time.Minute)
	ended := api.Operation{ID: "o1", Kind: "file-copy", State: "done", EndedAt: &now, Steps: []api.OpStep{
		{Name: "count", State: "ok"}, {Name: "copy", Title: "Copy them", State: "ok", Detail: "2 files, 7 B"}}}
	f.handle("POST /api/v1/files/copy", func(w http.ResponseWriter, r *http.Request) {
		asked = api.FileCopying{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusAccepted, ended)
	})
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, ended)
	})
	lab := func(path string) api.FileEnd { return api.FileEnd{Folder: "id-data@lab", Path: path} }
	desk := func(path string) api.FileEnd { return api.FileEnd{Folder: "id-data@desk", Path: path} }
	for line, want := range map[string]api.FileCopying{
		"cp -r folder:data@lab folder:data@desk":          {From: lab(""), To: desk("")},
		"cp -r -f folder:data@lab/sets folder:data@desk":  {From: lab("sets"), To: desk("sets"), Replace: true},
		"cp -r folder:data@lab/sets folder:data@desk/new": {From: lab("sets"), To: desk("new")},
		"cp folder:data@lab/a.csv folder:data@desk/sets":  {From: lab("a.csv"), To: desk("sets/a.csv")},
		"cp -r folder:data@lab folder:other@desk": {From: lab(""),
			To: api.FileEnd{Folder: "other", Agent: "desk"}},
		"cp -r folder:data@desk/sets folder:data@desk/a.csv/": {From: desk("sets"), To: desk("a.csv/sets")},
	} {
		got := f.run(t, strings.Fields(line)...)
		if got.code != ExitOK || asked != want || !strings.Contains(got.stdout, "2 files, 7 B") {
			t.Errorf("%s asks for %+v\n%+v", line, asked, got)
		}
	}
	for line, want := range map[string]string{
		"cp folder:data@lab folder:data@desk": "use -r",
		"cp -r folder: folder:data@desk":      "Missing folder name",
		"cp -r folder:none@lab folder:data":   "no folder none@lab",
		"cp a b":                              "One side must be",
	} {
		if got := f.run(t, strings.Fields(line)...); got.code == ExitOK || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
	ended.State = "cancelled"
	got := f.run(t, "cp", "-r", "folder:data@lab", "folder:data@desk")
	if got.code != ExitInterrupted || !strings.Contains(got.stderr, "Run the same command to resume.") {
		t.Errorf("a cancelled copy says %+v", got)
	}
}
