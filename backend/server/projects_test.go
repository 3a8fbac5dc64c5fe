package server_test

import (
	"testing"

	"slipway/backend/api"
	"slipway/backend/hub"
)

func TestProjectsAreRememberedPinnedAndForgotten(t *testing.T) {
	w := start(t)
	var folder api.Folder
	w.call(t, "POST", "/api/v1/folders", `{"name":"paper"}`, &folder)
	var opened, pinned hub.RecentProject
	opening := `{"path":"notebooks","file":"Dockerfile","address":"https://example.com/paper.git","image":"paper:1"}`
	if status := w.call(t, "POST", "/api/v1/folders/paper/project/open", opening, &opened); status != 200 ||
		opened.Folder != folder.ID || opened.Name != "paper/notebooks" || opened.Agent != "local" {
		t.Fatalf("%d, %+v", status, opened)
	}
	if status := w.call(t, "PATCH", "/api/v1/projects/"+opened.ID, `{"pinned":true}`, &pinned); status != 200 ||
		!pinned.Pinned {
		t.Errorf("%d, %+v", status, pinned)
	}
	var known []hub.RecentProject
	if w.call(t, "GET", "/api/v1/projects", "", &known); len(known) != 1 || known[0].ID != opened.ID ||
		known[0].Image != "paper:1" || known[0].File != "Dockerfile" || !known[0].Pinned {
		t.Errorf("%+v", known)
	}
	for _, want := range []int{204, 404} {
		if status := w.call(t, "DELETE", "/api/v1/projects/"+opened.ID, "", nil); status != want {
			t.Errorf("forgotten with %d, not %d", status, want)
		}
	}
}
