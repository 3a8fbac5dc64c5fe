package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
)

// document is the part of the OpenAPI document that answers are held against.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	OperationID string `json:"operationId"`
	Responses   map[string]struct {
		Content map[string]struct{ Schema *schema }
	}
}

// schema is what the generator of the document uses of JSON Schema.
type schema struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format               string
	Enum                 []string
	Required             []string
	Properties           map[string]*schema
	AdditionalProperties *schema
	Items                *schema
	AnyOf                []*schema
}

func readDocument() (*document, error) {
	var d document
	return &d, json.Unmarshal([]byte(api.OpenAPI), &d)
}

// answer is the schema of the good answer of an operation.
func (d *document) answer(id string) *schema {
	for _, item := range d.Paths {
		for _, op := range item {
			if op.OperationID != id {
				continue
			}
			for status, response := range op.Responses {
				if strings.HasPrefix(status, "2") {
					return response.Content["application/json"].Schema
				}
			}
		}
	}
	return nil
}

// check returns what is wrong with value, where path names it. Members that the
// schema does not know are wrong, too: whoever reads the document misses them.
func (d *document) check(path string, value any, s *schema) []string {
	if s == nil {
		return []string{path + " has no schema"}
	}
	if s.Ref != "" {
		return d.check(path, value, d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")])
	}
	if len(s.AnyOf) > 0 {
		var all []string
		for _, option := range s.AnyOf {
			wrong := d.check(path, value, option)
			if len(wrong) == 0 {
				return nil
			}
			all = append(all, wrong...)
		}
		return all
	}
	if !isOfType(value, s.Type) {
		return []string{fmt.Sprintf("%s is %v, want %v", path, value, s.Type)}
	}
	switch v := value.(type) {
	case map[string]any:
		return d.checkObject(path, v, s)
	case []any:
		var wrong []string
		for i, item := range v {
			wrong = append(wrong, d.check(fmt.Sprintf("%s[%d]", path, i), item, s.Items)...)
		}
		return wrong
	case string:
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			return []string{fmt.Sprintf("%s is %q, want one of %q", path, v, s.Enum)}
		}
		if _, err := time.Parse(time.RFC3339Nano, v); s.Format == "date-time" && err != nil {
			return []string{fmt.Sprintf("%s is %q, want a time", path, v)}
		}
	}
	return nil
}

func (d *document) checkObject(path string, members map[string]any, s *schema) []string {
	var wrong []string
	for _, name := range s.Required {
		if _, there := members[name]; !there {
			wrong = append(wrong, path+"."+name+" is missing")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member := s.Properties[name]
		if member == nil {
			member = s.AdditionalProperties
		}
		wrong = append(wrong, d.check(path+"."+name, members[name], member)...)
	}
	return wrong
}

func isOfType(value, want any) bool {
	if list, ok := want.([]any); ok {
		return slices.ContainsFunc(list, func(one any) bool { return isOfType(value, one) })
	}
	switch v := value.(type) {
	case nil:
		return want == "null"
	case bool:
		return want == "boolean"
	case string:
		return want == "string"
	case float64:
		return want == "number" || want == "integer" && v == math.Trunc(v)
	case []any:
		return want == "array"
	case map[string]any:
		return want == "object"
	}
	return false
}
