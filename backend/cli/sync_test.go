package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func TestFolderSyncIsAnOperation(t *testing.T) {
	f := newPlane(t)
	var asked api.FileSyncing
	now := noon.Add(time.Minute)
	ended := api.Operation{ID: "o1", Kind: hub.FileSync, State: "done", EndedAt: &now, Steps: []api.OpStep{
		{Name: "compare", Title: "Compare both sides", State: "ok", Detail: "2 to lab"}}}
	f.handle("POST /api/v1/files/sync", func(w http.ResponseWriter, r *http.Request) {
		asked = api.FileSyncing{}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusAccepted, ended)
	})
	f.handle("GET /api/v1/operations/{id}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, ended)
	})
	for line, want := range map[string]api.FileSyncing{
		"paper paper@lab/src/deep":                   {},
		"folder:paper paper@lab/src/deep --all -y":   {Ignored: true, Delete: true},
		"--yes --keep both paper paper@lab/src/deep": {Delete: true, Keep: hub.KeepBoth},
	} {
		want.This = api.FileEnd{Folder: "paper"}
		want.That = api.FileEnd{Folder: "paper", Agent: "lab", Path: "src/deep"}
		got := f.run(t, strings.Fields("folder sync "+line)...)
		if got.code != ExitOK || asked != want || !strings.Contains(got.stderr, "2 to lab") {
			t.Errorf("%s asks for %+v\n%+v", line, asked, got)
		}
	}
	if got := f.run(t, "folder", "sync", "paper"); got.code != ExitUsage {
		t.Errorf("with one folder: %+v", got)
	}
	ended.State = "failed"
	ended.Error = &session.Error{Code: session.CodeFileForbidden, Message: "Denied.", Hint: "Look."}
	if got := f.run(t, "folder", "sync", "paper", "x"); got.code == ExitOK || !strings.Contains(got.stderr, "Denied.") {
		t.Errorf("a failed one: %+v", got)
	}
}

func TestAQuestionSaysWhatItAccepts(t *testing.T) {
	for want, prompt := range map[string]api.Prompt{
		"It changed. Keep this (local), that (lab) or both?": {Kind: hub.PromptKeep, Text: "It changed.",
			Sides: []string{"local", "lab"}},
		"It changed. Keep this (local), that (lab) or both? Write, for example, \"both all\" for this and 3 more.": {
			Kind: hub.PromptKeep, Text: "It changed.", Sides: []string{"local", "lab"}, Remaining: 3},
		"Delete 2 files? (yes/no)": {Kind: hub.PromptConfirm, Text: "Delete 2 files?"},
		"Connect (yes/no)?":        {Kind: hub.PromptConfirm, Text: "Connect (yes/no)?"},
		"Password:":                {Kind: hub.PromptPassword, Text: "Password:"},
	} {
		if got := question(prompt); got != want {
			t.Errorf("it asks %q, want %q", got, want)
		}
	}
}
