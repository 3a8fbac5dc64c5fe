package server_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/hub"
	"slipway/backend/session"
	"slipway/gpu"
)

// everything is a spec in which every field is set.
func everything() session.Spec {
	at := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Second)
	return session.Spec{
		Name: "train-all", Type: session.Batch, Image: "lab:1", Command: "python train.py\nsync",
		Schedule: session.Schedule{
			NotBefore:      &at,
			Agent:          "local",
			Group:          "default",
			Priority:       ptr(70),
			After:          []string{"prepare", "fetch"},
			PendingTimeout: session.Duration(2 * time.Hour),
			Slurm: &session.Slurm{Partition: "gpu,long", Account: "lab", QOS: "high", GPUType: "a100",
				Time: session.Duration(4 * time.Hour), Constraint: "ib&ssd", Reservation: "course",
				Options: []string{"--exclusive", "--comment=it's \"mine\""}},
		},
		Lifetime: session.Lifetime{
			Setup:       "pip install einops",
			Timeout:     session.Duration(90 * time.Minute),
			CommitOnEnd: 4,
			KeepHome:    new(session.Duration(time.Hour)),
			Idle: &session.IdlePolicy{Lifetime: session.Duration(48 * time.Hour), Network: session.Duration(time.Hour),
				Use: session.UsePolicy{Window: session.Duration(30 * time.Minute),
					Grace: session.Duration(5 * time.Minute), Any: true,
					CPU: ptr(0.5), Memory: ptr(1.0), GPU: ptr(5.0), VRAM: ptr(2.5)}, Park: true},
		},
		Env:       []session.EnvVar{{Name: "SEED", Value: "7"}, {Name: "LINES", Value: "a\n b"}},
		Secrets:   []string{"HF_TOKEN"},
		Resources: session.Resources{CPU: 2, Memory: 4 * gpu.GiB, Shm: 200 * gpu.MiB},
		Tuning:    session.Tuning{Threads: 3, Uncooperative: true, MPS: true},
		Mounts: []session.Mount{{Source: "/data", Target: "/home/work/in", ReadOnly: true},
			{Folder: "sets", Path: "a/b", Target: "/home/work/sets"}},
		Access:      session.Access{Ports: []int{8080, 9000}, NoSSH: true},
		Accelerator: gpu.Request{Shares: 500}, Cluster: 2, Label: "thesis",
	}
}

// unset names the fields of a value that are zero. Of a list, a field counts as
// set where one of its elements has it.
func unset(value reflect.Value, path string) []string {
	switch {
	case value.Type() == reflect.TypeFor[gpu.Request](), value.Type() == reflect.TypeFor[time.Time]():
	case value.Kind() == reflect.Pointer && !value.IsNil():
		return unset(value.Elem(), path)
	case value.Kind() == reflect.Slice && value.Len() > 0:
		missing := unset(value.Index(0), path+"[]")
		for i := range value.Len() {
			also := unset(value.Index(i), path+"[]")
			missing = slices.DeleteFunc(missing, func(name string) bool { return !slices.Contains(also, name) })
		}
		return missing
	case value.Kind() == reflect.Struct:
		var missing []string
		for i := range value.NumField() {
			missing = append(missing, unset(value.Field(i), path+"."+value.Type().Field(i).Name)...)
		}
		return missing
	}
	if value.IsZero() {
		return []string{path}
	}
	return nil
}

