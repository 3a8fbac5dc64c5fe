package main

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// phraseHole is where a phrase says what differs from one time to the next.
var phraseHole = regexp.MustCompile(`\{\{\w+\}\}`)

// values are the texts that an expression may stand for, with … for what
// changes and a hole for what a caller gives.
func (fn *function) values(e ast.Expr) []string { return fn.read(e, 0) }

func (fn *function) read(e ast.Expr, depth int) []string {
	if depth > deepest {
		return []string{changing}
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return []string{text}
		}
	case *ast.ParenExpr:
		return fn.read(e.X, depth)
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return combine(fn.read(e.X, depth+1), fn.read(e.Y, depth+1), join)
		}
	case *ast.Ident:
		return fn.variable(e.Name, depth)
	case *ast.SelectorExpr:
		return fn.selected(e, depth)
	case *ast.CallExpr:
		return fn.result(e, 0, depth)
	case *ast.IndexExpr: // a result of several
		call, isCall := e.X.(*ast.CallExpr)
		index, isNumber := e.Index.(*ast.BasicLit)
		if isCall && isNumber {
			i, _ := strconv.Atoi(index.Value)
			return fn.result(call, i, depth)
		}
	}
	return []string{changing}
}

// assigned is everything that a variable is made of in a function.
func (fn *function) assigned(name string) []ast.Expr {
	for at := fn; at != nil; at = at.outer {
		if values := at.locals[name]; values != nil {
			return values
		}
	}
	return nil
}

func (fn *function) variable(name string, depth int) []string {
	for at := fn; at != nil; at = at.outer {
		if i := slices.Index(at.params, name); i >= 0 {
			return []string{at.hole(i)}
		}
		if values := at.locals[name]; values != nil {
			var all []string
			for _, value := range values {
				all = append(all, at.read(value, depth+1)...)
			}
			return all[:min(len(all), most)]
		}
	}
	if constant, ok := fn.packet.constants[name]; ok {
		return constant.in.read(constant.expr, depth+1)
	}
	return []string{changing}
}

// selected is a constant of another package, or the field of whatever row of a
// table a loop has come to.
func (fn *function) selected(e *ast.SelectorExpr, depth int) []string {
	owner, ok := e.X.(*ast.Ident)
	if !ok {
		return []string{changing}
	}
	if other := fn.packet.source.packages[fn.imports[owner.Name]]; other != nil {
		if constant, ok := other.constants[e.Sel.Name]; ok {
			return constant.in.read(constant.expr, depth+1)
		}
		return []string{changing}
	}
	for _, made := range fn.assigned(owner.Name) {
		name, _ := made.(*ast.Ident)
		if name == nil {
			continue
		}
		if table := fn.packet.tables[name.Name]; table != nil {
			return fn.packet.constants[name.Name].in.column(table, e.Sel.Name, depth+1)
		}
	}
	return []string{changing}
}

// column is one field of each row of a table.
func (fn *function) column(table *ast.CompositeLit, field string, depth int) []string {
	var names []string
	if list, ok := table.Type.(*ast.ArrayType); ok {
		if row, ok := list.Elt.(*ast.StructType); ok {
			for _, f := range row.Fields.List {
				for _, name := range f.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	var all []string
	for _, element := range table.Elts {
		row, ok := element.(*ast.CompositeLit)
		if !ok {
			return []string{changing}
		}
		text := ""
		for i, cell := range row.Elts {
			if pair, ok := cell.(*ast.KeyValueExpr); ok {
				if name, ok := pair.Key.(*ast.Ident); ok && name.Name == field {
					text = fn.read(pair.Value, depth)[0]
				}
			} else if i < len(names) && names[i] == field {
				text = fn.read(cell, depth)[0]
			}
		}
		all = append(all, text)
	}
	return all
}

// callees are the functions that a call may mean. A method is looked for in the
// package of the caller, whatever its receiver.
func (fn *function) callees(call *ast.CallExpr) []*function {
	switch name := call.Fun.(type) {
	case *ast.Ident:
		for at := fn; at != nil; at = at.outer {
			if closure := at.named[name.Name]; closure != nil {
				return []*function{closure}
			}
		}
		return fn.packet.functions[name.Name]
	case *ast.SelectorExpr:
		if owner, ok := name.X.(*ast.Ident); ok && fn.imports[owner.Name] != "" {
			if other := fn.packet.source.packages[fn.imports[owner.Name]]; other != nil {
				return other.functions[name.Sel.Name]
			}
			return nil
		}
		return fn.packet.functions[name.Sel.Name]
	}
	return nil
}

// result is what a call returns in one place: a format's text, what is only
// given another type, or what the function that is called returns.
func (fn *function) result(call *ast.CallExpr, i, depth int) []string {
	name := ""
	var of ast.Expr
	switch called := call.Fun.(type) {
	case *ast.Ident:
		name = called.Name
	case *ast.SelectorExpr:
		name, of = called.Sel.Name, called.X
	}
	switch {
	case name == "Say" && len(call.Args) > 0:
		return fn.phrase(call.Args[0], depth+1)
	case name == "English" && of != nil:
		return fn.read(of, depth+1)
	case name == "Sprintf":
		return fn.format(call.Args, depth+1)
	case name == "Error": // in the words of whatever failed
		return []string{changing}
	case (name == "Code" || name == "string") && len(call.Args) == 1:
		return fn.read(call.Args[0], depth+1)
	}
	var all []string
	for _, callee := range fn.callees(call) {
		if len(callee.params) != len(call.Args) {
			continue
		}
		given := make([][]string, len(call.Args))
		for n, arg := range call.Args {
			given[n] = fn.read(arg, depth+1)
		}
		ast.Inspect(callee.body, func(node ast.Node) bool {
			if _, ok := node.(*ast.FuncLit); ok {
				return false
			}
			if back, ok := node.(*ast.ReturnStmt); ok && len(back.Results) > i && len(all) < most {
				for _, text := range callee.read(back.Results[i], depth+1) {
					all = append(all, callee.fill(text, given)...)
				}
			}
			return true
		})
	}
	if all = slices.DeleteFunc(all, func(text string) bool { return strings.Trim(text, changing+" ") == "" }); len(
		all) == 0 {
		return []string{changing}
	}
	return all[:min(len(all), most)]
}

// phrase is what a phrase of a key says, with … in its holes.
func (fn *function) phrase(key ast.Expr, depth int) []string {
	texts := fn.read(key, depth)
	for i, key := range texts {
		text, known := fn.packet.source.phrases[key]
		if !known {
			text = changing
		}
		texts[i] = phraseHole.ReplaceAllString(text, changing)
	}
	return texts
}

// format is what a format says of its arguments.
func (fn *function) format(args []ast.Expr, depth int) []string {
	const next = "\x03"
	texts := fn.read(args[0], depth)
	for i, text := range texts {
		texts[i] = verbs.ReplaceAllString(text, next)
	}
	for _, arg := range args[1:] {
		values := fn.read(arg, depth)
		if _, isColumn := arg.(*ast.SelectorExpr); len(values) > 1 && !isColumn {
			values = []string{changing} // more would be told than anybody reads
		}
		texts = combine(texts, values, func(text, value string) string { return strings.Replace(text, next, value, 1) })
	}
	for i, text := range texts {
		texts[i] = join(strings.ReplaceAll(text, next, changing), "")
	}
	return texts
}
