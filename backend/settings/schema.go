package settings

import (
	"encoding/json"
	"strings"
)

// schemaFile lies beside the settings, where editors find it.
const schemaFile = "settings.schema.json"

// Schema is the JSON schema of the file.
func Schema() []byte {
	top := object{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Slipway's settings",
		"type": "object", "additionalProperties": false}
	properties := object{schemaName: object{"type": "string"}}
	top["properties"] = properties
	for _, field := range Fields() {
		into, name := properties, field.Name
		if group, rest, nested := strings.Cut(name, "."); nested {
			inner, ok := properties[group].(object)
			if !ok {
				inner = object{"type": "object", "additionalProperties": false, "properties": object{}}
				properties[group] = inner
			}
			into, name = inner["properties"].(object), rest //nolint:forcetypeassert // it was made above
		}
		into[name] = field.schema()
	}
	content, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return append(content, '\n')
}

type object = map[string]any

func (f Field) schema() object {
	s := object{"description": f.description()}
	if f.Default != nil {
		s["default"] = f.Default
	}
	switch f.Kind {
	case Integer:
		s["type"], s["minimum"], s["maximum"] = "integer", f.Least, f.Most
	case Number:
		s["type"], s["minimum"], s["maximum"] = "number", f.Least, f.Most
	case Switch:
		s["type"] = "boolean"
	case List:
		s["type"], s["items"] = "array", object{"type": "string"}
	case Text:
		s["type"] = "string"
		if f.Choices != nil {
			s["enum"] = f.Choices
		}
		if f.Rule != "" {
			s["pattern"] = f.Rule
		}
	}
	return s
}

func (f Field) description() string {
	text := f.Text + " " + f.Env + " overrides it."
	if f.Restart {
		text += " It is read when Slipway starts."
	}
	return text
}
