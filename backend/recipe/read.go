// Package recipe reads, writes and compares recipes: specs in YAML files, to keep with the code that they run, to
// share, and to launch again in the user interface or with slipway run -f. The fields are those of the API. A recipe
// never has the value of a variable whose name looks secret: it names the variable, and whoever runs it sets the value.
package recipe

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"slipway/backend/project"
	"slipway/backend/session"
	"slipway/gpu"
)

// maxSize is the largest recipe, in bytes.
const maxSize = 1 << 20

// Fault is an error in a recipe. Line is 0 if it concerns the whole text.
type Fault struct {
	Line          int
	Message, Hint string
	Field         *session.FieldError // nil: no field of a spec
}

// faultOf returns a field error as a fault, or nil.
func faultOf(field *session.FieldError, line int) error {
	if field == nil {
		return nil
	}
	return &Fault{Line: line, Message: fmt.Sprintf("%s: %s", field.Field, field.Message), Hint: field.Hint,
		Field: field}
}

func (f *Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return f.Message
}

// Parse parses a spec in YAML or JSON. The fields are those of the API; variables may also be a map, and ports ranges.
// It fails with a *Fault.
func Parse(data []byte) (spec session.Spec, err error) {
	return spec, parse(data, &spec)
}

// parse parses one document into a wire type.
func parse[T any](data []byte, into *T) error {
	document, err := Document(data, "Write at least image: and a name of an image.")
	if err != nil {
		return err
	}
	return decode(document, reflect.ValueOf(into).Elem(), "")
}

// Document returns the only document of a YAML file of at most 1 MiB. It fails with a *Fault, which has a hint for an
// empty file.
func Document(data []byte, empty string) (*yaml.Node, error) {
	if len(data) > maxSize {
		return nil, &Fault{Message: "it holds more than 1 MiB.",
			Hint: "Such a file has a few lines; is it the right one?"}
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Fault{Message: "it is empty.", Hint: empty}
		}
		return nil, syntaxError(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, &Fault{Message: "it holds more than one document.",
			Hint: "Keep only the part before the second ---."}
	}
	return document.Content[0], nil
}

// Set sets the field of spec with a path such as resources.cpu to a text, as [Parse] reads it. An empty text clears a
// text or an amount. It fails with a *Fault.
func Set(spec *session.Spec, path, text string) error {
	into := reflect.ValueOf(spec).Elem()
	for name := range strings.SplitSeq(path, ".") {
		if into.Kind() == reflect.Pointer {
			if into.IsNil() {
				into.Set(reflect.New(into.Type().Elem()))
			}
			into = into.Elem()
		}
		for field, f := range fields(into.Type()) {
			if field == name {
				into = into.FieldByIndex(f.Index)
				break
			}
		}
	}
	into.SetZero()
	node := &yaml.Node{Kind: yaml.ScalarNode, Value: text}
	if node.Tag = node.ShortTag(); node.Tag == "!!null" {
		node.Tag = "!!str"
	}
	return decode(node, into, path)
}

// syntaxError returns an error of YAML, which begins with "yaml: line N: ", as a fault.
func syntaxError(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, after
			}
		}
	}
	return &Fault{Line: line, Message: "invalid YAML: " + text + ".",
		Hint: "Check the indentation and the quotes there."}
}

func wrong(node *yaml.Node, path, what, hint string) error {
	return &Fault{Line: node.Line, Message: fmt.Sprintf("%s %s.", path, what), Hint: hint}
}

// decode decodes node into a value of a wire type. Errors name it by path.
func decode(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return wrong(node, cmp.Or(path, "The file"), "uses an anchor or an alias", "Write the value out.")
	}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil // like an absent field
	}
	switch to := into.Addr().Interface().(type) {
	case *gpu.Request:
		if node.Kind != yaml.MappingNode {
			return decodeScalar(node, into, path)
		}
	case **time.Time:
		return decodeTime(node, to, path)
	case *[]session.EnvVar:
		if node.Kind == yaml.MappingNode {
			return decodeEnv(node, to, path)
		}
	case *[]int:
		return decodePorts(node, to, path)
	}
	switch into.Kind() {
	case reflect.Pointer:
		value := reflect.New(into.Type().Elem())
		into.Set(value)
		return decode(node, value.Elem(), path)
	case reflect.Struct:
		return decodeStruct(node, into, path)
	case reflect.Slice:
		return decodeList(node, into, path)
	}
	return decodeScalar(node, into, path)
}

