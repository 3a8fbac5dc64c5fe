package vet

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
)

type undecided struct {
	Name string `json:"name"`
}

type odd struct {
	List []undecided `json:"list"`
}

// TestAFieldWithoutARuleIsRefused keeps a new field from being used unchecked.
func TestAFieldWithoutARuleIsRefused(t *testing.T) {
	if _, err := New().Weight(reflect.TypeFor[undecided]()); err == nil || !strings.Contains(err.Error(), "Name") {
		t.Errorf("a text without a rule: %v", err)
	}
	if err := Check(&undecided{}); err == nil {
		t.Error("a value without a rule is good")
	}
	wrong := Tables{Fields: map[reflect.Type]Fields{reflect.TypeFor[undecided](): {"Name": Line(8), "Gone": Line(8)}}}
	if _, err := New(wrong).Weight(reflect.TypeFor[undecided]()); err == nil {
		t.Error("a rule for a field that is not there is taken")
	}
	kind := Tables{Fields: map[reflect.Type]Fields{reflect.TypeFor[undecided](): {"Name": Whole(0, 1)}}}
	if _, err := New(kind).Weight(reflect.TypeFor[undecided]()); err == nil {
		t.Error("a rule for numbers is taken for a text")
	}
}

// declared returns the typed constants of package session, the texts of each type by its name.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	sources, err := filepath.Glob("../session/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			name, named := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if named && literal && value.Kind == token.STRING {
				text, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				found[name.Name] = append(found[name.Name], text)
			}
			return true
		})
	}
	return found
}

