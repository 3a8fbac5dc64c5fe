package recipe

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"slipway/backend/session"
	"slipway/gpu"
)

// Write returns spec as a recipe that [Parse] reads as the same spec. It leaves out unset fields and the values of
// secret-looking variables. Notes become comments, one line each.
func Write(spec session.Spec, notes ...string) []byte {
	return write(spec, append([]string{"A recipe of Slipway. Run it with: slipway run -f FILE"}, notes...))
}

func write(value any, notes []string) []byte {
	var text bytes.Buffer
	for _, note := range notes {
		fmt.Fprintf(&text, "# %s\n", note)
	}
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	_ = encoder.Encode(encode(reflect.ValueOf(value))) // nodes made here are valid, and a buffer accepts everything
	_ = encoder.Close()
	return text.Bytes()
}

// FromJSON returns JSON as YAML, with its fields in their order.
func FromJSON(data []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	unquoted(&document)
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}

// unquoted removes the braces and quotes of JSON. The encoder quotes what YAML would read as something else.
func unquoted(node *yaml.Node) {
	if len(node.Content) > 0 || node.Kind == yaml.ScalarNode {
		node.Style = 0
	}
	for _, child := range node.Content {
		unquoted(child)
	}
}

// encode returns a value of a wire type as YAML, or nil if it is not set.
func encode(value reflect.Value) *yaml.Node {
	switch v := value.Interface().(type) {
	case gpu.Bytes:
		return scalar(amount(v))
	case gpu.Request, session.Duration:
		return scalar(fmt.Sprint(v))
	case *time.Time:
		if v == nil {
			return nil
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!timestamp", Value: v.Format(time.RFC3339)}
	case []session.EnvVar:
		return encodeEnv(v)
	}
	switch value.Kind() {
	case reflect.Pointer:
		if value.IsNil() {
			return nil
		}
		if value.Elem().Kind() == reflect.Struct {
			return encodeStruct(value.Elem())
		}
		return scalar(value.Elem().Interface()) // set, even if it is 0
	case reflect.Struct:
		return encodeStruct(value)
	case reflect.Slice:
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for i := range value.Len() {
			list.Content = append(list.Content, encode(value.Index(i)))
		}
		if value.Len() > 0 && list.Content[0].Kind == yaml.ScalarNode {
			list.Style = yaml.FlowStyle
		}
		return list
	case reflect.String:
		return scalar(value.String())
	}
	return scalar(value.Interface())
}

// scalar encodes one value. A text that YAML would read as something else is quoted.
func scalar(value any) *yaml.Node {
	node := &yaml.Node{}
	if text, ok := value.(string); ok {
		node.Kind, node.Tag, node.Value = yaml.ScalarNode, "!!str", text
		if !plain(text) {
			node.Style = yaml.DoubleQuotedStyle
		}
		return node
	}
	_ = node.Encode(value) // numbers and booleans cannot fail
	return node
}

// plain reports whether a text needs no escapes.
func plain(text string) bool {
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if strings.ContainsFunc(text, odd) {
		return false
	}
	return !strings.Contains(text, "\n") || !strings.HasPrefix(text, "\n") && !strings.HasPrefix(text, " ") &&
		!strings.HasSuffix(text, "\n\n")
}

// encodeStruct encodes the fields that are set, in order. An empty group is kept: an idle policy that is off means
// something.
func encodeStruct(value reflect.Value) *yaml.Node {
	group := &yaml.Node{Kind: yaml.MappingNode}
	for name, f := range fields(value.Type()) {
		if field := value.FieldByIndex(f.Index); !field.IsZero() {
			group.Content = append(group.Content, scalar(name), encode(field))
		}
	}
	if len(group.Content) == 0 {
		group.Style = yaml.FlowStyle
	}
	return group
}

// fields yields the fields of a struct and of what it embeds, by their JSON names.
func fields(t reflect.Type) iter.Seq2[string, reflect.StructField] {
	return func(yield func(string, reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && !yield(name, f) {
				return
			}
		}
	}
}

// encodeEnv encodes variables as a map, or as a list if two have one name.
func encodeEnv(env []session.EnvVar) *yaml.Node {
	group, seen := &yaml.Node{Kind: yaml.MappingNode}, map[string]bool{}
	for _, v := range env {
		if seen[v.Name] {
			return doubled(env)
		}
		seen[v.Name] = true
		value := scalar(v.Value)
		if session.SecretName(v.Name) {
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null",
				LineComment: "# secrets are not stored: set the value when you run this"}
		}
		group.Content = append(group.Content, scalar(v.Name), value)
	}
	return group
}

// doubled encodes variables as a list, because two have one name. The reader refuses them.
func doubled(env []session.EnvVar) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range env {
		if session.SecretName(v.Name) {
			v.Value = ""
		}
		list.Content = append(list.Content,
			&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("name"), scalar(v.Name), scalar("value"),
				scalar(v.Value)}})
	}
	return list
}

// amount returns whole mebibytes with their largest unit, and other amounts as a number.
func amount(b gpu.Bytes) any {
	if b == 0 || b%gpu.MiB != 0 {
		return int64(b)
	}
	return b.Exact()
}

// FileName returns the file name of a recipe.
func FileName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name)
	if clean = strings.Trim(clean, ".-"); clean == "" {
		clean = "recipe"
	}
	return fmt.Sprintf("%s.slipway.yaml", clean)
}

// Field is the value of one field in two specs. An empty text means none.
type Field struct {
	Field string `json:"field"`
	Left  string `json:"left"`
	Right string `json:"right"`
	Same  bool   `json:"same"`
}

// Compare lists every field that one of two specs sets, in the order of a recipe. Each variable and mount is a field.
// Of a secret-looking variable only the presence is compared.
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

// flatten returns every field of a spec that is set, as text in Left.
func flatten(spec session.Spec) []Field {
	rows := []Field{}
	add := func(name, text string) { rows = append(rows, Field{Field: name, Left: text}) }
	var walk func(node *yaml.Node, name string)
	walk = func(node *yaml.Node, name string) {
		switch {
		case name == "env":
			for _, one := range spec.Env {
				add("env."+one.Name, envText(one))
			}
		case name == "mounts":
			for _, one := range spec.Mounts {
				add("mounts."+cmp.Or(one.Target, one.Folder, path.Base(one.Source)), mountText(one))
			}
		case node.Kind == yaml.SequenceNode:
			var items []string
			for _, item := range node.Content {
				items = append(items, item.Value)
			}
			add(name, strings.Join(items, " "))
		case node.Kind == yaml.ScalarNode:
			add(name, node.Value)
		case len(node.Content) == 0:
			add(name, "{}")
		}
		for i := 0; node.Kind == yaml.MappingNode && name != "env" && i < len(node.Content); i += 2 {
			walk(node.Content[i+1], strings.TrimPrefix(name+"."+node.Content[i].Value, "."))
		}
	}
	walk(encode(reflect.ValueOf(spec)), "")
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
