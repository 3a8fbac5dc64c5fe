package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"slipway/backend/api"
)

// maxRecipe is the most that a spec file may hold, in bytes.
const maxRecipe = 1 << 20

// readSpec reads a spec from a YAML file, or from stdin for "-".
func (p *program) readSpec(path string) (api.Spec, error) {
	name, from := path, p.Stdin
	if path == "-" {
		name = "stdin"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return api.Spec{}, &failure{code: "recipe_read_not-found", exit: ExitUsage, message: sentence(err.Error()), hint: "-f takes the path of a YAML file."}
		}
		defer file.Close()
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, maxRecipe+1))
	if err != nil {
		return api.Spec{}, err
	}
	spec, err := parseRecipe(data)
	if err != nil {
		return spec, recipeFailure(name, err)
	}
	return spec, nil
}

// recipeError says what is wrong in a spec file and where. Line is 0 where the
// whole file is meant.
type recipeError struct {
	line          int
	message, hint string
}

func (e *recipeError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.message) }

func recipeFailure(name string, err error) error {
	var wrong *recipeError
	if !errors.As(err, &wrong) {
		return err
	}
	where := name
	if wrong.line > 0 {
		where = fmt.Sprintf("%s, line %d", name, wrong.line)
	}
	return &failure{code: "recipe_parse_invalid", exit: ExitInvalid, message: where + ": " + wrong.message, hint: wrong.hint}
}

// parseRecipe reads a spec as YAML, of which JSON is a part. The fields are
// those of the API; variables may also be written as a map and ports as ranges.
// It fails with a *recipeError.
func parseRecipe(data []byte) (api.Spec, error) {
	var spec api.Spec
	if len(data) > maxRecipe {
		return spec, &recipeError{message: "it holds more than 1 MiB.", hint: "A spec takes a few lines; is this the right file?"}
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return spec, &recipeError{message: "it is empty.", hint: "Write at least image: and a name of an image."}
		}
		return spec, syntaxError(err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return spec, &recipeError{message: "it holds more than one document.", hint: "Keep what stands before the second ---."}
	}
	err := decode(document.Content[0], reflect.ValueOf(&spec).Elem(), "")
	return spec, err
}

// syntaxError gives YAML's own failure, which begins with "yaml: line N: ".
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
	return &recipeError{line: line, message: "it is no YAML: " + text + ".", hint: "Check the indentation and the quotes there."}
}

func wrong(node *yaml.Node, path, what, hint string) error {
	return &recipeError{line: node.Line, message: fmt.Sprintf("%s %s.", path, what), hint: hint}
}

// decode reads node into a value of a wire type; path names it in messages.
func decode(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return wrong(node, named(path), "uses an anchor or an alias", "Write the value out.")
	}
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil // as if it were not there
	}
	switch to := into.Addr().Interface().(type) {
	case *api.Bytes:
		return decodeBytes(node, to, path)
	case **time.Time:
		return decodeTime(node, to, path)
	case *[]api.EnvVar:
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

func named(path string) string {
	if path == "" {
		return "The file"
	}
	return path
}

func decodeStruct(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.MappingNode {
		return wrong(node, named(path), "is not a group of fields", "Write fields as name: value.")
	}
	members := map[string]int{}
	var names []string
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		members[name] = i
		names = append(names, name)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at, known := members[key.Value]
		if !known || key.Kind != yaml.ScalarNode {
			return wrong(key, strconv.Quote(key.Value), "is no field here", nearest(key.Value, names))
		}
		if seen[key.Value] {
			return wrong(key, key.Value, "is there twice", "Keep one of them.")
		}
		seen[key.Value] = true
		if err := decode(value, into.Field(at), strings.TrimPrefix(path+"."+key.Value, ".")); err != nil {
			return err
		}
	}
	return nil
}

func decodeList(node *yaml.Node, into reflect.Value, path string) error {
	if node.Kind != yaml.SequenceNode {
		return wrong(node, path, "is not a list", "Begin each of its entries with a dash on a line of its own.")
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
	switch into.Kind() {
	case reflect.String:
		into.SetString(node.Value)
		return nil
	case reflect.Int:
		n, err := strconv.Atoi(node.Value)
		if err != nil || node.Tag != "!!int" {
			return wrong(node, path, fmt.Sprintf("is %q, which is no whole number", node.Value), "Write digits without quotes.")
		}
		into.SetInt(int64(n))
		return nil
	case reflect.Float64:
		n, err := strconv.ParseFloat(node.Value, 64)
		if err != nil || node.Tag != "!!int" && node.Tag != "!!float" || math.IsNaN(n) || math.IsInf(n, 0) {
			return wrong(node, path, fmt.Sprintf("is %q, which is no number", node.Value), "Write digits without quotes.")
		}
		into.SetFloat(n)
		return nil
	case reflect.Bool:
		if node.Tag != "!!bool" {
			return wrong(node, path, fmt.Sprintf("is %q, which is neither true nor false", node.Value), "Write true or false.")
		}
		into.SetBool(strings.EqualFold(node.Value, "true"))
		return nil
	}
	return fmt.Errorf("%s has a type that spec files do not know: %s", path, into.Type())
}

func decodeBytes(node *yaml.Node, into *api.Bytes, path string) error {
	if node.Kind != yaml.ScalarNode {
		return wrong(node, path, "is not an amount of memory", "Write a number with m, g or t, for example 512m.")
	}
	if node.Tag == "!!int" {
		if n, err := strconv.ParseInt(node.Value, 10, 64); err == nil {
			*into = api.Bytes{N: n}
			return nil
		}
	}
	*into = api.Bytes{Text: node.Value}
	return nil
}

func decodeTime(node *yaml.Node, into **time.Time, path string) error {
	at, err := time.Parse(time.RFC3339, node.Value)
	if err != nil || node.Kind != yaml.ScalarNode {
		return wrong(node, path, fmt.Sprintf("is %q, which is no time", node.Value), "Write it as RFC 3339, for example 2026-05-01T08:00:00+09:00.")
	}
	*into = &at
	return nil
}

func decodeEnv(node *yaml.Node, into *[]api.EnvVar, path string) error {
	var env []api.EnvVar
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || value.Kind != yaml.ScalarNode {
			return wrong(key, path, "holds something that is no text", "Write each variable as NAME: value.")
		}
		if slices.ContainsFunc(env, func(v api.EnvVar) bool { return v.Name == key.Value }) {
			return wrong(key, path+"."+key.Value, "is there twice", "Keep one of them.")
		}
		text := value.Value
		if value.Tag == "!!null" {
			text = ""
		}
		env = append(env, api.EnvVar{Name: key.Value, Value: text})
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
		ports, err := parsePorts(item.Value)
		if err != nil || item.Kind != yaml.ScalarNode {
			return wrong(item, path, fmt.Sprintf("holds %q, which is no port", item.Value), "Write ports from 1 to 65535, or ranges such as 9000:9003.")
		}
		all = append(all, ports...)
	}
	*into = all
	return nil
}

// nearest suggests the name that is most like what was written.
func nearest(written string, names []string) string {
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

// distance is how many letters to insert, remove or change to get from a to b.
func distance(a, b string) int {
	if len(a) > 64 { // like no name
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
