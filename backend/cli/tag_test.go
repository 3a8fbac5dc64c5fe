package cli

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/session"
)

func TestTagsAreAddedRemovedAndSearched(t *testing.T) {
	plane := newPlane(t)
	plane.set(api.Session{Session: session.Session{ID: "aaaaaaaaaaaa", Name: "train-a", Status: "RUNNING",
		Tags: []string{"old", "paper"}}})
	plane.set(api.Session{Session: session.Session{ID: "bbbbbbbbbbbb", Name: "train-b", Status: "RUNNING"}})
	plane.handle("PATCH /api/v1/sessions/{id}", func(w http.ResponseWriter, r *http.Request) {
		var update api.SessionUpdate
		if err := json.NewDecoder(r.Body).Decode(&update); err != nil || update.Tags == nil {
			t.Errorf("%v, %+v", err, update)
		}
		s, _ := plane.find(r.PathValue("id"))
		s.Tags = *update.Tags
		slices.Sort(s.Tags)
		plane.set(s)
		reply(w, http.StatusOK, s)
	})
	if got := plane.run(t, "tag", "train-a", "train-b", "--add", "new,paper2", "--remove", "old"); got.code != ExitOK ||
		got.stdout != "train-a: new, paper, paper2\ntrain-b: new, paper2\n" {
		t.Errorf("code %d, %q, %q", got.code, got.stdout, got.stderr)
	}
	if got := plane.run(t, "ps", "--tag", "paper"); !strings.Contains(got.stdout, "train-a") ||
		strings.Contains(got.stdout, "train-b") {
		t.Errorf("listed\n%s", got.stdout)
	}
	if got := plane.run(t, "tag", "nobody", "--add", "x"); got.code != ExitNotFound {
		t.Errorf("nobody: code %d", got.code)
	}
}
