package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/build/generated"
)

func TestTheGeneratedFilesAreCurrent(t *testing.T) {
	files, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := generated.Update("../..", files, true); err != nil {
		t.Error(err)
	}
}

func TestTypeScriptTellsWhatMayBeAbsent(t *testing.T) {
	src := &source{names: map[reflect.Type]string{reflect.TypeFor[session.Mount](): "Other"}}
	of := func(typ reflect.Type) wireType {
		read, err := src.readType(typ)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	src.Structs = []structType{{Name: "Thing", Doc: "Thing is one.", Fields: []field{
		{Name: "plain", Type: of(reflect.TypeFor[int64]())},
		{Name: "maybe", Type: of(reflect.TypeFor[time.Time]()), Optional: true},
		{Name: "orNull", Type: of(reflect.TypeFor[int]()), Nullable: true, Doc: "of the command"},
		{Name: "list", Type: of(reflect.TypeFor[[]session.Mount]())},
		{Name: "labels", Type: of(reflect.TypeFor[map[string]string]())},
	}}}
	written, err := typeScript("types", src)
	if err != nil {
		t.Fatal(err)
	}
	got := string(written)
	want := `/** Thing is one. */
export interface Thing {
  plain: number;
  maybe?: Time;
  /** Of the command. */
  orNull: number | null;
  list: Other[];
  labels: Record<string, string>;
}
`
	if !strings.Contains(got, want) {
		t.Errorf("typeScript wrote\n%s\nwithout\n%s", got, want)
	}
}

func TestEveryReferenceOfTheDocumentIsDefined(t *testing.T) {
	var document struct {
		Paths      map[string]map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal([]byte(api.OpenAPI), &document); err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`#/components/schemas/(\w+)`).FindAllStringSubmatch(api.OpenAPI, -1) {
		if document.Components.Schemas[match[1]] == nil {
			t.Errorf("%s is referred to and not defined", match[1])
		}
	}
	for _, one := range route.All() {
		if document.Paths[one.Path()][strings.ToLower(one.Method())] == nil {
			t.Errorf("route %s is not in the document", one.Name)
		}
	}
}
