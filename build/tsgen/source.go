package main

import (
	"encoding"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"slipway/backend/api"
	"slipway/backend/api/route"
	"slipway/backend/session"
	"slipway/gpu"
)

// source is what the outputs are made of.
type source struct {
	structs []structType
	enums   []enum
	routes  []route.Description

	names           map[reflect.Type]string // of the structs
	enumFieldsFound map[string]bool
	docs            map[string]docs // of packages, by their directories
	root            string
}

// structType is one wire type.
type structType struct {
	name   string
	doc    string
	fields []field
}

// field is one member of a wire type. Optional members may be absent, nullable
// ones may be null.
type field struct {
	name     string
	doc      string
	typ      fieldType
	optional bool
	nullable bool
}

// kind says what a fieldType is.
type kind int

const (
	kindBasic  kind = iota // name is a Go type such as int64, or time or bytes
	kindStruct             // name is a wire type
	kindEnum               // name is an enum
	kindList               // of elem
	kindMap                // from text to elem
)

// fieldType is the type of a member.
type fieldType struct {
	kind kind
	name string
	elem *fieldType
}

// docs are the comments of a package: of types by their names, and of fields by
// those of their types and their own.
type docs map[string]string

// readSource follows the types of the routes' bodies wherever they are declared
// in the module at root. It fails on a type that has no counterpart in JSON,
// naming the field.
func readSource(root string) (*source, error) {
	src := &source{routes: route.All(), names: map[reflect.Type]string{}, enumFieldsFound: map[string]bool{},
		docs: map[string]docs{}, root: root}
	var err error
	if src.enums, err = readEnums(root); err != nil {
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
	slices.SortFunc(src.structs, func(a, b structType) int { return strings.Compare(a.name, b.name) })
	return src, src.checkEnumFields()
}

// add adds a struct and all that its fields are made of.
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
	out := structType{name: name, doc: comments[typ.Name()]}
	if out.fields, err = s.fields(name, typ); err != nil {
		return err
	}
	s.structs = append(s.structs, out)
	return nil
}

// fields are the members of a struct as encoding/json writes them: those of what
// it embeds are its own, unless it has one of that name itself.
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
		member.doc = comments[declared.Name()+"."+f.Name]
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
	out := field{name: tag[0], optional: slices.Contains(tag, "omitempty") || slices.Contains(tag, "omitzero")}
	typ := f.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
		out.nullable = !out.optional
	}
	if enumName, ok := enumFields[where]; ok && typ.Kind() == reflect.String {
		s.enumFieldsFound[where] = true
		out.typ = fieldType{kind: kindEnum, name: enumName}
		return out, nil
	}
	var err error
	if out.typ, err = s.readType(typ); err != nil {
		return field{}, fmt.Errorf("%s: %w", where, err)
	}
	return out, nil
}

var basicKinds = []reflect.Kind{reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64,
	reflect.Float64}

func (s *source) readType(typ reflect.Type) (fieldType, error) {
	switch {
	case typ == reflect.TypeFor[time.Time]():
		return fieldType{kind: kindBasic, name: "time"}, nil
	case typ == reflect.TypeFor[gpu.Bytes]():
		return fieldType{kind: kindBasic, name: "bytes"}, nil
	case typ.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return fieldType{kind: kindBasic, name: "string"}, nil
	case typ.Implements(reflect.TypeFor[json.Marshaler]()):
	case enumOf(typ.String()) != "":
		return fieldType{kind: kindEnum, name: enumOf(typ.String())}, nil
	case slices.Contains(basicKinds, typ.Kind()):
		return fieldType{kind: kindBasic, name: typ.Kind().String()}, nil
	case typ.Kind() == reflect.Slice:
		elem, err := s.readType(typ.Elem())
		return fieldType{kind: kindList, elem: &elem}, err
	case typ.Kind() == reflect.Map:
		elem, err := s.readType(typ.Elem())
		return fieldType{kind: kindMap, elem: &elem}, err
	case typ.Kind() == reflect.Struct && typ.Name() != "":
		err := s.add(typ)
		return fieldType{kind: kindStruct, name: s.names[typ]}, err
	}
	return fieldType{}, fmt.Errorf("%s has no counterpart on the wire; use a text, a number, a bool, a time, a "+
		"wire type, or a list or map of them", typ)
}

// docsOf reads the comments of a type's package.
func (s *source) docsOf(typ reflect.Type) (docs, error) {
	dir := strings.TrimPrefix(typ.PkgPath(), "slipway/")
	if known, ok := s.docs[dir]; ok {
		return known, nil
	}
	out := docs{}
	s.docs[dir] = out
	return out, eachFile(filepath.Join(s.root, dir), func(file *ast.File) error {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
				out.add(gen)
			}
		}
		return nil
	})
}

func (d docs) add(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		typ := spec.(*ast.TypeSpec)
		body, ok := typ.Type.(*ast.StructType)
		if !ok {
			continue
		}
		d[typ.Name.Name] = plain(typ.Doc)
		if typ.Doc == nil {
			d[typ.Name.Name] = plain(gen.Doc)
		}
		for _, f := range body.Fields.List {
			text := plain(f.Doc)
			if text == "" {
				text = plain(f.Comment)
			}
			for _, name := range f.Names {
				d[typ.Name.Name+"."+name.Name] = text
			}
		}
	}
}

// eachFile parses the Go files of dir that are not tests, in the order of their names.
func eachFile(dir string, fn func(*ast.File) error) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		if err := fn(file); err != nil {
			return err
		}
	}
	return nil
}

var docLink = regexp.MustCompile(`\[(\*?\w+(?:\.\w+)*)\]`)

// plain is the text of a comment in one line, for readers who know no Go.
func plain(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	text := strings.Join(strings.Fields(comment.Text()), " ")
	return strings.ReplaceAll(docLink.ReplaceAllString(text, "$1"), "nil:", "absent:")
}
