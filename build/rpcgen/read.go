package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"slipway/build/generated"
)

type method struct {
	Face    string // interface that has it
	Name    string
	Params  []*param // after the context
	Result  string   // type of the answer; empty: only an error
	admin   bool     // it belongs to what looks after the agent, which not every agent has
	IsAlone bool     // its only parameter, a struct, is the arguments

	// The words of its directive; see the comment of the command.
	Wire, Class, Effect, Limit, Reply string
	Who, Audit, As                    string
}

// param is one parameter and its field in the arguments.
type param struct {
	Name  string
	Type  string
	Field string // in Go
	Tag   string // in JSON; empty: its own fields stand in its place
}

const (
	whoOwner  = "owner"
	whoBoth   = "owner-admin"
	whoAdmin  = "admin"
	whoAnyone = "anyone"
	whoCustom = "custom"
)

const directive = "//rpc:method "

// readMethods reads the methods of Agent's parts, in order, and of Admin.
func readMethods(dir string) ([]*method, error) {
	r := reader{}
	files, err := generated.Parse(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		for n := range ast.Preorder(file) {
			if typ, ok := n.(*ast.TypeSpec); ok {
				r[typ.Name.Name] = typ.Type
			}
		}
	}
	faces := r.parts("Agent")
	if len(faces) == 0 {
		return nil, errors.New("there is no struct Agent in package session")
	}
	var all []*method
	for _, face := range append(faces, "Admin") {
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
			return nil, fmt.Errorf("%s.%s: %w", m.Face, m.Name, err)
		}
	}
	return all, nil
}

// reader has the types of package session by name.
type reader map[string]ast.Expr

// parts returns the interfaces that a struct embeds, also in a struct that it embeds.
func (r reader) parts(name string) (faces []string) {
	of, ok := r[name].(*ast.StructType)
	if !ok {
		return nil
	}
	for _, part := range of.Fields.List {
		inner, embedded := part.Type.(*ast.Ident)
		switch {
		case !embedded || len(part.Names) > 0:
		case len(r.parts(inner.Name)) > 0:
			faces = append(faces, r.parts(inner.Name)...)
		default:
			faces = append(faces, inner.Name)
		}
	}
	return faces
}

func (r reader) read(name string) ([]*method, error) {
	face, ok := r[name].(*ast.InterfaceType)
	if !ok {
		return nil, fmt.Errorf("there is no interface %s in package session", name)
	}
	var all []*method
	for _, entry := range face.Methods.List {
		if of, embedded := entry.Type.(*ast.Ident); embedded {
			inner, err := r.read(of.Name)
			if err != nil {
				return nil, err
			}
			all = append(all, inner...)
			continue
		}
		m := &method{Face: name, Name: entry.Names[0].Name, Limit: "short"}
		if err := r.method(m, entry); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", name, m.Name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

func (r reader) method(m *method, entry *ast.Field) error {
	of := entry.Type.(*ast.FuncType)
	for _, p := range of.Params.List[1:] {
		typ := qualified(p.Type)
		for _, name := range p.Names {
			m.Params = append(m.Params, &param{Name: name.Name, Type: typ, Tag: name.Name})
		}
	}
	if of.Results.NumFields() == 2 {
		m.Result = qualified(of.Results.List[0].Type)
	}
	values, err := directiveOf(entry.Doc)
	if err != nil {
		return err
	}
	args := ""
	fields := map[string]*string{"name": &m.Wire, "class": &m.Class, "effect": &m.Effect,
		"limit": &m.Limit, "args": &args, "reply": &m.Reply, "who": &m.Who, "audit": &m.Audit, "as": &m.As}
	for _, pair := range values {
		key, value, _ := strings.Cut(pair, "=")
		if fields[key] == nil || value == "" {
			return fmt.Errorf("%q means nothing in a directive", pair)
		}
		*fields[key] = value
	}
	if m.Class == "" {
		m.Class = cmp.Or(classes[m.Kind()], "control")
	}
	sent := m.Sent()
	if len(sent) == 1 && args == "" {
		_, m.IsAlone = r[strings.TrimPrefix(sent[0].Type, "session.")].(*ast.StructType)
	}
	return m.nameArgs(args)
}

// classes are the default classes of streams.
var classes = map[string]string{"duplex": "interactive", "upload": "bulk", "download": "bulk"}

// nameArgs gives the sent parameters their names in JSON.
func (m *method) nameArgs(args string) error {
	sent := m.Sent()
	if args != "" {
		tags := strings.Split(args, ",")
		if len(tags) != len(sent) {
			return fmt.Errorf("args has %d names for %d parameters", len(tags), len(sent))
		}
		for i, tag := range tags {
			sent[i].Tag = tag
		}
	}
	for _, p := range sent {
		name, optional := strings.CutSuffix(p.Tag, "?")
		switch {
		case p.Tag == "+":
			p.Tag, p.Field = "", p.Type[strings.LastIndex(p.Type, ".")+1:]
			continue
		case name == "id":
			p.Field = "ID"
		default:
			p.Field = strings.ToUpper(name[:1]) + name[1:]
		}
		p.Tag = name
		if optional {
			p.Tag += ",omitempty"
		}
	}
	return nil
}

// check fails if the directive is incomplete.
func (m *method) check() error {
	if m.Wire == "" {
		return fmt.Errorf("its directive has no name")
	}
	if m.Who == "" {
		return fmt.Errorf("nobody has decided who may call it; add who=owner, owner-admin, admin, anyone or custom")
	}
	if m.Who == whoAdmin && !m.admin || m.admin && m.Who != whoAdmin && m.Who != whoCustom {
		return fmt.Errorf("who=admin is for the methods of Admin, and they are for nobody else")
	}
	return errors.Join(
		one("class", m.Class, "control", "interactive", "bulk"),
		one("effect", m.Effect, "read", "again", "once"),
		one("limit", m.Limit, "short", "long", "checking", "slow"),
		one("who", m.Who, whoOwner, whoBoth, whoAdmin, whoAnyone, whoCustom),
	)
}

func one(what, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return fmt.Errorf("%s is %q; it is one of %s", what, value, strings.Join(allowed, ", "))
}

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

// qualified writes a type of package session with its package.
func qualified(typ ast.Expr) string {
	names := regexp.MustCompile(`(?:\w+\.)?\b[A-Z]\w*`)
	return names.ReplaceAllStringFunc(types.ExprString(typ), func(name string) string {
		if strings.Contains(name, ".") {
			return name // it has its package
		}
		return "session." + name
	})
}

// hand has the handwritten declarations of a package: methods as "Client.Logs", functions and types by their names.
type hand map[string]bool

func readHand(dir string) (hand, error) {
	files, err := generated.Parse(dir)
	found := hand{}
	for _, file := range files {
		for n := range ast.Preorder(file) {
			switch n := n.(type) {
			case *ast.TypeSpec:
				found[n.Name.Name] = true
			case *ast.FuncDecl:
				name := n.Name.Name
				if n.Recv != nil {
					name = strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*") + "." + name
				}
				found[name] = true
			}
		}
	}
	return found, err
}
