package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// sourceFile is one parsed Go file of the module.
type sourceFile struct {
	path   string // inside the module
	lines  int
	syntax *ast.File
	set    *token.FileSet
}

func (f sourceFile) pkg() string {
	dir := filepath.ToSlash(filepath.Dir(f.path))
	if dir == "." {
		return ""
	}
	return dir
}

func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f sourceFile) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(pos).Line)
}

// goFiles returns every Go file that the working tree holds, whatever its build
// tags, but for generated ones.
func goFiles(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// parseTree parses them once for all tests.
var parseTree = sync.OnceValues(func() ([]sourceFile, error) {
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	paths, err := listTree(root)
	if err != nil {
		return nil, err
	}
	var out []sourceFile
	for _, path := range paths {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, filepath.Join(root, path), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if ast.IsGenerated(syntax) {
			continue
		}
		out = append(out, sourceFile{path: path, lines: set.File(syntax.FileStart).LineCount(), syntax: syntax,
			set: set})
	}
	if len(out) == 0 {
		return nil, errors.New("no Go file was found; run this test in a checkout of the module")
	}
	return out, nil
})

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		longestFile, longestFunction := maxFile, maxFunction
		if f.isTest() {
			longestFile, longestFunction = maxTestFile, maxFunctionInTest
		}
		if f.lines > longestFile {
			t.Errorf("%s has %d lines, more than %d; give each of its ideas a file", f.path, f.lines, longestFile)
		}
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
			if lines > longestFunction {
				t.Errorf("%s: %s has %d lines, more than %d; name its parts", f.at(fn.Pos()), fn.Name.Name, lines,
					longestFunction)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	commented, seen := map[string][]string{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.isTest() {
			continue
		}
		seen[f.pkg()] = true
		if f.syntax.Doc != nil && strings.TrimSpace(f.syntax.Doc.Text()) != "" {
			commented[f.pkg()] = append(commented[f.pkg()], f.path)
		}
	}
	for pkg := range seen {
		switch n := len(commented[pkg]); {
		case n == 0:
			t.Errorf("package %q has no package comment; say in a paragraph what it provides", pkg)
		case n > 1:
			t.Errorf("package %q has a package comment in %v; keep one and put a blank line after the others", pkg,
				commented[pkg])
		}
	}
}

func TestNothingRunsAtImport(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s declares init; do it where the program is put together", f.at(fn.Pos()))
			}
		}
	}
}

func TestPackageVariablesAreConstantTables(t *testing.T) {
	files := goFiles(t)
	variables := map[string]map[string]bool{} // by package, then name
	for _, f := range files {
		if f.isTest() {
			continue
		}
		for _, decl := range f.syntax.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, problem := range checkVariables(f, gen) {
				t.Error(problem)
			}
			if variables[f.pkg()] == nil {
				variables[f.pkg()] = map[string]bool{}
			}
			for _, spec := range gen.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if name.Name == "_" {
						continue
					}
					variables[f.pkg()][name.Name] = true
				}
			}
		}
	}
	for _, f := range files {
		if f.isTest() {
			continue
		}
		for _, problem := range assignments(f, variables[f.pkg()]) {
			t.Error(problem)
		}
	}
}

