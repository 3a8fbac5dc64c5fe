package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/recipe"
	"slipway/backend/session"
	"slipway/gpu"
)

const (
	repoDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	ownID      = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func TestRecipesOfSessionsAndLaunches(t *testing.T) {
	w := start(t)
	w.agent.SetImages(session.Image{ID: ownID, Refs: []string{"python:3.12"},
		Digests: []string{"docker.io/library/python@" + repoDigest}})
	var s api.Session
	w.call(t, "POST", "/api/v1/sessions",
		`{"spec":{"image":"python:3.12","name":"train","env":[{"name":"HF_TOKEN","value":"hush"},{"name":"A",`+
			`"value":"b"}],"resources":{"cpu":2,"memory":"4g"},"accelerator":"0.5","after":[]}}`, &s)
	var recents []hub.Recent
	w.call(t, "GET", "/api/v1/recents", "", &recents)
	for _, path := range []string{"/api/v1/sessions/train/recipe", "/api/v1/recents/" + recents[0].ID + "/recipe"} {
		t.Run(path[:16], func(t *testing.T) {
			var got api.Recipe
			if status := w.call(t, "GET", path, "", &got); status != 200 {
				t.Fatalf("status %d", status)
			}
			pinned := "python:3.12@" + repoDigest
			if got.Name != "train" || got.FileName != "train.slipway.yaml" || !got.Pinned || got.Spec.Image != pinned ||
				!strings.Contains(got.YAML, "image: "+pinned) {
				t.Errorf("got %+v", got)
			}
			if strings.Contains(got.YAML+got.Command+got.Docker, "hush") || len(got.Secrets) != 1 ||
				!strings.Contains(got.YAML, "HF_TOKEN:") {
				t.Errorf("the secret: %q in %s", got.Secrets, got.YAML)
			}
			for _, want := range []string{"docker run -dit --name train --cpus 2 --memory 4g", "-e HF_TOKEN -e A=b",
				"--gpus 1", pinned} {
				if !strings.Contains(got.Docker, want) {
					t.Errorf("docker line %q lacks %q", got.Docker, want)
				}
			}
			if !strings.Contains(strings.Join(got.Lacks, " "), "whole GPUs, not 0.5") {
				t.Errorf("says nothing of the share: %q", got.Lacks)
			}
			var again session.Spec
			if status := w.call(t, "POST", "/api/v1/recipes/read", encode(t, api.RecipeText{YAML: got.YAML}),
				&again); status != 200 || again.Image != pinned || again.Accelerator != (gpu.Request{Shares: 500}) ||
				again.Resources.CPU != 2 {
				t.Errorf("read again: %d %+v", status, again)
			}
		})
	}
}

func TestARecipeNamesTheImageThatTheSessionUsed(t *testing.T) {
	w := start(t)
	w.agent.SetImages(session.Image{ID: ownID, Refs: []string{"lab:1"}})
	past := time.Now().Add(-time.Hour)
	w.agent.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "old", Agent: "local", Status: session.Terminated,
		CreatedAt: past, Resolved: session.Resolved{Pinned: "lab:1@" + repoDigest},
		Spec: session.Spec{Image: "lab:1", Type: session.Batch, Command: "x",
			Schedule: session.Schedule{NotBefore: &past, After: []string{"bbbbbbbbbbbb"}}}})
	w.agent.Put(session.Session{ID: "bbbbbbbbbbbb", Name: "new", Agent: "local", Status: session.Terminated,
		CreatedAt: past, Spec: session.Spec{Image: "lab:1"}})
	w.agent.Put(session.Session{ID: "cccccccccccc", Name: "gone", Agent: "local", Status: session.Terminated,
		CreatedAt: past, Spec: session.Spec{Image: "gone:1"}})
	for id, want := range map[string]string{"aaaaaaaaaaaa": "lab:1@" + repoDigest, "bbbbbbbbbbbb": "lab:1@" + ownID,
		"cccccccccccc": "gone:1"} {
		var got api.Recipe
		w.call(t, "GET", "/api/v1/sessions/"+id+"/recipe", "", &got)
		if got.Spec.Image != want || got.Pinned != strings.Contains(want, "@") || got.Spec.NotBefore != nil ||
			id == "aaaaaaaaaaaa" && !slices.Equal(got.Spec.After, []string{"new"}) {
			t.Errorf("%s: pinned %v, %+v, want %s", id, got.Pinned, got.Spec, want)
		}
	}
}

func TestRecipeFaults(t *testing.T) {
	w := start(t)
	for name, c := range map[string]struct {
		method, path, body, code string
		status                   int
		says                     string
	}{
		"a session that is not there": {"GET", "/api/v1/sessions/aaaaaaaaaaaa/recipe", "", "session_read_not-found",
			404, ""},
		"a launch that is not there": {"GET", "/api/v1/recents/nobody/recipe", "", "recipe_read_not-found", 404, ""},
		"a field that is none": {"POST", "/api/v1/recipes/read", `{"yaml":"image: a\nimagge: b"}`,
			"recipe_parse_invalid", 422, "Line 2"},
		"no YAML": {"POST", "/api/v1/recipes/read", `{"yaml":""}`, "recipe_parse_invalid", 422,
			"empty"},
		"an amount that is none": {"POST", "/api/v1/recipes/read",
			`{"yaml":"image: a\nresources: {memory: lots}"}`, "recipe_parse_invalid", 422, "resources.memory"},
	} {
		t.Run(name, func(t *testing.T) {
			var p session.Error
			if status := w.call(t, c.method, c.path, c.body, &p); status != c.status || string(p.Code) != c.code ||
				!strings.Contains(p.Message, c.says) || p.Hint == "" {
				t.Errorf("%d %+v", status, p)
			}
		})
	}
}

func TestRecipesAreCompared(t *testing.T) {
	w := start(t)
	var rows []recipe.Field
	w.call(t, "POST", "/api/v1/recipes/compare",
		`{"left":{"image":"a:1","resources":{"cpu":1}},"right":{"image":"a:2","resources":{"cpu":1}}}`, &rows)
	if len(rows) != 2 || rows[0] != (recipe.Field{Field: "image", Left: "a:1", Right: "a:2"}) || !rows[1].Same {
		t.Errorf("rows %+v", rows)
	}
}

func encode(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestLinksAreReadAndNothingIsDone(t *testing.T) {
	w := start(t)
	var link recipe.Link
	if status := w.call(t, "POST", "/api/v1/links/read", `{"url":"slipway://run?image=python:3.12&memory=4g"}`,
		&link); status != 200 || link.Kind != "run" || link.Spec.Image != "python:3.12" ||
		link.Spec.Resources.Memory != 4<<30 {
		t.Errorf("%d %+v", status, link)
	}
	for body, says := range map[string]string{`{"url":"slipway://run?image=a&env=HF_TOKEN%3Dhush"}`: "looks secret",
		`{"url":"https://example.org"}`:               "not a Slipway link",
		`{"url":"slipway://run?image=a&memory=lots"}`: "memory"} {
		var p session.Error
		if status := w.call(t, "POST", "/api/v1/links/read", body, &p); status != 422 ||
			p.Code != "recipe_parse_invalid" || !strings.Contains(p.Message, says) ||
			strings.Contains(p.Message, "hush") {
			t.Errorf("%s: %d %+v", body, status, p)
		}
	}
	var sessions []api.Session
	if w.call(t, "GET", "/api/v1/sessions", "", &sessions); len(sessions) > 0 {
		t.Errorf("a link launched %+v", sessions)
	}
}
