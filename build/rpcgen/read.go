package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// method is one line of the table.
type method struct {
	face    string // interface that has it
	name    string
	params  []param // after the context
	result  string  // type of the answer; empty: only an error
	admin   bool    // it belongs to what looks after the agent, which not every agent has
	isAlone bool    // its only parameter, a struct, is the arguments
	words
}

// words are those of the directive of a method; see the comment of the command.
type words struct {
	wire, class, effect, limit, reply string
	who, audit, as                    string
}

// param is one parameter, with the field of the arguments that it becomes.
type param struct {
	name  string
	typ   string
	field string // in Go
	tag   string // in JSON; empty: its own fields stand in its place
}

// Who may call a method.
const (
	whoOwner  = "owner"
	whoAdmin  = "admin"
	whoAnyone = "anyone"
	whoCustom = "custom"
)

const directive = "//rpc:method "

// readMethods reads the methods of the parts of Agent, in their order, and of Admin.
func readMethods(dir string) ([]method, error) {
	r := reader{faces: map[string]*ast.InterfaceType{}, structs: map[string]*ast.StructType{}}
	err := eachFile(dir, func(file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			typ, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			switch of := typ.Type.(type) {
			case *ast.InterfaceType:
				r.faces[typ.Name.Name] = of
			case *ast.StructType:
				r.structs[typ.Name.Name] = of
			}
			return true
		})
	})
	if err != nil {
		return nil, err
	}
	agent := r.structs["Agent"]
	if agent == nil {
		return nil, errors.New("there is no struct Agent in package session")
	}
	faces := []string{"Admin"}
	for _, part := range slices.Backward(agent.Fields.List) {
		if of, embedded := part.Type.(*ast.Ident); embedded && len(part.Names) == 0 {
			faces = slices.Insert(faces, 0, of.Name)
		}
	}
	var all []method
	for _, face := range faces {
		of, err := r.read(face)
		if err != nil {
			return nil, err
		}
		for i := range of {
			of[i].admin = face == "Admin"
		}
		all = append(all, of...)
	}
	for _, m := range all {
		if err := m.check(); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", m.face, m.name, err)
		}
	}
	return all, nil
}

// reader knows the types of package session.
type reader struct {
	faces   map[string]*ast.InterfaceType
	structs map[string]*ast.StructType
}

