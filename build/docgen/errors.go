package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	codeShape = regexp.MustCompile(`^[a-z]+_[a-z]+_[a-z][a-z-]*$`)
	verbs     = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)
)

// findErrors reads every code that stands in an error of the source, in their
// order, with its sentences and hints.
func findErrors(root string) ([]*known, error) {
	codes := map[string]*known{}
	for _, room := range []string{"backend", "gpu", "tunnel", "app"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if literal, ok := node.(*ast.CompositeLit); ok {
					take(codes, literal)
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var found []*known
	for _, k := range codes {
		found = append(found, k)
	}
	slices.SortFunc(found, func(a, b *known) int { return strings.Compare(a.code, b.code) })
	return found, nil
}

// take reads an error as it is written: a literal with a code, a message, a hint.
func take(codes map[string]*known, literal *ast.CompositeLit) {
	var code, message, hint string
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name, _ := pair.Key.(*ast.Ident)
		if name == nil {
			continue
		}
		switch strings.ToLower(name.Name) {
		case "code":
			code = sentence(pair.Value)
		case "message", "text":
			message = sentence(pair.Value)
		case "hint":
			hint = sentence(pair.Value)
		}
	}
	if !codeShape.MatchString(code) {
		return
	}
	if codes[code] == nil {
		codes[code] = &known{code: code}
	}
	codes[code].add(message, hint)
}

// sentence is what an expression says, with … for what changes.
func sentence(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		if err != nil {
			return ""
		}
		return text
	case *ast.BinaryExpr:
		return strings.ReplaceAll(sentence(e.X)+sentence(e.Y), "……", "…")
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			if format, ok := e.Args[0].(*ast.BasicLit); ok {
				return verbs.ReplaceAllString(sentence(format), "…")
			}
		}
	}
	return "…"
}
