package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wireOwners are the packages whose types are the wire. A struct of backend/api
// that repeats one of theirs is written twice.
var wireOwners = []string{"backend/session", "backend/hub", "gpu", "backend/settings"}

// repeatedShare is the part of its fields, in percent, from which on a struct
// repeats another one.
const repeatedShare = 70

// repeatedFields is the least number of fields that are compared, and larger is
// how many times as many the other struct may have: a request that names two
// fields of something large does not repeat it.
const (
	repeatedFields = 3
	larger         = 3
)

func TestTheAPIRepeatsNoType(t *testing.T) {
	owned, views := map[string]shape{}, map[string]shape{}
	for _, f := range goFiles(t) {
		switch pkg := f.pkg(); {
		case f.isTest():
		case pkg == "backend/api":
			addStructs(views, "api", f.syntax)
		case slices.Contains(wireOwners, pkg):
			addStructs(owned, pkg[strings.LastIndex(pkg, "/")+1:], f.syntax)
		}
	}
	for name, view := range views {
		other, same := mostAlike(view, owned)
		if len(view.fields) < repeatedFields || same*100 < repeatedShare*len(view.fields) {
			continue
		}
		t.Errorf("%s repeats %s in %d of %d fields; use that one, or embed it", name, other, same, len(view.fields))
	}
}

// shape is what a struct has: the JSON names of its fields by their names, and
// what it embeds, of which it may say some fields in another way.
type shape struct {
	fields map[string]string
	embeds []string
}

// mostAlike is the struct that has most of the fields, and how many.
func mostAlike(view shape, owned map[string]shape) (name string, most int) {
	for other, theirs := range owned {
		same := 0
		for field, tag := range view.fields {
			if theirs.fields[field] == tag && len(theirs.fields) <= larger*len(view.fields) &&
				!slices.Contains(view.embeds, other) {
				same++
			}
		}
		if same > most || same == most && other < name {
			name, most = other, same
		}
	}
	return name, most
}

// addStructs adds the structs of a file by package and name. A field that may be
// left as it is differs from one that has a value.
func addStructs(into map[string]shape, pkg string, file *ast.File) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			typ := spec.(*ast.TypeSpec)
			body, ok := typ.Type.(*ast.StructType)
			if !ok {
				continue
			}
			one := shape{fields: map[string]string{}}
			for _, f := range body.Fields.List {
				if embedded, ok := f.Type.(*ast.SelectorExpr); ok && len(f.Names) == 0 {
					one.embeds = append(one.embeds, embedded.X.(*ast.Ident).Name+"."+embedded.Sel.Name)
				}
				for _, name := range f.Names {
					if tag := jsonName(f); tag != "" {
						one.fields[name.Name] = tag
					}
				}
			}
			into[fmt.Sprintf("%s.%s", pkg, typ.Name.Name)] = one
		}
	}
}

// jsonName is the name of a field on the wire, "" where it has none.
func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(text).Get("json"), ",")
	if _, pointer := f.Type.(*ast.StarExpr); pointer && name != "" {
		name = "*" + name
	}
	return name
}

func TestARepeatedTypeIsFound(t *testing.T) {
	owned := map[string]shape{"session.Pull": {fields: map[string]string{"Current": "current", "Total": "total",
		"Rate": "rate"}}}
	for _, c := range []struct {
		view shape
		same int
	}{
		{shape{fields: map[string]string{"Current": "current", "Rate": "rate"}}, 2},
		{shape{fields: map[string]string{"Current": "now", "Total": "total"}}, 1},
		{shape{fields: map[string]string{"Done": "done"}}, 0},
		{shape{fields: map[string]string{"Rate": "rate"}, embeds: []string{"session.Pull"}}, 0},
	} {
		if _, same := mostAlike(c.view, owned); same != c.same {
			t.Errorf("%v has %d fields of another, want %d", c.view, same, c.same)
		}
	}
}