// checkVariables finds the variables of a declaration that hold state: those
// without a value, and those whose value is no table, error or compiled pattern.
func checkVariables(f sourceFile, gen *ast.GenDecl) []string {
	if f.syntax.Name.Name == "main" || slices.Contains(linked, f.pkg()) {
		return nil
	}
	var problems []string
	for _, spec := range gen.Specs {
		value := spec.(*ast.ValueSpec)
		if embedded(gen.Doc) || embedded(value.Doc) || value.Names[0].Name == "_" {
			continue
		}
		if len(value.Values) == 0 {
			problems = append(problems, fmt.Sprintf("%s: %s is state of the process; make it a field of a type",
				f.at(value.Pos()), value.Names[0].Name))
		}
		for i, expr := range value.Values {
			if !isTable(expr) {
				problems = append(problems, fmt.Sprintf(
					"%s: %s can change and is shared by the whole process; make it a constant, a function or a field",
					f.at(value.Pos()), value.Names[i].Name))
			}
		}
	}
	return problems
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List,
		func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// isTable reports whether a value is made once and only read: a literal of a
// composite type, a function, an error, or the result of a constructor that is
// known to give a constant.
func isTable(expr ast.Expr) bool {
	switch e := expr.(type) {
	case *ast.CompositeLit:
		typ, isSelector := e.Type.(*ast.SelectorExpr)
		if !isSelector {
			return true
		}
		pkg, ok := typ.X.(*ast.Ident)
		return !ok || (pkg.Name != "sync" && pkg.Name != "atomic")
	case *ast.FuncLit:
		return true
	case *ast.UnaryExpr:
		_, literal := e.X.(*ast.CompositeLit)
		return literal
	case *ast.CallExpr:
		return isConstantCall(e)
	case *ast.BinaryExpr:
		return true // of constants, or it would not be known at import
	case *ast.SelectorExpr:
		return true // another name of what a package exports, such as an error
	}
	return false
}

var constantCalls = []string{
	"errors.New", "fmt.Errorf", "regexp.MustCompile", "strings.NewReplacer", "template.Must",
	"strings.Repeat", "bytes.Repeat", "slices.Concat", "netip.MustParsePrefix", "strings.Fields", "big.NewInt",
	"sync.OnceValue", "reflect.TypeOf", "reflect.TypeFor", "base32.NewEncoding",
	"sync.OnceValue", // a constant that is computed when it is first used
}

// ownCalls make the rules of package vet, and the routes of package route.
var ownCalls = []string{"Text", "Line", "Prose", "Whole", "Number", "Each", "List", "at"}

func isConstantCall(call *ast.CallExpr) bool {
	called := call.Fun
	switch generic := called.(type) {
	case *ast.IndexExpr:
		called = generic.X
	case *ast.IndexListExpr:
		called = generic.X
	}
	switch fn := called.(type) {
	case *ast.SelectorExpr:
		pkg, ok := fn.X.(*ast.Ident)
		if !ok { // a method of such a value, as base32's WithPadding
			inner, isCall := fn.X.(*ast.CallExpr)
			return isCall && isConstantCall(inner)
		}
		return slices.Contains(constantCalls, pkg.Name+"."+fn.Sel.Name)
	case *ast.Ident: // one of the same package
		return slices.Contains(ownCalls, fn.Name)
	case *ast.ArrayType: // a conversion such as []byte("…")
		return true
	}
	return false
}

// assignments finds where a file changes one of its package's variables.
func assignments(f sourceFile, variables map[string]bool) []string {
	var problems []string
	report := func(target ast.Expr) {
		name := baseIdent(target)
		if name == nil || !variables[name.Name] || declaredInside(f, name) {
			return
		}
		problems = append(problems, fmt.Sprintf("%s changes the package variable %s; make it a field of what owns it",
			f.at(target.Pos()), name.Name))
	}
	for _, decl := range f.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					for _, target := range s.Lhs {
						report(target)
					}
				}
			case *ast.IncDecStmt:
				report(s.X)
			case *ast.CallExpr:
				if fn, ok := s.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") && len(s.Args) > 0 {
					report(s.Args[0])
				}
			}
			return true
		})
	}
	return problems
}

// baseIdent is x in x, x[i], x.f and combinations of them.
func baseIdent(expr ast.Expr) *ast.Ident {
	for {
		switch e := expr.(type) {
		case *ast.Ident:
			return e
		case *ast.IndexExpr:
			expr = e.X
		case *ast.SelectorExpr:
			expr = e.X
		case *ast.ParenExpr:
			expr = e.X
		default:
			return nil
		}
	}
}

// declaredInside reports whether name stands for something declared in a
// function: the parser has then resolved it to a declaration that is not one of
// the file's own.
func declaredInside(f sourceFile, name *ast.Ident) bool {
	if name.Obj == nil {
		return false
	}
	return f.syntax.Scope.Lookup(name.Name) != name.Obj
}