// TestEveryDeclaredValueIsKnown keeps a new status, type or state from being refused as a stranger's.
func TestEveryDeclaredValueIsKnown(t *testing.T) {
	constants, types := declared(t), 0
	for kind := range common.Types {
		if kind.PkgPath() != reflect.TypeFor[session.ID]().PkgPath() || kind.Kind() != reflect.String {
			continue
		}
		for _, text := range constants[kind.Name()] {
			value := reflect.New(kind)
			value.Elem().SetString(text)
			if err := Check(value.Interface()); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
		if len(constants[kind.Name()]) > 1 {
			types++
		}
	}
	if types < 10 {
		t.Errorf("constants of %d types were looked at", types)
	}
}

func TestAFaultNamesItsPlace(t *testing.T) {
	gate := New(Tables{Fields: map[reflect.Type]Fields{
		reflect.TypeFor[odd]():       {"List": List(2)},
		reflect.TypeFor[undecided](): {"Name": Text("good", func(text string) bool { return text == "good" })},
	}})
	err := gate.Check(&odd{List: []undecided{{"good"}, {"a\x1b[2J" + strings.Repeat("b", 100)}}})
	var fault *Fault
	if !errors.As(err, &fault) || fault.Field != "list[1].name" || strings.ContainsAny(fault.Error(), "\x1b\n") ||
		len(fault.Error()) > 120 {
		t.Errorf("it came as %v", err)
	}
	if err := gate.Check(&odd{List: make([]undecided, 3)}); err == nil {
		t.Error("a list beyond its bound is good")
	}
}

func TestTextsForPeopleAreCleaned(t *testing.T) {
	w := session.Warning{Code: "a_b_c", Title: "x\x1b]0;owned\x07y\nz", Text: "one\n\ttwo\x00\u202ethree"}
	if err := Check(&w); err != nil {
		t.Fatal(err)
	}
	if w.Title != "x\ufffd]0;owned\ufffdy\ufffdz" || w.Text != "one\n\ttwo\ufffd\ufffdthree" {
		t.Errorf("%q, %q", w.Title, w.Text)
	}
	w.Title = strings.Repeat("한", mostTitle)
	if err := Check(&w); err != nil || len(w.Title) > mostTitle+3 || !strings.HasSuffix(w.Title, "한…") {
		t.Errorf("a long one is %d bytes, %q, %v", len(w.Title), w.Title[len(w.Title)-6:], err)
	}
}

func TestWhatAnImageSaysOfItselfIsNotItsAgentsFault(t *testing.T) {
	image := session.Image{ID: "sha256:" + strings.Repeat("0a", 32), Origin: &session.ImageOrigin{Name: "x\n",
		Session: "../.."},
		Labels: map[string]string{"good": "a\x1bb", "bad\nkey": "c"}}
	if err := Check(&image); err != nil {
		t.Fatal(err)
	}
	if image.Origin != nil || len(image.Labels) != 1 || image.Labels["good"] != "a\ufffdb" {
		t.Errorf("%+v, %v", image.Origin, image.Labels)
	}
}

func TestPhrasesAreNotEndless(t *testing.T) {
	deep := session.Phrase{Say: "a"}
	for range phraseDepth {
		deep = session.Phrase{Say: "a", With: []session.Phrase{deep}}
	}
	wide := session.Phrase{Say: "a", With: make([]session.Phrase, phraseParts)}
	for name, p := range map[string]session.Phrase{"deep": deep, "wide": wide, "odd": {Say: "a b"}} {
		if Check(&p) == nil {
			t.Errorf("one that is %s is good", name)
		}
	}
	p := session.Say("wait.cpu", session.Fill("name", "train\x1b"))
	if err := Check(&p); err != nil || p.With[0].Text != "train\ufffd" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNumbersAndTimesAreBounded(t *testing.T) {
	good := session.Usage{Session: "aaaaaaaaaaaa", At: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), CPU: 1, Pids: 3}
	if err := Check(&good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*session.Usage){
		"no number":      func(u *session.Usage) { u.CPU = math.NaN() },
		"without end":    func(u *session.Usage) { u.CPU = math.Inf(1) },
		"below nothing":  func(u *session.Usage) { u.Pids = -1 },
		"too much":       func(u *session.Usage) { u.Memory = math.MaxInt64 },
		"after all time": func(u *session.Usage) { u.At = u.At.AddDate(500, 0, 0) },
		"before it":      func(u *session.Usage) { u.At = u.At.AddDate(-100, 0, 0) },
	} {
		bad := good
		change(&bad)
		if Check(&bad) == nil {
			t.Errorf("what is %s is good: %+v", name, bad)
		}
	}
}

// FuzzAcceptedSpecsAreBelieved looks for a spec that an agent accepts and that is
// refused when it tells of it: whoever launched it would have the agent
// distrusted by everybody else.
func FuzzAcceptedSpecsAreBelieved(f *testing.F) {
	for _, raw := range []string{
		`{"type":"batch","image":"localhost:5000/a_b/c:V1..2","command":"a\nb\u001b",` +
			`"notBefore":"2026-12-01T00:00:00Z","timeout":"3w","label":"실험 1","group":"x\ny"}`,
		`{"image":"[::1]:5000/a@sha256:` + strings.Repeat("0a", 32) +
			`","mounts":[{"source":"/data/../x y","target":"z/","readOnly":true},{"folder":".cache","path":"a/"},` +
			`{"source":"C:\\data"}]}`,
		`{"image":"a","env":[{"name":"_","value":"\u001b[2J\n"}],"ports":[8080],"after":["aaaaaaaaaaaa","other"],` +
			`"accelerator":{"profile":"x y","count":2},"cluster":8}`,
		`{"image":"a","name":"_a.b-c_","idle":{"lifetime":"1h","use":{"window":"30m","cpu":0.1,"any":true}},` +
			`"commitOnEnd":50,"priority":100,"pendingTimeout":"520w"}`,
	} {
		f.Add([]byte(raw))
	}
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		var spec session.Spec
		if json.Unmarshal(raw, &spec) != nil ||
			spec.Validate(now, session.Limits{CPUs: 1 << 16, Memory: 1 << 50}) != nil {
			return
		}
		full := spec.WithDefaults()
		if err := Check(&full); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	})
}
