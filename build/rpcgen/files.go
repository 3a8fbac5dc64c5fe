package main

import (
	"fmt"
	"slices"
	"strings"
)

// placedMethod is a method on the files of a place, without the place.
type placedMethod struct {
	method
	place string // name of the parameter that is left out
}

func placed(methods []method) []placedMethod {
	var found []placedMethod
	for _, m := range methods {
		if len(m.params) > 0 && m.params[0].typ == "session.Place" {
			p := placedMethod{method: m, place: m.params[0].name}
			p.params = slices.Clone(m.params[1:])
			found = append(found, p)
		}
	}
	return found
}

// through writes what a method returns of a call within a function that gives one
// result, which call names, and an error.
func (w *writer) through(m method, begin, call string) {
	if m.result == "" {
		w.f("_, err := %s (struct{}, error) { return done(%s) })\nreturn err\n}\n\n", begin, call)
		return
	}
	w.f("return %s (%s, error) { return %s })\n}\n\n", begin, m.result, call)
}

// writePlaced writes what is asked of the files of one place, and the methods that
// find the place first.
func writePlaced(w *writer, methods []method) error {
	w.f("// Tree is the files of one place; see [session.Files].\ntype Tree interface {\n")
	for _, m := range placed(methods) {
		w.f("%s(%s) %s\n", m.name, m.named(), m.results())
	}
	w.f("}\n\n")
	for _, m := range placed(methods) {
		if w.hand["Files."+m.name] {
			continue
		}
		params := strings.Replace(m.named(), ",", ",\n"+m.place+" session.Place,", 1)
		w.f("func (f *Files) %s(%s) %s {\n", m.name, params, m.results())
		w.through(m.method, fmt.Sprintf("at(ctx, f, %s, func(t Tree)", m.place),
			fmt.Sprintf("t.%s(%s)", m.name, m.given()))
	}
	return nil
}

// writeInFolder writes the methods on the files of a folder, which is opened for
// each call.
func writeInFolder(w *writer, methods []method) error {
	for _, m := range placed(methods) {
		if w.hand["Files."+m.name] {
			continue
		}
		open := "changes"
		if m.effect == "read" {
			open = "inFolder"
		}
		w.f("func (f Files) %s(%s) %s {\n", m.name, m.named(), m.results())
		w.through(m.method, open+"(f, func(t *folder.Tree)", fmt.Sprintf("t.%s(%s)", m.name, m.given()))
	}
	return nil
}

// op is the operation of a guest that a method is, as a constant of package link
// and as it travels.
func (m *placedMethod) op() (constant, wire string) {
	wire = strings.TrimPrefix(m.wire, "file.")
	return "File" + strings.ToUpper(wire[:1]) + wire[1:], wire
}

// isPointer reports whether a field of a guest's call is one.
func isPointer(p *param) bool { return p.typ != "session.FilePath" && p.typ != "bool" }

// writeGuestCalls writes the operations on files of a guest, and the methods of its
// client.
func writeGuestCalls(w *writer, methods []method) error {
	w.f("// The operations on files.\nconst (\n")
	for _, m := range placed(methods) {
		constant, wire := m.op()
		w.f("%s FileOp = %q\n", constant, wire)
	}
	w.f(")\n\n")
	for _, m := range placed(methods) {
		if w.hand["Client."+m.name] {
			continue
		}
		constant, _ := m.op()
		call := "onFiles(FileCall{Op: " + constant
		for _, p := range m.sent() {
			value := p.name
			if isPointer(p) {
				value = "&" + value
			}
			call += ", " + p.field + ": " + value
		}
		call += "})"
		w.f("func (c *Client) %s(%s) %s {\n", m.name, m.named(), m.results())
		if m.result == "" {
			w.f("return c.call(ctx, %s, nil)\n}\n\n", call)
			continue
		}
		w.f("return ask[%s](ctx, c, %s)\n}\n\n", m.result, call)
	}
	return nil
}

// writeGuest writes how a guest answers calls for files that have one answer.
func writeGuest(w *writer, methods []method) error {
	w.f("// plainCall does what a call asks that has one answer.\n" +
		"func plainCall(ctx context.Context, tree files.Tree, call link.FileCall) (any, error) {\nswitch {\n")
	for _, m := range placed(methods) {
		if m.kind() != "plain" {
			continue
		}
		constant, _ := m.op()
		when, given := "call.Op == link."+constant, "ctx"
		for _, p := range m.sent() {
			if isPointer(p) {
				when += " && call." + p.field + " != nil"
				given += ", *call." + p.field
				continue
			}
			given += ", call." + p.field
		}
		w.f("case %s:\n", when)
		if m.result == "" {
			w.f("return nil, tree.%s(%s)\n", m.name, given)
			continue
		}
		w.f("return anything(tree.%s(%s))\n", m.name, given)
	}
	w.f("}\nreturn nil, unknownCall()\n}\n")
	return nil
}
