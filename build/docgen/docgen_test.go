package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// moduleRoot is where the module is, seen from this package.
const moduleRoot = "../.."

// errorsIn is what docgen finds in a file of the room backend.
func errorsIn(t *testing.T, source string) []row {
	t.Helper()
	root := t.TempDir()
	texts := filepath.Join(root, "frontend", "src", "i18n", "en")
	if err := os.MkdirAll(texts, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, room := range append(rooms, filepath.Join("backend", "session")) {
		if err := os.MkdirAll(filepath.Join(root, room), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range map[string]string{
		filepath.Join(texts, "common.json"): `{}`, filepath.Join(root, "backend", "x.go"): source,
		filepath.Join(root, "backend", "session", "phrases.json"): `{"isGone": "{{what}} is gone.", "look": "Look."}`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := findErrors(root)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(rowsOf(found), func(r row) bool {
		return strings.HasPrefix(r.codes[0], "server_") || strings.HasPrefix(r.codes[0], "page_")
	})
}

func TestErrorsAreReadAsTheyAreWritten(t *testing.T) {
	for name, test := range map[string]struct{ source, codes, says, hint string }{
		"a literal": {
			`var _ = Error{Code: "image_pull_failed", Message: fmt.Sprintf("%q of %s could not be " +
				"pulled.", a, b), Hint: "Try " + name + " again."}
			var _ = Error{Code: "image_pull_failed", Message: text, Hint: hint}
			var _ = Error{Code: "no code", Message: "left out"}`, "image_pull_failed", "… of … could not be pulled.",
			"Try … again."},
		"a constant": {`const taken = Code("name_take_conflict")` + "\n" +
			`func f() error { return &Error{Code: taken, Message: "It is taken."} }`, "name_take_conflict",
			"It is taken.", ""},
		"what a function makes": {
			`func gone(code Code, what string) error { return &Error{Code: code, Message: what + " is gone.", Hint: ` +
				`"Look."} }` + "\n" + `func f() error { return gone("file_read_gone", "The file") ` +
				`}`, "file_read_gone", "The file is gone.", "Look."},
		"through two": {
			`func a(op, text string) error { return &Error{Code: Code("file_" + op + "_failed"), Message: text} }` +
				"\n" + `func b(op string) error { return a(op, "It failed.") }` + "\n" +
				`func c() error { return b("read") }`, "file_read_failed|file_…_failed", "It failed.", ""},
		"a change": {
			`func f() error { e := &Error{Code: "disk_write_failed", Message: "It failed.", Hint: "Try again."}; if ` +
				`full { e.Code, e.Message = "disk_write_no-space", "It is full." }; return e ` +
				`}`, "disk_write_failed|disk_write_no-space", "It failed.|It is full.", "Try again.|Try again."},
		"a table": {
			`var table = []struct{ detail, text string }{{"full", "It is full."}, {"gone", "It is gone."}}` + "\n" +
				`func f(op string) error { for _, r := range table { return &Error{Code: Code("disk_write_" + ` +
				`r.detail), Message: r.text} }; return nil ` +
				`}`, "disk_write_full|disk_write_gone", "It is full.|It is gone.", "|"},
		"in phrases": {
			`func f() error { return because("file_read_gone", session.Say("isGone", session.Fill("what", name)), ` +
				`session.Say("look")) }` + "\n" + `func because(code Code, message, hint Phrase) error { return ` +
				`&Error{Code: code, Message: message.English(), Hint: hint.English()} ` +
				`}`, "file_read_gone", "… is gone.", "Look."},
		"a closure": {
			`func f() { warn := func(code Code, text string) { g(Warning{Code: code, Text: text}) }; ` +
				`warn("disk_look_slow", "It is slow.") }`, "disk_look_slow", "It is slow.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var codes, says, hints []string
			for _, r := range errorsIn(t, "package x\n"+test.source) {
				codes, says, hints = append(codes, r.codes...), append(says, r.says), append(hints, r.hint)
			}
			if strings.Join(codes, "|") != test.codes || strings.Join(says, "|") != test.says ||
				strings.Join(hints, "|") != test.hint {
				t.Errorf("found %q, %q, %q", codes, says, hints)
			}
		})
	}
}

// noCodes look like codes and are columns of tables, and names of the kernel's files.
var noCodes = []string{
	"alloc_cpu_hours", "alloc_gpu_hours", "busy_gpu_hours", "vram_gib_hours", "vram_peak_bytes", "vram_used_bytes",
	"memory_used_bytes",
	"energy_dynamic_kwh", "energy_idle_kwh", "drm_render_minor", "gpu_busy_percent", "lmem_total_bytes",
	"total_inactive_file",
}

// Whoever is told a code finds it among those that are explained, and no code
// that is decided by is one that nothing tells.
func TestEveryCodeIsExplained(t *testing.T) {
	found, err := findErrors(moduleRoot)
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, k := range found {
		explained[k.code] = true
	}
	quoted := regexp.MustCompile("[\"'`]([a-z]+_[a-z]+_[a-z][a-z-]*)[\"'`]")
	read := 0
	for _, room := range append(slices.Clone(rooms), "frontend/src") {
		err := filepath.WalkDir(filepath.Join(moduleRoot, room), func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (strings.HasSuffix(path, "test") || entry.Name() == "testing"):
				return filepath.SkipDir
			case entry.IsDir() || !slices.Contains([]string{".go", ".ts", ".tsx"}, filepath.Ext(path)),
				strings.HasSuffix(path, "_test.go"), strings.Contains(entry.Name(), ".test."):
				return nil
			}
			source, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read++
			for _, match := range quoted.FindAllSubmatch(source, -1) {
				if code := string(match[1]); !explained[code] && !slices.Contains(noCodes, code) {
					t.Errorf("%s has the code %s, of which build/docs/errors.md says nothing", path, code)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if read < 500 {
		t.Errorf("only %d files were looked through", read)
	}
}
