package cli

import (
	"bytes"
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
)

// hostileText renames the window, hides what was written, moves the cursor, turns
// the direction of the text, and is not quite UTF-8.
const hostileText = "x\x1b]0;owned\a\x1b[2J\x1b[1A\r\u009b31m\u202egnp.exe\x7f\u2028\xff"

// filled is a value of a type with hostile text wherever text may stand.
func filled(of reflect.Type, depth int) reflect.Value {
	v := reflect.New(of).Elem()
	switch {
	case depth > 6:
	case of == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(noon.Add(-time.Hour)))
	case of == reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{}`))
	case of.Kind() == reflect.String:
		v.SetString(hostileText)
	case of.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(3)
	case v.CanFloat():
		v.SetFloat(1.5)
	case of.Kind() == reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
		v.Elem().Set(filled(of.Elem(), depth+1))
	case of.Kind() == reflect.Slice:
		v = reflect.Append(v, filled(of.Elem(), depth+1))
	case of.Kind() == reflect.Map && of.Key().Kind() == reflect.String:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(reflect.ValueOf(hostileText).Convert(of.Key()), filled(of.Elem(), depth+1))
	case of.Kind() == reflect.Struct:
		for i := range of.NumField() {
			if of.Field(i).IsExported() {
				v.Field(i).Set(filled(of.Field(i).Type, depth+1))
			}
		}
	}
	return v
}

// newHostilePlane answers every route of the API with hostile text.
func newHostilePlane(t *testing.T) *plane {
	t.Helper()
	f := newPlane(t)
	for _, one := range route.All() {
		if one.Stream != "" || one.Name == "version" {
			continue
		}
		f.handle(one.Method()+" "+one.Path(), func(w http.ResponseWriter, r *http.Request) {
			if one.Response == nil {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			answer := filled(reflect.TypeOf(one.Response), 0).Interface()
			if s, ok := answer.(api.Session); ok {
				s.Status = "TERMINATED"
				answer = s
			}
			if o, ok := answer.(api.Operation); ok {
				o.State, o.Prompt = "failed", nil
				o.Steps[0].State = "failed"
				answer = o
			}
			reply(w, one.Status, answer)
		})
	}
	return f
}

// leaves are the commands that do something, by their words.
func leaves(cmd *cobra.Command) [][]string {
	var all [][]string
	for _, sub := range cmd.Commands() {
		if sub.Runnable() {
			all = append(all, strings.Fields(sub.CommandPath())[1:])
		}
		all = append(all, leaves(sub)...)
	}
	return all
}

// ownStreams are the commands that carry what another program writes, that start
// one, or that serve.
var ownStreams = map[string]bool{
	"serve": true, "demo": true, "attach": true, "exec": true, "logs": true, "ssh": true, "ssh-proxy": true,
}

// TestNothingPrintedMovesTheCursor runs every command against a control plane
// whose every text is hostile, for people and for programs.
func TestNothingPrintedMovesTheCursor(t *testing.T) {
	f := newHostilePlane(t)
	p := &program{Config: testConfig(f.home, nil, nil, nil, nil)}
	said := 0
	for _, words := range leaves(p.rootCommand()) {
		if name := strings.Join(words, " "); ownStreams[name] || words[0] == "agent" && onMachine(words) {
			continue
		}
		for _, args := range [][]string{nil, {"x"}, {"x", "x"}, {"--yes", "x"}, {"-o", "json"}, {"-o", "json", "x"},
			{"-o", "yaml"}, {"-o", "name"}} {
			if words[0] == "run" && len(args) == 2 && args[0] == "x" { // it waits until the session runs
				continue
			}
			result := f.run(t, append(words[:len(words):len(words)], args...)...)
			said += len(result.stdout)
			for stream, text := range map[string]string{"stdout": result.stdout, "stderr": result.stderr} {
				checkPrinted(t, strings.Join(append(words[:len(words):len(words)], args...), " ")+" on "+stream, text)
			}
		}
	}
	if said < 10_000 {
		t.Errorf("all commands together print %d bytes; the test sees nothing", said)
	}
}

// onMachine reports whether a command is about the agent of the machine that it
// runs on, which no control plane answers for.
func onMachine(words []string) bool {
	return len(words) == 2 && strings.Contains(" run start stop status switch bridge hello ", " "+words[1]+" ")
}

func checkPrinted(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s is not UTF-8", what)
	}
	for line := range strings.Lines(text) {
		odd := func(r rune) bool { return r != '\t' && session.Unprintable(r) }
		if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), odd) {
			t.Errorf("%s prints %.300q", what, line)
		}
	}
}

// Numbers come from other machines as well, and a bar is as long as they say.
func TestNoNumberBreaksABar(t *testing.T) {
	numbers := []int64{math.MinInt64, -1, 0, 1, 23, 24, 100, math.MaxInt64 / 2, math.MaxInt64}
	for _, a := range numbers {
		for _, b := range numbers {
			left := float64(b) * 1e300
			line := progressBar(api.Progress{Done: a, Total: b, Rate: a, Left: &left}) + bar(a, b) + percent(a, b)
			if n := utf8.RuneCountInString(line); n > 200 {
				t.Errorf("%d of %d is %d characters long", a, b, n)
			}
		}
	}
}

// Tables stay as wide as a person can read, whatever one cell holds.
func TestOneCellDoesNotWidenATableWithoutEnd(t *testing.T) {
	rows := [][]string{{"NAME", "B"}, {strings.Repeat("세", 1<<20), "x\ny"}}
	for range 1000 {
		rows = append(rows, []string{"a", "b"})
	}
	var out bytes.Buffer
	columns(&out, rows)
	if out.Len() > 4<<20 || strings.Count(out.String(), "\n") != len(rows) {
		t.Errorf("%d bytes in %d lines", out.Len(), strings.Count(out.String(), "\n"))
	}
}

// A program that reads -o json gets every character.
func TestJSONKeepsEveryCharacter(t *testing.T) {
	f := newPlane(t)
	name := strings.TrimSuffix(hostileText, "\xff")
	want := api.Session{Session: session.Session{ID: "abcdefghijkl", Name: name, Status: "RUNNING", CreatedAt: noon}}
	f.set(want)
	result := f.run(t, "show", "abcdefghijkl", "-o", "json")
	var got api.Session
	if err := json.Unmarshal([]byte(result.stdout), &got); err != nil || got.Name != want.Name {
		t.Errorf("%q is read as %q: %v", result.stdout, got.Name, err)
	}
	checkPrinted(t, "show", result.stdout)
}

// What another program writes stays as it is.
func TestRawStreamsStayRaw(t *testing.T) {
	f := newPlane(t)
	f.set(api.Session{Session: session.Session{ID: "abcdefghijkl", Name: "train-a", Status: "RUNNING",
		CreatedAt: noon}})
	f.handle("GET /api/v1/sessions/{id}/logs", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(hostileText))
	})
	if result := f.run(t, "logs", "train-a"); result.stdout != hostileText {
		t.Errorf("the log is printed as %q: %+v", result.stdout, result)
	}
}

func TestCharactersAreKeptTogether(t *testing.T) {
	const text = "세션 1\tüber\nend 🚀"
	for cut := range len(text) {
		var out bytes.Buffer
		w := &plainWriter{to: &out}
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != text {
			t.Errorf("cut at %d it is %q", cut, out.String())
		}
	}
}

func FuzzPlainWriter(f *testing.F) {
	f.Add([]byte(hostileText), 3)
	f.Add([]byte("\xf0\x9f\x9a"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		var out bytes.Buffer
		w := &plainWriter{to: &out}
		cut = min(max(cut, 0), len(data))
		for _, part := range [][]byte{data[:cut], data[cut:], []byte("\n")} {
			if _, err := w.Write(part); err != nil {
				t.Fatal(err)
			}
		}
		checkPrinted(t, "the writer", out.String())
	})
}
