package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"slipway/backend/api"
	"slipway/backend/api/route"
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
	src := &source{structs: []structType{{name: "Thing", doc: "Thing is one.", fields: []field{
		{name: "plain", typ: fieldType{kind: kindBasic, name: "int64"}},
		{name: "maybe", typ: fieldType{kind: kindBasic, name: "time"}, optional: true},
		{name: "orNull", typ: fieldType{kind: kindBasic, name: "int"}, nullable: true, doc: "of the command"},
		{name: "list", typ: fieldType{kind: kindList, elem: &fieldType{kind: kindStruct, name: "Other"}}},
		{name: "labels", typ: fieldType{kind: kindMap, elem: &fieldType{kind: kindBasic, name: "string"}}},
	}}}}
	got := string(typeScript(src))
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
