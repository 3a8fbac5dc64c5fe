package settings

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"slipway/backend/session"
)

func open(t *testing.T, content string, env map[string]string) *File {
	t.Helper()
	f := New(t.TempDir(), func(name string) string { return env[name] })
	if content != "" {
		if err := os.WriteFile(f.Path(), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func read(t *testing.T, f *File) State {
	t.Helper()
	s, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWithoutAFileTheDefaultsAreInForce(t *testing.T) {
	s := read(t, open(t, "", nil))
	if s.Values["theme"] != "system" || s.Values["terminalFont"] != 14 || len(s.Problems) > 0 {
		t.Fatalf("%+v", s)
	}
}

func TestEveryFaultIsToldWithItsLine(t *testing.T) {
	s := read(t, open(t, `{
  "theme": "pink",
  "gpu": {
    "quantum": 3,
    "guard": "warn"
  },
  "colour": 1
}`, nil))
	want := map[string]int{"theme": 2, "gpu.quantum": 4, "colour": 7}
	for _, p := range s.Problems {
		if want[p.Name] != p.Line || p.Message == "" {
			t.Errorf("problem %+v, want line %d", p, want[p.Name])
		}
		delete(want, p.Name)
	}
	if len(want) > 0 || s.Values["theme"] != "system" || s.File["gpu.guard"] != "warn" {
		t.Fatalf("not told: %v; in force: %v", want, s.Values)
	}
}

func TestABrokenFile(t *testing.T) {
	for name, c := range map[string]struct {
		content string
		line    int
	}{
		"with a comma too many": {"{\n\"theme\": \"dark\",\n}", 3},
		"that ends too early":   {"{\n\"theme\": \"dark\",\n", 3},
		"of another shape":      {"[]", 1},
		"with a name twice":     {"{\"theme\": \"dark\",\n\n\"theme\": \"light\"}", 3},
		"with something after":  {"{}\n{}", 2},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, c.content, nil)
			s := read(t, f)
			if !s.Broken() || s.Problems[0].Line != c.line || s.Values["theme"] != "system" {
				t.Fatalf("%+v, want line %d", s, c.line)
			}
			if _, err := f.Save(map[string]any{"theme": "light"}); session.CodeOf(err) != "settings_update_conflict" {
				t.Fatalf("saving: %v", err)
			}
			if content, err := os.ReadFile(f.Path()); err != nil || string(content) != c.content {
				t.Fatalf("it was written over: %s, %v", content, err)
			}
			if _, err := f.Env(); session.CodeOf(err) != "settings_read_invalid" {
				t.Fatalf("Env: %v", err)
			}
		})
	}
}

func TestVariablesOverrideTheFile(t *testing.T) {
	f := open(t,
		`{"theme": "light", "gpu": {"quantum": 0.25, "fragments": true, "exclude": ["GPU-1", "GPU-2"]}, "idle": `+
			`{"lifetime": "4h"}}`, map[string]string{"SLIPWAY_THEME": "dark", "SLIPWAY_IDLE_CPU": "x"})
	s := read(t, f)
	if s.Values["theme"] != "dark" || s.File["theme"] != "light" || s.Overrides["theme"] != "dark" {
		t.Fatalf("%+v", s)
	}
	if len(s.Problems) != 1 || s.Problems[0].Name != "SLIPWAY_IDLE_CPU" || s.Problems[0].Line != 0 {
		t.Fatalf("problems %+v", s.Problems)
	}
	env, err := f.Env()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"SLIPWAY_THEME": "dark", "SLIPWAY_GPU_QUANTUM": "0.25",
		"SLIPWAY_GPU_FRAGMENTS": "1", "SLIPWAY_GPU_EXCLUDE": "GPU-1,GPU-2", "SLIPWAY_IDLE_LIFETIME": "4h",
		"SLIPWAY_GPU_GUARD": ""} {
		if env(name) != want {
			t.Errorf("%s=%s, want %s", name, env(name), want)
		}
	}
}

func TestOnlyWhatIsReadAtTheStartStopsIt(t *testing.T) {
	if _, err := open(t, `{"theme": "pink"}`, nil).Env(); err != nil {
		t.Fatalf("a theme stopped the start: %v", err)
	}
	_, err := open(t, "{\n\"idle\": {\"lifetime\": \"soon\"}}", nil).Env()
	if session.CodeOf(err) != "settings_read_invalid" || !strings.Contains(err.Error(), "line 2") {
		t.Fatalf("error %v", err)
	}
}

func TestSavingKeepsWhatItDoesNotChange(t *testing.T) {
	f := open(t, `{"later": {"deep": {"er": 1}}, "gpu": {"quantum": 0.5}}`, nil)
	if _, err := f.Save(map[string]any{"theme": "dark", "gpu.quantum": nil,
		"gpu.exclude": []any{"GPU-1"}}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(got)
	if want := `{"$schema":"./settings.schema.json","gpu":{"exclude":["GPU-1"]},"later":{"deep":{"er":1}},` +
		`"theme":"dark"}`; string(text) != want {
		t.Fatalf("the file says %s, want %s", text, want)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(f.Path()), "settings.schema.json")); err != nil {
		t.Fatal(err)
	}
}

func TestSavingThroughALinkKeepsTheLink(t *testing.T) {
	f := open(t, `{}`, nil)
	elsewhere := filepath.Join(t.TempDir(), "settings.json")
	if err := errors.Join(os.Rename(f.Path(), elsewhere), os.Symlink(elsewhere, f.Path())); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Save(map[string]any{"theme": "dark"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(elsewhere)
	if target, linkErr := os.Readlink(f.Path()); err != nil || linkErr != nil || target != elsewhere ||
		!strings.Contains(string(content), `"dark"`) {
		t.Errorf("%s leads to %q, which says %s (%v, %v)", f.Path(), target, content, err, linkErr)
	}
}

func TestTheSchemaNamesEveryFieldAndItsDefaultIsValid(t *testing.T) {
	var schema struct{ Properties map[string]any }
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	for _, f := range Fields() {
		group, _, _ := strings.Cut(f.Name, ".")
		if schema.Properties[group] == nil {
			t.Errorf("the schema lacks %s", f.Name)
		}
		if f.Default == nil {
			continue
		}
		value, wrong := f.parse(f.Print(f.Default))
		if wrong != "" || value != f.Default {
			t.Errorf("the default of %s is %v after printing and reading: %s", f.Name, value, wrong)
		}
	}
}

func FuzzReadDocument(f *testing.F) {
	f.Add([]byte(`{"theme": "dark", "gpu": {"quantum": 1}}`))
	f.Add([]byte(`{"a": {"b": [`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, problem := readDocument(data)
		if problem != nil && problem.Line < 1 {
			t.Fatalf("line %d", problem.Line)
		}
		if problem == nil {
			(&File{fields: Fields(), env: func(string) string { return "" }}).state(d, nil)
		}
	})
}
