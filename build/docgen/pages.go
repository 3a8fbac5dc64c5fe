package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
	"text/template"

	"slipway/backend/api/route"
	"slipway/backend/settings"
)

//go:embed pages.tmpl
var templateText string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"cell": cell, "value": value, "body": bodyLink, "answer": answer, "join": strings.Join,
	"path": func(one route.Description) string { return strings.TrimPrefix(one.Path(), route.Root) },
}).Parse(templateText))

func writePage(b *bytes.Buffer, name string) error {
	shapes, err := shapes()
	if err != nil {
		return err
	}
	return templates.ExecuteTemplate(b, name, map[string]any{
		"api.md":      map[string]any{"Groups": groups(), "Shapes": shapes},
		"settings.md": settings.Fields(),
	}[name])
}

// value describes the values of a setting.
func value(f settings.Field) string {
	switch {
	case f.Choices != nil:
		return strings.Join(f.Choices, ", ")
	case f.Most > 0:
		return fmt.Sprintf("%s, %v to %v", f.Kind, f.Least, f.Most)
	case f.Example != "":
		return "such as `" + f.Example + "`"
	}
	return string(f.Kind)
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}