func decodeStruct(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.MappingNode {
		return wrong(node, cmp.Or(path, "The file"), "is not a group of fields", "Write fields as name: value.")
	}
	members := map[string][]int{}
	var names []string
	for name, f := range fields(into.Type()) {
		members[name] = f.Index
		names = append(names, name)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at, known := members[key.Value]
		if !known || key.Kind != yaml.ScalarNode {
			return wrong(key, strconv.Quote(key.Value), "is not a field here", Nearest(key.Value, names))
		}
		if seen[key.Value] {
			return wrong(key, key.Value, "is there twice", "Keep one of them.")
		}
		seen[key.Value] = true
		if err := decode(value, into.FieldByIndex(at), strings.TrimPrefix(path+"."+key.Value, ".")); err != nil {
			return err
		}
	}
	return nil
}

func decodeList(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.SequenceNode {
		return wrong(node, path, "is not a list", "Write each entry on its own line, beginning with a dash.")
	}
	list := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		if err := decode(item, list.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	into.Set(list)
	return nil
}

func decodeScalar(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.ScalarNode {
		return wrong(node, path, "is not a single value", "Write "+path+": and the value on one line.")
	}
	if unit, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return faultOf(session.ReadUnit(path, node.Value, unit), node.Line)
	}
	ok, not, hint := true, "", "Write digits without quotes."
	switch into.Kind() {
	case reflect.String:
		into.SetString(node.Value)
	case reflect.Int:
		n, err := strconv.Atoi(node.Value)
		ok, not = err == nil && node.Tag == "!!int", "no whole number"
		into.SetInt(int64(n))
	case reflect.Float64:
		n, err := strconv.ParseFloat(node.Value, 64)
		finite := err == nil && !math.IsNaN(n) && !math.IsInf(n, 0)
		ok, not = finite && (node.Tag == "!!int" || node.Tag == "!!float"), "no number"
		into.SetFloat(n)
	case reflect.Bool:
		ok, not, hint = node.Tag == "!!bool", "neither true nor false", "Write true or false."
		into.SetBool(strings.EqualFold(node.Value, "true"))
	default:
		return fmt.Errorf("%s has a type that recipes do not know: %s", path, into.Type())
	}
	if !ok {
		return wrong(node, path, fmt.Sprintf("is %q, which is %s", node.Value, not), hint)
	}
	return nil
}

func decodeTime(node *yaml.Node, into **time.Time, path string) error {
	at, err := time.Parse(time.RFC3339, node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return wrong(node, path, fmt.Sprintf("is %q, which is not a time", node.Value),
			"Write it as RFC 3339, for example 2026-05-01T08:00:00+09:00.")
	}
	*into = &at
	return nil
}

func decodeEnv(node *yaml.Node, into *[]session.EnvVar, path string) error {
	var env []session.EnvVar
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return wrong(key, path, "contains a value that is not text", "Write each variable as NAME: value.")
		}
		if slices.ContainsFunc(env, func(v session.EnvVar) bool { return v.Name == key.Value }) {
			return wrong(key, path+"."+key.Value, "is there twice", "Keep one of them.")
		}
		text := value.Value
		if value.Tag == "!!null" {
			text = ""
		}
		env = append(env, session.EnvVar{Name: key.Value, Value: text})
	}
	*into = env
	return nil
}

func decodePorts(node *yaml.Node, into *[]int, path string) error {
	items := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		items = node.Content
	}
	var all []int
	for _, item := range items {
		ports, err := ParsePorts(item.Value)
		if err != nil || item.Kind != yaml.ScalarNode {
			return wrong(item, path, fmt.Sprintf("contains %q, which is not a port", item.Value), portHint)
		}
		all = append(all, ports...)
	}
	*into = all
	return nil
}

// Nearest suggests the name that is most similar to what was written.
func Nearest(written string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		if d := distance(strings.ToLower(written), strings.ToLower(name)); d < least && 2*d <= len(written) {
			best, least = name, d
		}
	}
	if best != "" {
		return "Did you mean " + best + "?"
	}
	return "The fields are " + strings.Join(names, ", ") + "."
}

