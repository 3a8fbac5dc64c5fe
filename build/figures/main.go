// Command figures counts what shows whether the module stays simple, such as its lines, its largest struct and its
// error codes. build/figures/figures.txt has each figure and its goal. Run it in the module with
//
//	go run ./build/figures           fail when a figure is worse than in the file and than its goal
//	go run ./build/figures -update   record figures that became better
//
// To record a figure that has to become worse, edit the file by hand and say why in the commit.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

type figure struct {
	name string
	now  int
	goal int    // what it must become at most
	what string // where the count is found
}

const record = "build/figures/figures.txt"

func main() {
	update := flag.Bool("update", false, "write down figures that became better")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	tree, err := read(root)
	if err != nil {
		return err
	}
	old, err := load(filepath.Join(root, record))
	if err != nil {
		return err
	}
	counted := tree.figures()
	var worse []error
	for _, f := range counted {
		if limit := max(old[f.name], f.goal); f.now > limit {
			worse = append(worse, fmt.Errorf("%s: %d, at most %d: %s", f.name, f.now, limit, f.what))
		}
	}
	if err := errors.Join(worse...); err != nil {
		return fmt.Errorf("worse than %s says:\n%w", record, err)
	}
	text := table(counted)
	fmt.Print(text)
	if !update {
		return nil
	}
	return os.WriteFile(filepath.Join(root, record), []byte(text), 0o644)
}

func table(figures []figure) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", f.name, f.now, f.goal, f.what)
	}
	w.Flush() //nolint:errcheck // it writes into a buffer
	return b.String()
}

// load reads the file; without a file there are no figures.
func load(path string) (map[string]int, error) {
	known := map[string]int{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return known, nil
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, "  ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s: cannot read %q", path, line)
		}
		now, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		known[name] = now
	}
	return known, err
}

type source struct {
	path   string
	text   string
	syntax *ast.File // of Go, not generated
}

func (s source) isGo() bool        { return strings.HasSuffix(s.path, ".go") }
func (s source) isTest() bool      { return strings.HasSuffix(s.path, "_test.go") }
func (s source) isGenerated() bool { return strings.HasPrefix(s.text, "// Code generated") }
func (s source) dir() string       { return filepath.Dir(s.path) }
func (s source) lines() int        { return strings.Count(s.text, "\n") }

type sources struct {
	files []source
	set   *token.FileSet
}

// read reads every Go and TypeScript file that git knows or would add.
func read(root string) (*sources, error) {
	git := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	t := &sources{set: token.NewFileSet()}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if ext := filepath.Ext(path); ext != ".go" && ext != ".ts" && ext != ".tsx" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		if err != nil {
			return nil, err
		}
		s := source{path: path, text: string(text)}
		if s.isGo() && !s.isGenerated() {
			if s.syntax, err = parser.ParseFile(t.set, path, text, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
		}
		t.files = append(t.files, s)
	}
	return t, nil
}

// count is the largest of something, and where it is.
type count struct {
	n  int
	at string
}

func (c *count) see(n int, at string) {
	if n > c.n {
		*c = count{n, at}
	}
}

// figures counts everything, in the order of the table.
func (t *sources) figures() []figure {
	methods, fields := t.structs()
	wide := t.interfaces()
	rootLines, rootFiles := 0, 0
	plain, generated := 0, 0
	for _, f := range t.files {
		if !f.isGo() || f.isTest() {
			continue
		}
		if f.isGenerated() {
			generated += f.lines()
			continue
		}
		plain += f.lines()
		if f.dir() == "backend" {
			rootLines += f.lines()
			rootFiles++
		}
	}
	wideGo, wideTS := t.wideLines()
	errorCodes, otherCodes := t.codes()
	return []figure{
		{"methods of a struct", methods.n, 40, methods.at},
		{"fields of a struct", fields.n, 15, fields.at},
		{"methods of an interface", wide.n, 7, wide.at},
		{"files that name SetTags", t.naming("SetTags"), 4, "neither tests nor generated"},
		{"files that name StatFile", t.naming("StatFile"), 5, "with hub/copies.go, which calls it"},
		{"lines of the root", rootLines, 400, "backend/*.go"},
		{"files of the root", rootFiles, 4, "backend/*.go"},
		{"lines of Go", plain, 152_500, "neither tests nor generated"},
		{"lines of generated Go", generated, 10_000, ""},
		{"wide lines of Go", wideGo, 0, "more than 120 columns, a tab is 4"},
		{"wide lines of TypeScript", wideTS, 0, "more than 120 columns"},
		{"error codes", errorCodes, 120, codesFile},
		{"codes of waits, ends and warnings", otherCodes, 50, codesFile},
	}
}

