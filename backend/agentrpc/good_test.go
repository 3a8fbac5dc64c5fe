package agentrpc

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"slipway/backend/session"
	"slipway/backend/vet"
)

// reply is what the handler sends for one method: an answer and what follows it.
type reply struct {
	method string
	of     reflect.Type // of the answer, or of each event
	event  bool
	stream bool // bytes follow the answer
}

// repliesOf are those of all methods, read from their table.
func repliesOf(t testing.TB) []reply {
	t.Helper()
	list := []reply{{method: methodHello.name, of: reflect.TypeFor[Hello]()}}
	for _, m := range methods {
		r := reply{method: m.about().name}
		do, _ := reflect.TypeOf(m).FieldByName("do")
		switch kind := reflect.TypeOf(m).Name(); {
		case strings.HasPrefix(kind, "plain["), strings.HasPrefix(kind, "upload["):
			r.of = do.Type.Out(0)
		case strings.HasPrefix(kind, "feed["):
			r.of, r.event = do.Type.In(3).In(0), true
		case strings.HasPrefix(kind, "download["):
			r.of, r.stream = reflect.TypeFor[downloadHead](), true
		case strings.HasPrefix(kind, "duplex["):
			r.of, r.stream = reflect.TypeFor[none](), true
		default:
			t.Fatalf("%s is a %s, which this test does not know", r.method, kind)
		}
		list = append(list, r)
	}
	return list
}

// TestEveryReplyHasRules fails where an agent can send a field for which nobody
// has decided what is good. Decide it in package vet, or in gate.go.
func TestEveryReplyHasRules(t *testing.T) {
	types := map[reflect.Type]string{reflect.TypeFor[failure](): "a failure"}
	for _, r := range repliesOf(t) {
		types[r.of] = r.method
	}
	for of, method := range types {
		if _, err := gate().Weight(of); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if len(types) < 30 {
		t.Errorf("only %d types were found", len(types))
	}
}

// candidates are texts of which every rule allows one.
var candidates = []string{
	"train", "aaaaaaaaaaaa", string(session.Running), string(session.ResultUndefined), "main1", "/home/work/data",
	"sha256:" + strings.Repeat("0a", 32), strings.Repeat("0a", 32),
	"session_create_invalid", "batch", "ok", "admin", "ready", "file", "rw", "general", "pull", "running",
	string(session.ServiceReady), string(session.ReplicaHealthy), string(session.OutcomeSuccess),
	string(session.RuleWithin), string(session.FromMachine), "http://127.0.0.1:1/v1",
	string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")})),
	"ssh-ed25519 AAAA", "hard", "1m", "data/x", string(session.ProjectPlain),
}

// good is the JSON of a good reply of a type, with every field set.
func good(t testing.TB, of reflect.Type) any {
	t.Helper()
	v := reflect.New(of).Elem()
	fill(v, 3)
	raw, err := json.Marshal(v.Interface())
	if err != nil {
		t.Fatal(err)
	}
	tree := parse(t, raw)
	tried := map[string]int{}
	for {
		fault := faultOf(tree, of)
		if fault == nil {
			return tree
		}
		n := tried[fault.Field]
		tried[fault.Field]++
		if n == len(candidates) {
			t.Fatalf("%s: nothing suits %v", of, fault)
		}
		tree = set(tree, fault.Field, candidates[n])
	}
}

func faultOf(tree any, of reflect.Type) *vet.Fault {
	raw, _ := json.Marshal(tree)
	v := reflect.New(of)
	if err := json.Unmarshal(raw, v.Interface()); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return &vet.Fault{Field: wrong.Field, Problem: err.Error()}
		}
		return &vet.Fault{Problem: err.Error()}
	}
	err := gate().Check(v.Interface())
	if p, ok := v.Interface().(*session.Preview); ok && err == nil {
		var fault *vet.Fault
		if errors.As(gate().Check(&p.Spec), &fault) {
			return &vet.Fault{Field: "spec." + fault.Field, Problem: fault.Problem}
		}
	}
	var fault *vet.Fault
	errors.As(err, &fault)
	return fault
}

// fill sets everything in a value.
func fill(v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)))
		return
	case session.Duration:
		v.Set(reflect.ValueOf(session.Duration(time.Minute)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(false)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]session.Phrase]() {
			if depth--; depth <= 0 {
				return
			}
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth)
		fill(value, depth)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i), depth)
			}
		}
	default:
		panic(fmt.Sprintf("%s in a reply", v.Type()))
	}
}

func parse(t testing.TB, raw []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

// set returns a tree with another value at a path such as "a.b[0].c".
func set(tree any, path string, value any) any {
	if path == "" {
		return value
	}
	if strings.HasPrefix(path, "[") {
		end := strings.IndexByte(path, ']')
		if list, ok := tree.([]any); ok {
			at, err := strconv.Atoi(path[1:end])
			if err != nil {
				panic(path)
			}
			list[at] = set(list[at], strings.TrimPrefix(path[end+1:], "."), value)
			return list
		}
		key, err := strconv.Unquote(path[1:end])
		if err != nil {
			panic(path)
		}
		object := tree.(map[string]any)
		object[key] = set(object[key], strings.TrimPrefix(path[end+1:], "."), value)
		return object
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	object := tree.(map[string]any)
	object[path[:end]] = set(object[path[:end]], strings.TrimPrefix(path[end:], "."), value)
	return object
}
