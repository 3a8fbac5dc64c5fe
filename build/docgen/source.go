package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// source is what the program is made of, without its tests and what they share.
type source struct {
	packages  map[string]*packet // by import path
	functions []*function
	phrases   map[string]string // the English words of what is said by phrases
}

// packet is one package of it.
type packet struct {
	source    *source
	constants map[string]value
	comments  map[string]string // beside constants
	tables    map[string]*ast.CompositeLit
	functions map[string][]*function // methods, too
}

// value is an expression where it stands.
type value struct {
	in   *function
	expr ast.Expr
}

// function is a function, a closure with a name, or the declarations of a file.
type function struct {
	id       int
	packet   *packet
	imports  map[string]string // path by name
	outer    *function         // of a closure
	params   []string
	body     ast.Node
	locals   map[string][]ast.Expr
	named    map[string]*function
	closures map[*ast.FuncLit]*function
	told     map[told]bool
}

// rooms are the folders that the program is made of.
var rooms = []string{"backend", "gpu", "tunnel", "app"}

func readSource(root string) (*source, error) {
	src := &source{packages: map[string]*packet{}}
	words, err := os.ReadFile(filepath.Join(root, "backend", "session", "phrases.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(words, &src.phrases); err != nil {
		return nil, err
	}
	for _, room := range rooms {
		err := filepath.WalkDir(filepath.Join(root, room), func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (strings.HasSuffix(file, "test") || entry.Name() == "testdata"):
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil,
				parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return err
			}
			at, err := filepath.Rel(root, filepath.Dir(file))
			if err != nil {
				return err
			}
			src.add("slipway/"+filepath.ToSlash(at), tree)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return src, nil
}

func (src *source) add(at string, tree *ast.File) {
	p := src.packages[at]
	if p == nil {
		p = &packet{source: src, constants: map[string]value{}, comments: map[string]string{},
			tables: map[string]*ast.CompositeLit{}, functions: map[string][]*function{}}
		src.packages[at] = p
	}
	imports := map[string]string{}
	for _, spec := range tree.Imports {
		whole, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(whole)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = whole
	}
	for _, decl := range tree.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Body != nil {
				fn := p.function(imports, nil, decl.Type, decl.Body)
				p.functions[decl.Name.Name] = append(p.functions[decl.Name.Name], fn)
			}
		case *ast.GenDecl:
			p.declare(p.function(imports, nil, nil, decl), decl)
		}
	}
}

// function makes a function known, with the closures in it that have a name.
func (p *packet) function(imports map[string]string, outer *function, signature *ast.FuncType,
	body ast.Node) *function {
	fn := &function{id: len(p.source.functions), packet: p, imports: imports, outer: outer, body: body,
		locals: map[string][]ast.Expr{}, named: map[string]*function{}, closures: map[*ast.FuncLit]*function{}}
	p.source.functions = append(p.source.functions, fn)
	if signature != nil {
		for _, field := range signature.Params.List {
			for _, name := range field.Names {
				fn.params = append(fn.params, name.Name)
			}
		}
	}
	ast.Inspect(body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return fn.closures[node] == nil
		case *ast.AssignStmt:
			fn.assign(node)
		case *ast.RangeStmt:
			if name, ok := node.Value.(*ast.Ident); ok {
				fn.locals[name.Name] = append(fn.locals[name.Name], node.X)
			}
		}
		return true
	})
	return fn
}

func (fn *function) assign(assign *ast.AssignStmt) {
	for i, left := range assign.Lhs {
		name, ok := left.(*ast.Ident)
		switch {
		case !ok || name.Name == "_":
		case len(assign.Lhs) == len(assign.Rhs):
			if closure, ok := assign.Rhs[i].(*ast.FuncLit); ok {
				inner := fn.packet.function(fn.imports, fn, closure.Type, closure.Body)
				fn.named[name.Name], fn.closures[closure] = inner, inner
				continue
			}
			fn.locals[name.Name] = append(fn.locals[name.Name], assign.Rhs[i])
		case len(assign.Rhs) == 1:
			fn.locals[name.Name] = append(fn.locals[name.Name],
				&ast.IndexExpr{X: assign.Rhs[0], Index: &ast.BasicLit{Kind: token.INT, Value: strconv.Itoa(i)}})
		}
	}
}

func (p *packet) declare(in *function, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		values, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, name := range values.Names {
			if i >= len(values.Values) {
				continue
			}
			p.constants[name.Name] = value{in, values.Values[i]}
			if said := cmp.Or(values.Comment, values.Doc); said != nil {
				p.comments[name.Name] = strings.TrimSpace(said.Text())
			}
			if table, ok := values.Values[i].(*ast.CompositeLit); ok {
				p.tables[name.Name] = table
			}
		}
	}
}

// explained are the codes beside which a comment says what they mean.
func (src *source) explained() map[string]string {
	all := map[string]string{}
	for _, p := range src.packages {
		for name, comment := range p.comments {
			constant := p.constants[name]
			if code := constant.in.values(constant.expr); codeShape.MatchString(code[0]) {
				all[code[0]] = strings.ToUpper(comment[:1]) + comment[1:] + "."
			}
		}
	}
	return all
}

const (
	changing = "…"
	// A hole is what a parameter of a function puts into a text of it.
	holeStart, holeEnd = "\x01", "\x02"
	// deepest and most bound what is made of one expression.
	deepest, most = 8, 40
)

var (
	holes = regexp.MustCompile(holeStart + `[0-9]+\.[0-9]+` + holeEnd)
	verbs = regexp.MustCompile(`%[-+# 0]*[0-9]*(\.[0-9]+)?[a-zA-Z]`)
)

// open is a text of which nobody says more.
func open(text string) string { return join(holes.ReplaceAllString(text, changing), "") }

func join(a, b string) string {
	for text := a + b; ; {
		shorter := strings.ReplaceAll(text, changing+changing, changing)
		if shorter == text {
			return text
		}
		text = shorter
	}
}

func (fn *function) hole(i int) string { return fmt.Sprint(holeStart, fn.id, ".", i, holeEnd) }

// fill puts what is given into the holes of a text.
func (fn *function) fill(text string, given [][]string) []string {
	texts := []string{text}
	for i, values := range given {
		hole := fn.hole(i)
		if !strings.Contains(text, hole) {
			continue
		}
		texts = combine(texts, values, func(text, value string) string { return strings.ReplaceAll(text, hole, value) })
	}
	return texts
}

// combine pairs two lists of the same length in their order, and others each with each.
func combine(a, b []string, pair func(a, b string) string) []string {
	var all []string
	for i := range a {
		for _, other := range matching(i, len(a), b) {
			if len(all) < most {
				all = append(all, pair(a[i], other))
			}
		}
	}
	return all
}