// asked launches a spec as the interface does, after the end of a live session of that name, and returns what its agent
// was asked for.
func (w *world) asked(t *testing.T, spec session.Spec) session.Spec {
	t.Helper()
	live, err := w.agent.List(t.Context(), session.Filter{Live: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range live {
		if s.Name == spec.Name {
			w.agent.Change(s.ID, func(s *session.Session) { s.Status = session.Terminated })
		}
	}
	var s api.Session
	if status := w.call(t, "POST", "/api/v1/sessions", fmt.Sprintf(`{"spec":%s}`, encode(t, spec)),
		&s); status != http.StatusCreated {
		t.Fatalf("status %d for %+v", status, spec)
	}
	kept, err := w.agent.Get(t.Context(), s.ID)
	if err != nil {
		t.Fatal(err)
	}
	return kept.Spec
}

func TestEveryFieldOfALaunchIsThereWhenItIsAskedForAgain(t *testing.T) {
	all, admin := everything(), everything()
	admin.Admin, admin.Mounts, admin.Cluster, admin.MPS = true, nil, 1, false // it cannot have these
	missing := unset(reflect.ValueOf(all), "Spec")
	if !slices.Equal(missing, []string{"Spec.Access.Admin", "Spec.Access.Serving"}) {
		t.Fatalf("the test sets no %v: it says nothing of them", missing)
	}
	t.Run("of an ordinary session", func(t *testing.T) { comesBack(t, all) })
	t.Run("of an administrator session", func(t *testing.T) { comesBack(t, admin) })
}

func comesBack(t *testing.T, want session.Spec) {
	t.Helper()
	w := start(t)
	w.call(t, "PUT", "/api/v1/secrets", `{"kind":"variable","name":"HF_TOKEN","value":"hush"}`, nil)
	past := time.Now().Add(-time.Hour)
	for id, name := range map[session.ID]string{"aaaaaaaaaaaa": "prepare", "bbbbbbbbbbbb": "fetch"} {
		w.agent.Put(session.Session{ID: id, Name: name, Owner: "ada", Agent: "local", Status: session.Running,
			CreatedAt: past, Spec: session.Spec{Image: "lab:1", Type: session.Batch, Command: "x"}})
	}
	w.hub.WaitHeard(t.Context())
	first, err := w.agent.Launch(t.Context(), session.LaunchRequest{Owner: "ada", Spec: want})
	if err != nil {
		t.Fatal(err)
	}
	asked := func(from string, spec session.Spec) {
		t.Helper()
		if got := w.asked(t, spec); !reflect.DeepEqual(got, first.Spec) {
			t.Errorf("%s asks for\n%+v\nwant\n%+v", from, got, first.Spec)
		}
	}
	var recipe api.Recipe
	if status := w.call(t, "GET", "/api/v1/sessions/"+string(first.ID)+"/recipe", "",
		&recipe); status != http.StatusOK {
		t.Fatalf("no recipe: %d", status)
	}
	var read session.Spec
	w.call(t, "POST", "/api/v1/recipes/read", encode(t, api.RecipeText{YAML: recipe.YAML}), &read)
	asked("the recipe of a session", read)

	// By ids, as the launcher has them: what is kept names the sessions.
	read.After = []string{"aaaaaaaaaaaa", "bbbbbbbbbbbb"}
	w.asked(t, read)
	var recents []hub.Recent
	w.call(t, "GET", "/api/v1/recents", "", &recents)
	if len(recents) != 1 {
		t.Errorf("%d entries for the same launch twice", len(recents))
	}
	asked("the history", recents[0].Spec)
	w.call(t, "GET", "/api/v1/recents/"+recents[0].ID+"/recipe", "", &recipe)
	w.call(t, "POST", "/api/v1/recipes/read", encode(t, api.RecipeText{YAML: recipe.YAML}), &read)
	asked("the recipe of the history", read)
}

func TestSecretsAreNamedInWhatIsShown(t *testing.T) {
	w := start(t)
	w.call(t, "PUT", "/api/v1/secrets", `{"kind":"variable","name":"HF_TOKEN","value":"hush"}`, nil)
	var p api.Preview
	w.call(t, "POST", "/api/v1/preview", `{"image":"a:1","secrets":["HF_TOKEN","GONE"]}`, &p)
	if !strings.Contains(p.Command, "--secret HF_TOKEN --secret GONE") || len(p.Errors) != 1 ||
		p.Errors[0].Field != "secrets[1]" {
		t.Errorf("the preview says %q, %+v", p.Command, p.Errors)
	}
	var s api.Session
	w.call(t, "POST", "/api/v1/sessions", `{"spec":{"image":"a:1","name":"train","secrets":["HF_TOKEN"]}}`, &s)
	var got api.Recipe
	w.call(t, "GET", "/api/v1/sessions/train/recipe", "", &got)
	if !strings.Contains(got.YAML, "secrets: [HF_TOKEN]") || !strings.Contains(got.Docker, "-e HF_TOKEN") ||
		!strings.Contains(got.Command, "--secret HF_TOKEN") {
		t.Errorf("the recipe is %+v", got)
	}
	for _, path := range []string{"/api/v1/sessions", "/api/v1/recents", "/api/v1/secrets", "/api/v1/diagnostics",
		"/api/v1/sessions/train/recipe"} {
		if _, body := do(t, http.DefaultClient, w.request(t, "GET", path, "")); strings.Contains(body, "hush") {
			t.Errorf("%s shows the value: %s", path, body)
		}
	}
}

func TestHowManyWereLaunchedIsKept(t *testing.T) {
	w := start(t)
	for _, count := range []int{1, 3} {
		w.call(t, "POST", "/api/v1/launches", fmt.Sprintf(`{"spec":{"image":"a:1","name":"sweep"},"count":%d}`, count),
			nil)
	}
	var recents []hub.Recent
	w.call(t, "GET", "/api/v1/recents", "", &recents)
	if len(recents) != 2 || recents[0].Count != 3 || recents[1].Count != 1 || recents[0].Name != "sweep" {
		t.Errorf("recents %+v", recents)
	}
}

// What is not kept as it was: the value of a secret-looking variable, whose name
// is kept; a start time that has passed, which a recipe leaves out. An image is
// pinned by the digest that it had, and a session to wait for is named.
func TestWhatARecipeLeavesOutIsSaid(t *testing.T) {
	w := start(t)
	past := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.agent.Put(session.Session{ID: "aaaaaaaaaaaa", Name: "old", Agent: "local", Status: session.Terminated,
		CreatedAt: past,
		Spec: session.Spec{Image: "lab:1", Type: session.Batch, Command: "x",
			Schedule: session.Schedule{NotBefore: &past},
			Env:      []session.EnvVar{{Name: "HF_TOKEN", Value: "hush"}}}})
	var got api.Recipe
	w.call(t, "GET", "/api/v1/sessions/aaaaaaaaaaaa/recipe", "", &got)
	if got.Passed == nil || !got.Passed.Equal(past) || got.Spec.NotBefore != nil ||
		!strings.Contains(got.YAML, "# Left out: notBefore: 2026-01-02T03:04:05Z, since it has passed.\n") {
		t.Errorf("passed %v in\n%s", got.Passed, got.YAML)
	}
	if !slices.Equal(got.Secrets, []string{"HF_TOKEN"}) || !strings.Contains(got.YAML, "# secrets are not stored") {
		t.Errorf("secrets %v in\n%s", got.Secrets, got.YAML)
	}
}
