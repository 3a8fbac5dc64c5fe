package main

import (
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/build/generated"
	"slipway/gpu"
)

type source struct {
	Structs []structType
	Enums   []enum
	Routes  []route.Description

	names           map[reflect.Type]string // of the structs
	enumFieldsFound map[string]bool
	docs            map[string]docs // of packages, by their directories
	root            string
}

type structType struct {
	Name, Doc string
	Fields    []field
}

// field is a member of a wire type. Optional members may be absent, nullable ones may be null.
type field struct {
	Name, Doc          string
	Type               wireType
	Optional, Nullable bool
}

// wireType is a type in TypeScript and in OpenAPI.
type wireType struct {
	TS     string
	schema object
}

func named(name string) wireType { return wireType{name, reference(name)} }

// docs are the comments of a package's types and fields, by "Type" and "Type.Field".
type docs map[string]string

// readSource reads the types of the routes' bodies. It fails on a type without a counterpart in JSON.
func readSource(root string) (*source, error) {
	src := &source{Routes: route.All(), names: map[reflect.Type]string{}, enumFieldsFound: map[string]bool{},
		docs: map[string]docs{}, root: root}
	var err error
	if src.Enums, err = readEnums(root); err != nil {
		return nil, err
	}
	bodies := []any{session.Error{}} // of every failure
	for _, one := range route.All() {
		bodies = append(bodies, one.Request, one.Response)
	}
	for _, body := range bodies {
		if body == nil {
			continue
		}
		typ := reflect.TypeOf(body)
		if typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if err := src.add(typ); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(src.Structs, func(a, b structType) int { return strings.Compare(a.Name, b.Name) })
	for where := range enumFields {
		if !src.enumFieldsFound[where] {
			return nil, fmt.Errorf("enumFields names %s, which is not there or no text; remove it", where)
		}
	}
	return src, nil
}

// add adds a struct and the types of its fields.
func (s *source) add(typ reflect.Type) error {
	if _, known := s.names[typ]; known {
		return nil
	}
	name := api.TypeName(typ)
	for other, taken := range s.names {
		if taken == name {
			return fmt.Errorf("%s and %s are both called %s; add one to typeNames in backend/api", other, typ, name)
		}
	}
	s.names[typ] = name
	comments, err := s.docsOf(typ)
	if err != nil {
		return err
	}
	out := structType{Name: name, Doc: comments[typ.Name()]}
	if out.Fields, err = s.fields(name, typ); err != nil {
		return err
	}
	s.Structs = append(s.Structs, out)
	return nil
}

// fields are the members of a struct as encoding/json writes them, including those of embedded structs.
func (s *source) fields(owner string, typ reflect.Type) ([]field, error) {
	var out []field
	for _, f := range reflect.VisibleFields(typ) {
		if f.Anonymous || !f.IsExported() || f.Tag.Get("json") == "-" {
			continue
		}
		member, err := s.field(owner, f)
		if err != nil {
			return nil, err
		}
		declared := typ
		for _, i := range f.Index[:len(f.Index)-1] {
			declared = declared.Field(i).Type
		}
		comments, err := s.docsOf(declared)
		if err != nil {
			return nil, err
		}
		member.Doc = comments[declared.Name()+"."+f.Name]
		out = append(out, member)
	}
	return out, nil
}

func (s *source) field(owner string, f reflect.StructField) (field, error) {
	where := owner + "." + f.Name
	tag := strings.Split(f.Tag.Get("json"), ",")
	if tag[0] == "" {
		return field{}, fmt.Errorf("%s (%s) has no name in its json tag; give it one", where, f.Type)
	}
	out := field{Name: tag[0], Optional: slices.Contains(tag, "omitempty") || slices.Contains(tag, "omitzero")}
	typ := f.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
		out.Nullable = !out.Optional
	}
	if name, ok := enumFields[where]; ok && typ.Kind() == reflect.String {
		if !slices.ContainsFunc(s.Enums, func(e enum) bool { return e.Name == name }) {
			return field{}, fmt.Errorf("%s is a %s, which is no enum; add it to build/tsgen/enum.go", where, name)
		}
		s.enumFieldsFound[where] = true
		out.Type = named(name)
		return out, nil
	}
	var err error
	if out.Type, err = s.readType(typ); err != nil {
		return field{}, fmt.Errorf("%s: %w", where, err)
	}
	return out, nil
}

var text = wireType{"string", object{"type": "string"}}

var basicKinds = map[reflect.Kind]wireType{
	reflect.String:  text,
	reflect.Bool:    {"boolean", object{"type": "boolean"}},
	reflect.Int:     {"number", object{"type": "integer"}},
	reflect.Int64:   {"number", object{"type": "integer", "format": "int64"}},
	reflect.Uint64:  {"number", object{"type": "integer", "format": "uint64"}},
	reflect.Float64: {"number", object{"type": "number", "format": "double"}},
}

func (s *source) readType(typ reflect.Type) (wireType, error) {
	basic, isBasic := basicKinds[typ.Kind()]
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return wireType{"Time", object{"type": "string", "format": "date-time"}}, nil
	case typ == reflect.TypeFor[gpu.Bytes]():
		return wireType{"Bytes", object{"type": []string{"integer", "string"}, "format": "int64",
			"examples": []any{536870912, "512m"}}}, nil
	case typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return text, nil
	case typ.Implements(reflect.TypeFor[json.Marshaler]()):
	case enumOf(typ.String()) != "":
		return named(enumOf(typ.String())), nil
	case isBasic:
		return basic, nil
	case typ.Kind() == reflect.Slice:
		elem, err := s.readType(typ.Elem())
		return wireType{elem.TS + "[]", object{"type": "array", "items": elem.schema}}, err
	case typ.Kind() == reflect.Map:
		elem, err := s.readType(typ.Elem())
		return wireType{"Record<string, " + elem.TS + ">",
			object{"type": "object", "additionalProperties": elem.schema}}, err
	case typ.Kind() == reflect.Struct && typ.Name() != "":
		err := s.add(typ)
		return named(s.names[typ]), err
	}
	return wireType{}, fmt.Errorf("%s has no counterpart on the wire; use a text, a number, a bool, a time, a "+
		"wire type, or a list or map of them", typ)
}

func (s *source) docsOf(typ reflect.Type) (docs, error) {
	dir := strings.TrimPrefix(typ.PkgPath(), "slipway/")
	if known, ok := s.docs[dir]; ok {
		return known, nil
	}
	out := docs{}
	s.docs[dir] = out
	files, err := generated.Parse(filepath.Join(s.root, dir))
	for _, file := range files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				out.add(gen)
			}
		}
	}
	return out, err
}

func (d docs) add(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		typ := spec.(*ast.TypeSpec)
		body, ok := typ.Type.(*ast.StructType)
		if !ok {
			continue
		}
		d[typ.Name.Name] = cmp.Or(plain(typ.Doc), plain(gen.Doc))
		for _, f := range body.Fields.List {
			for _, name := range f.Names {
				d[typ.Name.Name+"."+name.Name] = cmp.Or(plain(f.Doc), plain(f.Comment))
			}
		}
	}
}

var docLink = regexp.MustCompile(`\[(\*?\w+(?:\.\w+)*)\]`)

// plain is a comment as one line, for readers who do not know Go.
func plain(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	text := strings.Join(strings.Fields(comment.Text()), " ")
	return strings.ReplaceAll(docLink.ReplaceAllString(text, "$1"), "nil:", "absent:")
}