// read returns the methods of an interface.
func (r *reader) read(name string) ([]method, error) {
	face := r.faces[name]
	if face == nil {
		return nil, fmt.Errorf("there is no interface %s in package session", name)
	}
	var all []method
	for _, entry := range face.Methods.List {
		if of, embedded := entry.Type.(*ast.Ident); embedded {
			inner, err := r.read(of.Name)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		m := method{face: name, name: entry.Names[0].Name, words: words{limit: "short"}}
		if err := r.method(&m, entry); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", name, m.name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func (r *reader) method(m *method, entry *ast.Field) error {
	of := entry.Type.(*ast.FuncType)
	for _, p := range of.Params.List[1:] {
		typ := qualified(p.Type)
		for _, name := range p.Names {
			m.params = append(m.params, param{name: name.Name, typ: typ, tag: name.Name})
		}
	}
	if of.Results.NumFields() == 2 {
		m.result = qualified(of.Results.List[0].Type)
	}
	values, err := directiveOf(entry.Doc)
	if err != nil {
		return err
	}
	args := ""
	fields := map[string]*string{"name": &m.wire, "class": &m.class, "effect": &m.effect,
		"limit": &m.limit, "args": &args, "reply": &m.reply, "who": &m.who, "audit": &m.audit,
		"as": &m.as}
	for _, pair := range values {
		key, value, _ := strings.Cut(pair, "=")
		if fields[key] == nil || value == "" {
			return fmt.Errorf("%q means nothing in a directive", pair)
		}
		*fields[key] = value
	}
	if m.class == "" {
		m.class = cmp.Or(classes[m.kind()], "control")
	}
	sent := m.sent()
	if len(sent) == 1 && args == "" {
		m.isAlone = r.structs[strings.TrimPrefix(sent[0].typ, "session.")] != nil
	}
	return m.nameArgs(args)
}

// classes are those of streams that carry more than a question and its answer.
var classes = map[string]string{"duplex": "interactive", "upload": "bulk", "download": "bulk"}

// nameArgs gives the parameters that are sent their names in JSON.
func (m *method) nameArgs(args string) error {
	sent := m.sent()
	if args != "" {
		tags := strings.Split(args, ",")
		if len(tags) != len(sent) {
			return fmt.Errorf("args has %d names for %d parameters", len(tags), len(sent))
		}
		for i, tag := range tags {
			sent[i].tag = tag
		}
	}
	for _, p := range sent {
		name, optional := strings.CutSuffix(p.tag, "?")
		switch {
		case p.tag == "+":
			p.tag, p.field = "", p.typ[strings.LastIndex(p.typ, ".")+1:]
			continue
		case name == "id":
			p.field = "ID"
		default:
			p.field = strings.ToUpper(name[:1]) + name[1:]
		}
		p.tag = name
		if optional {
			p.tag += ",omitempty"
		}
	}
	return nil
}

// sent are the parameters that cross the wire as arguments.
func (m *method) sent() []*param {
	var sent []*param
	for i := range m.params {
		if p := &m.params[i]; p.typ != "io.Reader" && !strings.HasPrefix(p.typ, "func(") {
			sent = append(sent, p)
		}
	}
	return sent
}

// kind is the shape of a call.
func (m *method) kind() string {
	switch last := m.last().typ; {
	case strings.HasPrefix(last, "func("):
		return "feed"
	case last == "io.Reader":
		return "upload"
	case m.result == "io.ReadCloser":
		return "download"
	case m.result == "io.ReadWriteCloser", m.result == "net.Conn":
		return "duplex"
	}
	return "plain"
}

func (m *method) last() param {
	if len(m.params) == 0 {
		return param{}
	}
	return m.params[len(m.params)-1]
}

// check says what the directive lacks.
func (m *method) check() error {
	if m.wire == "" {
		return fmt.Errorf("its directive has no name")
	}
	if m.who == "" {
		return fmt.Errorf("nobody has decided who may call it; add who=owner, admin, anyone or custom")
	}
	if m.who == whoAdmin && !m.admin || m.admin && m.who != whoAdmin && m.who != whoCustom {
		return fmt.Errorf("who=admin is for the methods of Admin, and they are for nobody else")
	}
	for _, err := range []error{
		one("class", m.class, "control", "interactive", "bulk"),
		one("effect", m.effect, "read", "again", "once"),
		one("limit", m.limit, "short", "long", "checking", "slow"),
		one("who", m.who, whoOwner, whoAdmin, whoAnyone, whoCustom),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// directiveOf are the words of the directive in a comment.
func directiveOf(doc *ast.CommentGroup) ([]string, error) {
	if doc != nil {
		for _, line := range doc.List {
			if rest, is := strings.CutPrefix(line.Text, directive); is {
				return strings.Fields(rest), nil
			}
		}
	}
	return nil, fmt.Errorf("it has no line that begins with %s", directive)
}

// qualified writes a type of package session as other packages do.
func qualified(typ ast.Expr) string {
	text := types.ExprString(typ)
	var names []string
	ast.Inspect(typ, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			return false // it has its package
		case *ast.Ident:
			if n.IsExported() && !slices.Contains(names, n.Name) {
				names = append(names, n.Name)
			}
		}
		return true
	})
	for _, name := range names {
		text = regexp.MustCompile(`\b`+name+`\b`).ReplaceAllString(text, "session."+name)
	}
	return text
}

// hand is what a package has that is not generated: "Client.Logs" for a method,
// "openLogs" for a function, "logsArgs" for a type.
type hand map[string]bool

func readHand(dir string) (hand, error) {
	found := hand{}
	err := eachFile(dir, func(file *ast.File) {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						found[typ.Name.Name] = true
					}
				}
			case *ast.FuncDecl:
				found[receiver(d)+d.Name.Name] = true
			}
		}
	})
	return found, err
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	return types.ExprString(typ) + "."
}

// eachFile parses the files of dir that are neither tests nor generated.
func eachFile(dir string, fn func(*ast.File)) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasSuffix(name, ".gen.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		fn(file)
	}
	return nil
}
