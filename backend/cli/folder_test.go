package cli

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestAFolderIsEmptied(t *testing.T) {
	f := newPlane(t)
	f.withFolder()
	left := []string{"pip", "\xff"}
	f.handle("GET "+folderFiles, func(w http.ResponseWriter, _ *http.Request) {
		answer := api.FileListing{Path: "/", Entries: []api.FileInfo{}}
		if len(left) > 0 { // in parts of one entry
			answer.More = len(left) > 1
			entry := api.FileInfo{FileInfo: session.FileInfo{Kind: "directory"}, Name: left[0], Mode: "755"}
			if left[0] == "\xff" {
				entry.Name, entry.Encoded = "\ufffd", "%FF"
			}
			answer.Entries = append(answer.Entries, entry)
		}
		reply(w, http.StatusOK, answer)
	})
	f.handle("DELETE "+folderFiles, func(w http.ResponseWriter, r *http.Request) {
		if at := slices.Index(left, r.FormValue("path")); at >= 0 && r.FormValue("recursive") == "1" {
			left = slices.Delete(left, at, at+1)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if got := f.run(t, "folder", "empty", "data"); got.code == ExitOK || len(left) != 2 {
		t.Errorf("without a yes: %+v, left %q", got, left)
	}
	if got := f.run(t, "folder", "empty", "data", "--yes"); got.code != ExitOK || len(left) > 0 ||
		got.stdout != "data is empty.\n" {
		t.Errorf("%+v, left %q", got, left)
	}
	left = []string{"precious"}
	f.handle("GET /api/v1/folders/data", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, api.Folder{Folder: session.Folder{ID: "abcdefghijkl", Name: "data", State: "ready",
			FolderOrigin: session.FolderOrigin{Path: "/home/ada/data"}}})
	})
	if got := f.run(t, "folder", "empty", "data", "--yes"); got.code == ExitOK || len(left) != 1 ||
		!strings.Contains(got.stderr, "/home/ada/data") {
		t.Errorf("a directory of the machine: %+v, left %q", got, left)
	}
}
