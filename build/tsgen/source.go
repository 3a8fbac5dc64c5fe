package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"slipway/backend/api"
)

// source is what the outputs are made of.
type source struct {
	structs []structType
	enums   []enum
	routes  []api.Route
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

// notOnTheWire are the types that describe the API and do not travel in it.
var notOnTheWire = []string{"Route", "Param", "Bytes"}

// readSource reads the wire types of the module at root. It fails on a type
// that has no counterpart in JSON, naming the field.
func readSource(root string) (*source, error) {
	enums, err := readEnums(root)
	if err != nil {
		return nil, err
	}
	src := &source{enums: enums, routes: api.Routes}
	err = eachFile(filepath.Join(root, "backend/api"), func(file *ast.File) error {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			if err := src.addTypes(gen); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return src, src.checkEnumFields()
}

func (s *source) addTypes(gen *ast.GenDecl) error {
	for _, spec := range gen.Specs {
		typ := spec.(*ast.TypeSpec)
		body, ok := typ.Type.(*ast.StructType)
		if !ok || slices.Contains(notOnTheWire, typ.Name.Name) {
			continue
		}
		doc := typ.Doc
		if doc == nil {
			doc = gen.Doc
		}
		out := structType{name: typ.Name.Name, doc: flat(doc)}
		for _, f := range body.Fields.List {
			member, err := readField(out.name, f)
			if err != nil {
				return err
			}
			out.fields = append(out.fields, member)
		}
		s.structs = append(s.structs, out)
	}
	return nil
}

func readField(owner string, f *ast.Field) (field, error) {
	if len(f.Names) != 1 || f.Tag == nil {
		return field{}, fmt.Errorf("%s has a field without one name and a json tag; give it both", owner)
	}
	where := owner + "." + f.Names[0].Name
	tagText, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return field{}, fmt.Errorf("%s: %w", where, err)
	}
	tag := strings.Split(reflect.StructTag(tagText).Get("json"), ",")
	if tag[0] == "" {
		return field{}, fmt.Errorf("%s has no name in its json tag; give it one", where)
	}
	out := field{name: tag[0], doc: flat(f.Doc)}
	if out.doc == "" {
		out.doc = flat(f.Comment)
	}
	out.optional = slices.Contains(tag, "omitempty") || slices.Contains(tag, "omitzero")
	expr := f.Type
	if star, ok := expr.(*ast.StarExpr); ok {
		expr = star.X
		out.nullable = !out.optional
	}
	if enumName, ok := enumFields[where]; ok {
		out.typ = fieldType{kind: kindEnum, name: enumName}
		return out, nil
	}
	out.typ, err = readType(expr)
	if err != nil {
		return field{}, fmt.Errorf("%s: %w", where, err)
	}
	return out, nil
}

var basicTypes = []string{"string", "bool", "int", "int64", "uint64", "float64"}

func readType(expr ast.Expr) (fieldType, error) {
	switch t := expr.(type) {
	case *ast.Ident:
		if slices.Contains(basicTypes, t.Name) {
			return fieldType{kind: kindBasic, name: t.Name}, nil
		}
		if t.Name == "Bytes" {
			return fieldType{kind: kindBasic, name: "bytes"}, nil
		}
		if ast.IsExported(t.Name) {
			return fieldType{kind: kindStruct, name: t.Name}, nil
		}
	case *ast.SelectorExpr:
		if pkg, ok := t.X.(*ast.Ident); ok && pkg.Name == "time" && t.Sel.Name == "Time" {
			return fieldType{kind: kindBasic, name: "time"}, nil
		}
	case *ast.ArrayType:
		elem, err := readType(t.Elt)
		return fieldType{kind: kindList, elem: &elem}, err
	case *ast.MapType:
		elem, err := readType(t.Value)
		return fieldType{kind: kindMap, elem: &elem}, err
	}
	return fieldType{}, fmt.Errorf("a %T has no counterpart on the wire; use a text, a number, a bool, a time, a "+
		"wire type, or a list or map of them", expr)
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

// flat is the text of a comment in one line.
func flat(comment *ast.CommentGroup) string {
	if comment == nil {
		return ""
	}
	return strings.Join(strings.Fields(comment.Text()), " ")
}