// codesFile declares the codes: those of errors in its first block, all others in its second.
const codesFile = "backend/session/codes.go"

func (t *sources) codes() (ofErrors, others int) {
	var blocks [2]int
	for _, f := range t.files {
		if f.path != codesFile {
			continue
		}
		at := 0
		for _, decl := range f.syntax.Decls {
			if block, ok := decl.(*ast.GenDecl); ok && block.Tok == token.CONST {
				blocks[at] = len(block.Specs)
				at++
			}
		}
	}
	return blocks[0], blocks[1]
}

// structs finds the structs with the most methods and the most fields.
func (t *sources) structs() (methods, fields count) {
	of := map[string]int{}
	for _, f := range t.files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				receiver, _, _ := strings.Cut(types.ExprString(fn.Recv.List[0].Type), "[") // its type parameters
				name := f.dir() + "." + strings.TrimPrefix(receiver, "*")
				of[name]++
				methods.see(of[name], name)
			}
		}
		eachType(f.syntax, func(name string, expr ast.Expr) {
			if s, ok := expr.(*ast.StructType); ok {
				fields.see(s.Fields.NumFields(), f.dir()+"."+name)
			}
		})
	}
	return methods, fields
}

// interfaces finds the declared interface with the most methods, including interfaces of its package that it embeds.
// The parameters of session.AgentOf and engine.Of, which list a whole agent or engine, are not declared interfaces.
func (t *sources) interfaces() count {
	faces := map[string]*ast.InterfaceType{}
	for _, f := range t.files {
		if f.syntax == nil || f.isTest() {
			continue
		}
		eachType(f.syntax, func(name string, expr ast.Expr) {
			if i, ok := expr.(*ast.InterfaceType); ok {
				faces[f.dir()+"."+name] = i
			}
		})
	}
	var most count
	for name := range faces {
		most.see(methodsOf(faces, name), name)
	}
	return most
}

func methodsOf(faces map[string]*ast.InterfaceType, name string) int {
	n := 0
	dir := name[:strings.LastIndex(name, ".")+1]
	for _, m := range faces[name].Methods.List {
		switch e := m.Type.(type) {
		case *ast.FuncType:
			n++
		case *ast.Ident:
			if faces[dir+e.Name] != nil {
				n += methodsOf(faces, dir+e.Name)
			}
		}
	}
	return n
}

func eachType(file *ast.File, see func(name string, expr ast.Expr)) {
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			if named, ok := spec.(*ast.TypeSpec); ok {
				see(named.Name.Name, named.Type)
			}
		}
	}
}

func (t *sources) naming(name string) int {
	rule := regexp.MustCompile(`\b` + name + `\b`)
	return len(slices.DeleteFunc(slices.Clone(t.files), func(f source) bool {
		return f.syntax == nil || f.isTest() || f.dir() == "build/figures" || !rule.MatchString(f.text)
	}))
}

const widest = 120

func (t *sources) wideLines() (inGo, inTS int) {
	for _, f := range t.files {
		if f.isGenerated() || strings.Contains(f.path, ".gen.") {
			continue
		}
		n := 0
		for line := range strings.Lines(f.text) {
			line = strings.TrimRight(line, "\n")
			tabs := len(line) - len(strings.TrimLeft(line, "\t"))
			if utf8.RuneCountInString(line)+3*tabs > widest {
				n++
			}
		}
		if f.isGo() {
			inGo += n
		} else {
			inTS += n
		}
	}
	return inGo, inTS
}
