package recipe

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"slipway/backend/session"
	"slipway/gpu"
)

// Field is what two specs say of one field. An empty text: nothing.
type Field struct {
	Field string `json:"field"`
	Left  string `json:"left"`
	Right string `json:"right"`
	Same  bool   `json:"same"`
}

// Compare lists every field that one of two specs sets, in the order of a
// recipe, with what each says of it. Variables and mounts are fields by
// themselves. Of a secret-looking variable only its presence is compared.
func Compare(left, right session.Spec) []Field {
	rows := flatten(left)
	place := 0
	for _, field := range flatten(right) {
		i := slices.IndexFunc(rows, func(r Field) bool { return r.Field == field.Field })
		if i < 0 {
			i = place
			rows = slices.Insert(rows, i, Field{Field: field.Field})
		}
		rows[i].Right = field.Left
		place = i + 1
	}
	for i := range rows {
		rows[i].Same = rows[i].Left == rows[i].Right
	}
	return rows
}

// flatten writes every field of a spec that is set as a text, on the left.
func flatten(spec session.Spec) []Field {
	rows := []Field{}
	var walk func(value reflect.Value, name string)
	walk = func(value reflect.Value, name string) {
		tell := func(name, text string) { rows = append(rows, Field{Field: name, Left: text}) }
		switch v := value.Interface().(type) {
		case gpu.Bytes:
			tell(name, fmt.Sprint(amount(v)))
			return
		case gpu.Request:
			tell(name, v.String())
			return
		case *time.Time:
			tell(name, v.Format(time.RFC3339))
			return
		case []session.EnvVar:
			for _, one := range v {
				tell("env."+one.Name, envText(one))
			}
			return
		case []session.Mount:
			for _, one := range v {
				tell("mounts."+mountName(one), mountText(one))
			}
			return
		}
		switch {
		case value.Kind() == reflect.Struct:
			set := false
			for field, f := range fields(value.Type()) {
				if member := value.FieldByIndex(f.Index); !member.IsZero() {
					set = true
					walk(member, strings.TrimPrefix(name+"."+field, "."))
				}
			}
			if !set {
				tell(name, "{}")
			}
		case value.Kind() == reflect.Pointer:
			walk(value.Elem(), name)
		case value.Kind() == reflect.Slice:
			tell(name, strings.Trim(fmt.Sprint(value.Interface()), "[]"))
		default:
			tell(name, fmt.Sprint(value.Interface()))
		}
	}
	walk(reflect.ValueOf(spec), "")
	return rows
}

func envText(v session.EnvVar) string {
	switch {
	case session.SecretName(v.Name):
		return "(secret)"
	case v.Value == "":
		return `""`
	}
	return v.Value
}

// mountName tells mounts apart by where they are seen, as far as that is said.
func mountName(m session.Mount) string {
	switch {
	case m.Target != "":
		return m.Target
	case m.Folder != "":
		return m.Folder
	}
	return path.Base(m.Source)
}

func mountText(m session.Mount) string {
	text := m.Source
	if m.Folder != "" {
		text = path.Join(m.Folder, m.Path)
	}
	if m.ReadOnly {
		text += " (read-only)"
	}
	return text
}
