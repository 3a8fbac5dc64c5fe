package recipe

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/session"
	"slipway/gpu"
)

// Compare lists every field that one of two specs sets, in the order of a
// recipe, with what each says of it. Variables and mounts are fields by
// themselves. Of a secret-looking variable only its presence is compared.
func Compare(left, right api.Spec) []api.RecipeField {
	rows := flatten(left)
	place := 0
	for _, field := range flatten(right) {
		i := slices.IndexFunc(rows, func(r api.RecipeField) bool { return r.Field == field.Field })
		if i < 0 {
			i = place
			rows = slices.Insert(rows, i, api.RecipeField{Field: field.Field})
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
func flatten(spec api.Spec) []api.RecipeField {
	rows := []api.RecipeField{}
	var walk func(value reflect.Value, name string)
	walk = func(value reflect.Value, name string) {
		tell := func(name, text string) { rows = append(rows, api.RecipeField{Field: name, Left: text}) }
		switch v := value.Interface().(type) {
		case api.Bytes:
			tell(name, amountText(v))
			return
		case *time.Time:
			tell(name, v.Format(time.RFC3339))
			return
		case []api.EnvVar:
			for _, one := range v {
				tell("env."+one.Name, envText(one))
			}
			return
		case []api.Mount:
			for _, one := range v {
				tell("mounts."+mountName(one), mountText(one))
			}
			return
		}
		switch {
		case value.Kind() == reflect.Struct:
			set := false
			for i := range value.NumField() {
				if !value.Field(i).IsZero() {
					set = true
					field, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ",")
					walk(value.Field(i), strings.TrimPrefix(name+"."+field, "."))
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

// amountText writes amounts that are the same in one way.
func amountText(b api.Bytes) string {
	if n, err := gpu.ParseBytes(b.Text); err == nil {
		b = api.Bytes{N: int64(n)}
	}
	return fmt.Sprint(amount(b))
}

func envText(v api.EnvVar) string {
	switch {
	case session.SecretName(v.Name):
		return "(secret)"
	case v.Value == "":
		return `""`
	}
	return v.Value
}

// mountName tells mounts apart by where they are seen, as far as that is said.
func mountName(m api.Mount) string {
	switch {
	case m.Target != "":
		return m.Target
	case m.Folder != "":
		return m.Folder
	}
	return path.Base(m.Source)
}

func mountText(m api.Mount) string {
	text := m.Source
	if m.Folder != "" {
		text = path.Join(m.Folder, m.Path)
	}
	if m.ReadOnly {
		text += " (read-only)"
	}
	return text
}
