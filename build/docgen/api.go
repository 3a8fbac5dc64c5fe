package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"slipway/backend/api"
	"slipway/backend/api/route"
)

type requests struct {
	Title  string
	Routes []route.Description
}

// groups returns all requests by the first word of their paths.
func groups() (all []requests) {
	others := requests{Title: "Everything else"}
	of := map[string][]route.Description{}
	for _, one := range route.All() {
		of[group(one)] = append(of[group(one)], one)
	}
	for _, one := range route.All() {
		switch routes := of[group(one)]; {
		case len(routes) < 3: // too few for a heading of their own
			others.Routes = append(others.Routes, one)
		case routes[0].Name == one.Name:
			all = append(all, requests{"/" + group(one), routes})
		}
	}
	return append(all, others)
}

func group(one route.Description) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(one.Path(), route.Root+"/"), "/")
	return name
}

func answer(one route.Description) string {
	switch {
	case one.Stream == route.WebSocket && one.Response != nil:
		return "a WebSocket of " + bodyLink(one.Response)
	case one.Stream == route.WebSocket:
		return "a WebSocket"
	case one.Stream != "":
		return fmt.Sprint(one.Status, ", ", one.Stream)
	case one.Response == nil:
		return fmt.Sprint(one.Status)
	}
	return fmt.Sprint(one.Status, ", ", bodyLink(one.Response))
}

func bodyLink(body any) string {
	if body == nil {
		return ""
	}
	t := reflect.TypeOf(body)
	if t.Kind() == reflect.Slice {
		return "list of " + shapeLink(api.TypeName(t.Elem()))
	}
	return shapeLink(api.TypeName(t))
}

func shapeLink(name string) string { return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name)) }

// shape is a schema, as far as the document uses schemas.
type shape struct {
	Ref         string `json:"$ref"`
	Description string
	Type        any // a name, or a list of names
	Format      string
	Enum        []string
	Items       *shape
	Values      *shape `json:"additionalProperties"`
	Properties  map[string]shape
	Required    []string
}

func (s shape) Mark(field string) string {
	if slices.Contains(s.Required, field) {
		return ""
	}
	return "*"
}

func shapes() (map[string]shape, error) {
	var document struct {
		Components struct{ Schemas map[string]shape }
	}
	err := json.Unmarshal([]byte(api.OpenAPI), &document)
	return document.Components.Schemas, err
}

// Kind describes the values of a shape.
func (s shape) Kind() string {
	var names []string
	switch t := s.Type.(type) {
	case string:
		names = []string{t}
	case []any:
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
	}
	switch {
	case s.Ref != "":
		return shapeLink(s.Ref[strings.LastIndexByte(s.Ref, '/')+1:])
	case s.Items != nil:
		return "list of " + s.Items.Kind()
	case s.Values != nil:
		return "a " + s.Values.Kind() + " by name"
	case s.Format == "date-time":
		names[0] = "time"
	case s.Format == "int64" && len(names) > 1 && names[1] == "string":
		return "bytes"
	}
	return strings.Join(names, " or ")
}
