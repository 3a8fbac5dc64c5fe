package main

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// codeShape is that of a code, in which … stands for an operation or a detail
// that only the running program knows.
var codeShape = regexp.MustCompile(`^[a-z]+_([a-z]+|…)_([a-z][a-z-]*|…)$`)

// told is an error as one place of the source tells it.
type told struct{ code, message, hint string }

func (t told) compare(other told) int {
	return cmp.Or(strings.Compare(t.code, other.code), strings.Compare(t.message, other.message),
		strings.Compare(t.hint, other.hint))
}

// rounds is how many functions an error may be handed through on its way from
// the place that names its code to the one that makes it.
const rounds = 5

// findErrors reads every code that stands in an error of the source, in their
// order, with its sentences and hints.
func findErrors(root string) ([]*known, error) {
	src, err := readSource(root)
	if err != nil {
		return nil, err
	}
	for range rounds {
		for _, fn := range src.functions {
			fn.collect()
		}
	}
	codes := map[string]*known{}
	for _, fn := range src.functions {
		for one := range fn.told {
			code := open(one.code)
			if !codeShape.MatchString(code) || strings.HasSuffix(code, "_…_…") {
				continue
			}
			if codes[code] == nil {
				codes[code] = &known{code: code, sentences: map[string][]string{}}
			}
			codes[code].add(open(one.message), open(one.hint))
		}
	}
	page, err := pageErrors(root)
	if err != nil {
		return nil, err
	}
	maps.Copy(codes, page)
	for code, comment := range src.explained() {
		if codes[code] == nil || strings.HasPrefix(code, "scheduler_wait_") { // these are composed of numbers
			codes[code] = &known{code: code, sentences: map[string][]string{"": {comment}}}
		}
	}
	return slices.SortedFunc(maps.Values(codes), func(a, b *known) int { return strings.Compare(a.code, b.code) }), nil
}

// pageErrors are those that the page finds by itself, in its English words.
func pageErrors(root string) (map[string]*known, error) {
	data, err := os.ReadFile(filepath.Join(root, "frontend", "src", "i18n", "en", "common.json"))
	if err != nil {
		return nil, err
	}
	var texts struct {
		Problem struct{ Unanswered, UnansweredHint, Unexplained, UnexplainedHint string }
	}
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, err
	}
	said := texts.Problem
	codes := map[string]*known{}
	for _, one := range []told{
		{"server_connect_unavailable", said.Unanswered, said.UnansweredHint},
		{"server_answer_invalid", strings.ReplaceAll(said.Unexplained, "{{status}}", changing), said.UnexplainedHint},
		{"page_run_internal-error", "", ""},
	} {
		codes[one.code] = &known{code: one.code, sentences: map[string][]string{one.hint: {one.message}}}
	}
	return codes, nil
}

// collect notes what a function tells: the errors that it makes, and those that
// the functions it calls make of what it gives them.
func (fn *function) collect() {
	if fn.told == nil {
		fn.told = map[told]bool{}
	}
	ast.Inspect(fn.body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncLit:
			return fn.closures[node] == nil // those with a name are functions of their own
		case *ast.CompositeLit:
			fn.literal(node)
		case *ast.CallExpr:
			fn.call(node)
		case *ast.BlockStmt:
			fn.changes(node.List)
		case *ast.CaseClause:
			fn.changes(node.Body)
		}
		return true
	})
}

// note adds an error once for each code that it may have. Sentences belong to
// codes in their order where there are as many of both.
func (fn *function) note(codes, messages, hints []string) {
	for i, code := range codes {
		if !strings.ContainsAny(code, "_"+holeStart) {
			continue
		}
		for _, message := range matching(i, len(codes), messages) {
			for _, hint := range matching(i, len(codes), hints) {
				fn.told[told{code, message, hint}] = true
			}
		}
	}
}

func matching(i, of int, values []string) []string {
	switch {
	case len(values) == of:
		return values[i : i+1]
	case len(values) == 0:
		return []string{""}
	}
	return values
}

// literal reads an error as it is written: a literal with a code, a message, a hint.
func (fn *function) literal(literal *ast.CompositeLit) {
	codes, messages, hints := fn.parts(literal)
	fn.note(codes, messages, hints)
}

func (fn *function) parts(literal *ast.CompositeLit) (codes, messages, hints []string) {
	for _, element := range literal.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		name, _ := pair.Key.(*ast.Ident)
		if name == nil {
			continue
		}
		switch part(name.Name) {
		case "code":
			codes = fn.values(pair.Value)
		case "message":
			messages = fn.values(pair.Value)
		case "hint":
			hints = fn.values(pair.Value)
		}
	}
	return codes, messages, hints
}

// part is what a field of an error, a warning or a finding is in this table.
func part(field string) string {
	switch name := strings.ToLower(field); name {
	case "code", "message", "hint":
		return name
	case "text":
		return "message"
	case "remedy":
		return "hint"
	}
	return ""
}

// changes reads what statements side by side make of an error that is there
// already; what they leave is as it was made.
func (fn *function) changes(list []ast.Stmt) {
	made := map[string]map[string][]string{}
	for _, statement := range list {
		assign, ok := statement.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			continue
		}
		for i, left := range assign.Lhs {
			selector, ok := left.(*ast.SelectorExpr)
			if !ok || part(selector.Sel.Name) == "" {
				continue
			}
			if variable, ok := selector.X.(*ast.Ident); ok {
				if made[variable.Name] == nil {
					made[variable.Name] = map[string][]string{}
				}
				made[variable.Name][part(selector.Sel.Name)] = fn.values(assign.Rhs[i])
			}
		}
	}
	for variable, parts := range made {
		var codes, messages, hints []string
		for _, value := range fn.assigned(variable) {
			if address, ok := value.(*ast.UnaryExpr); ok {
				value = address.X
			}
			if literal, ok := value.(*ast.CompositeLit); ok {
				codes, messages, hints = fn.parts(literal)
			}
		}
		change := func(into *[]string, name string) {
			if values, ok := parts[name]; ok {
				*into = values
			}
		}
		change(&codes, "code")
		change(&messages, "message")
		change(&hints, "hint")
		fn.note(codes, messages, hints)
	}
}

// call notes what another function makes of what it is given here.
func (fn *function) call(call *ast.CallExpr) {
	for _, callee := range fn.callees(call) {
		if len(callee.params) != len(call.Args) {
			continue
		}
		given := make([][]string, len(call.Args))
		for i, arg := range call.Args {
			given[i] = fn.values(arg)
		}
		for _, one := range slices.SortedFunc(maps.Keys(callee.told), told.compare) {
			if strings.Contains(one.code+one.message+one.hint, holeStart) {
				fn.note(callee.fill(one.code, given), callee.fill(one.message, given), callee.fill(one.hint, given))
			}
		}
	}
}