// distance returns the Levenshtein distance of two texts.
func distance(a, b string) int {
	if len(a) > 64 { // not similar to any name
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// maxPortRange is the most ports of a range, to catch typing errors.
const maxPortRange = 64

const portHint = "Write ports from 1 to 65535, or ranges such as 9000:9003."

// ParsePorts parses a port or a range a:b.
func ParsePorts(text string) ([]int, error) {
	from, to, ranged := strings.Cut(text, ":")
	first, err := strconv.Atoi(from)
	if err != nil {
		return nil, err
	}
	last := first
	if ranged {
		if last, err = strconv.Atoi(to); err != nil {
			return nil, err
		}
	}
	if first < 1 || last > 65535 || last < first || last-first >= maxPortRange {
		return nil, fmt.Errorf("no range of ports: %s", text)
	}
	var ports []int
	for port := first; port <= last; port++ {
		ports = append(ports, port)
	}
	return ports, nil
}

// maxLink is the longest link, in bytes.
const maxLink = 32 << 10

// Link is the content of a slipway:// link. It has no effect until the user confirms it.
type Link struct {
	Kind    string        `json:"kind"`              // run, open or project
	Spec    *session.Spec `json:"spec,omitempty"`    // of run
	Session string        `json:"session,omitempty"` // of open: an id or the name of a live one
	Project string        `json:"project,omitempty"` // of project: the address of a git repository
}

// ParseLink parses slipway://run?image=… with the fields of a recipe, or a whole one as recipe=BASE64URL,
// slipway://open/SESSION, or slipway://project?address=REPOSITORY. It refuses a link with the value of a secret-looking
// variable, because links are kept in histories, and one that asks for stored secrets, because anybody can write a
// link. It fails with a *Fault.
func ParseLink(text string) (Link, error) {
	if len(text) > maxLink {
		return Link{}, &Fault{Message: "the link is longer than 32 KiB.", Hint: "Send the recipe as a file."}
	}
	address, err := url.Parse(text)
	const hint = "Slipway links begin with slipway://run?, slipway://open/ or slipway://project?."
	if err != nil || address.Scheme != "slipway" {
		return Link{}, &Fault{Message: "this is not a Slipway link.", Hint: hint}
	}
	switch address.Host {
	case "open":
		ref := strings.Trim(address.Path, "/")
		if !session.ValidID(ref) && session.SessionNames.Check(ref) != nil {
			return Link{}, &Fault{Message: fmt.Sprintf("the link names no session: %q.", ref),
				Hint: "Write slipway://open/ and the id or name of a session."}
		}
		return Link{Kind: "open", Session: ref}, nil
	case "run":
		spec, err := linkSpec(address.RawQuery)
		return Link{Kind: "run", Spec: &spec}, err
	case "project":
		repository := address.Query().Get("address")
		if _, err := project.ParseRepository(repository); err != nil {
			e := session.AsError(err, session.CodeFileInvalid)
			return Link{}, &Fault{Message: e.Message, Hint: e.Hint}
		}
		return Link{Kind: "project", Project: repository}, nil
	}
	return Link{}, &Fault{Message: fmt.Sprintf("Slipway has no links to %q.", address.Host), Hint: hint}
}

func linkSpec(query string) (session.Spec, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return session.Spec{}, &Fault{Message: "the link is not a valid URL.",
			Hint: "Percent-encode characters such as & and % in its values."}
	}
	var spec session.Spec
	if whole := values.Get("recipe"); whole != "" {
		data, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(whole, "="))
		if err != nil {
			return spec, &Fault{Message: "the recipe in the link is not base64url.", Hint: "Copy the whole link."}
		}
		if spec, err = Parse(data); err != nil {
			return spec, err
		}
		delete(values, "recipe")
	}
	for name, all := range values {
		for _, value := range all {
			if err := setField(&spec, name, value); err != nil {
				return spec, err
			}
		}
	}
	if spec.Image == "" {
		return spec, &Fault{Message: "the link names no image.", Hint: "Add image=NAME to it."}
	}
	if len(spec.Secrets) > 0 {
		return spec, &Fault{Message: "the link asks for your secrets: " + strings.Join(spec.Secrets, ", ") + ".",
			Hint: "Take them out of the link, and select them in the launcher."}
	}
	for _, v := range spec.Env {
		if v.Value != "" && session.SecretName(v.Name) {
			return spec, &Fault{Message: fmt.Sprintf("the link holds a value of %s, which looks secret.", v.Name),
				Hint: "Addresses are kept in histories: take the value out, and change it where it is used."}
		}
	}
	return spec, nil
}

// setField sets one parameter of a link.
func setField(spec *session.Spec, name, value string) error {
	switch name {
	case "name", "type", "image", "command", "setup", "agent", "group", "label", "timeout", "accelerator", "threads",
		"cluster":
		return Set(spec, name, value)
	case "memory", "shm", "cpu":
		return Set(spec, "resources."+name, value)
	case "env":
		variable, content, _ := strings.Cut(value, "=")
		spec.Env = append(spec.Env, session.EnvVar{Name: variable, Value: content})
	case "port":
		ports, err := ParsePorts(value)
		if err != nil {
			return &Fault{Message: fmt.Sprintf("%q is not a port.", value), Hint: portHint}
		}
		spec.Ports = append(spec.Ports, ports...)
	case "folder":
		folder, target, _ := strings.Cut(value, ":")
		spec.Mounts = append(spec.Mounts, session.Mount{Folder: folder, Target: target})
	default:
		return &Fault{Message: fmt.Sprintf("%q is not allowed in a link.", name),
			Hint: "Put the whole recipe into the link as recipe=, or send it as a file."}
	}
	return nil
}
