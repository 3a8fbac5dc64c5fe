package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
)

func TestRecipeFailureNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(path, []byte("image: a\nnamme: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := newPlane(t).run(t, "run", "-f", path)
	if got.code != ExitInvalid || !strings.Contains(got.stderr, "r.yaml, line 2") ||
		!strings.Contains(got.stderr, "Did you mean name?") {
		t.Errorf("code %d, %q", got.code, got.stderr)
	}
	if got := newPlane(t).run(t, "run", "-f", path+".none"); got.code != ExitUsage {
		t.Errorf("a file that is not there: code %d, %q", got.code, got.stderr)
	}
}

func TestARecipeTakesItsSecretsFromHere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.yaml")
	if err := os.WriteFile(path, []byte("image: a\nenv:\n  HF_TOKEN:\n  EMPTY:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plane := newPlane(t)
	var sent hub.LaunchRequest
	plane.handle("POST /api/v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		reply(w, http.StatusCreated, api.Session{Session: session.Session{ID: "aaaaaaaaaaaa", Name: "a",
			Status: "PENDING"}})
	})
	t.Run("a missing one is named", func(t *testing.T) {
		got := plane.run(t, "run", "-f", path, "-d")
		if got.code != ExitInvalid || !strings.Contains(got.stderr, "HF_TOKEN has no value") ||
			!strings.Contains(got.stderr, "-e HF_TOKEN=") {
			t.Errorf("code %d, %q", got.code, got.stderr)
		}
	})
	t.Run("a flag gives it", func(t *testing.T) {
		got := plane.run(t, "run", "-f", path, "-d", "-e", "HF_TOKEN=abc")
		if got.code != ExitOK || len(sent.Spec.Env) != 2 || sent.Spec.Env[0].Value != "abc" {
			t.Errorf("code %d, %q, sent %+v", got.code, got.stderr, sent.Spec)
		}
	})
}

func TestRecipesAreComparedLikeDiff(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := write("one.yaml", "image: a\nresources: {cpu: 2, memory: 1g}\n"),
		write("two.yaml", "image: b\nresources: {cpu: 2, memory: 1024m}\n")
	plane := newPlane(t)
	if got := plane.run(t, "recipe", "diff", one, one); got.code != ExitOK || got.stdout != "" {
		t.Errorf("the same: code %d, %q", got.code, got.stdout)
	}
	got := plane.run(t, "recipe", "diff", one, two)
	if got.code != ExitFailure || !strings.Contains(got.stdout, "image") || strings.Contains(got.stdout, "resources") {
		t.Errorf("code %d\n%s", got.code, got.stdout)
	}
}

func TestARecipeIsExportedInThreeWays(t *testing.T) {
	plane := newPlane(t)
	plane.set(api.Session{Session: session.Session{ID: "aaaaaaaaaaaa", Name: "train", Status: "RUNNING"}})
	plane.handle("GET /api/v1/recents", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, []hub.Recent{{ID: "r1", Name: "nightly"}})
	})
	recipeOf := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			reply(w, http.StatusOK, api.Recipe{Name: name, YAML: "image: a # " + name + "\n",
				Command: "slipway run --image a", Docker: "docker run a", Pinned: true, Secrets: []string{"HF_TOKEN"},
				Lacks: []string{"No queue."}})
		}
	}
	plane.handle("GET /api/v1/sessions/aaaaaaaaaaaa/recipe", recipeOf("train"))
	plane.handle("GET /api/v1/recents/r1/recipe", recipeOf("nightly"))
	for args, want := range map[string]string{"train": "image: a # train\n",
		"train --as run": "slipway run --image a\n", "train --as docker": "docker run a\n",
		"nightly": "image: a # nightly\n"} {
		got := plane.run(t, append([]string{"recipe", "export"}, strings.Fields(args)...)...)
		if got.code != ExitOK || got.stdout != want || !strings.Contains(got.stderr, "HF_TOKEN") {
			t.Errorf("%s: code %d, %q, %q", args, got.code, got.stdout, got.stderr)
		}
	}
	if got := plane.run(t, "recipe", "export", "nobody"); got.code != ExitNotFound {
		t.Errorf("nobody: code %d", got.code)
	}
}
