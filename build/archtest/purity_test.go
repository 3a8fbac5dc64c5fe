package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestPurePackagesReadNoClockAndStartNothing(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(pure, f.pkg()) {
			continue
		}
		for _, problem := range impurities(f) {
			t.Error(problem)
		}
	}
}

func TestImpureSourceIsFound(t *testing.T) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "x.go", `package x
import ("net"; "os"; "time")
var _ net.Conn
func f() { go f(); _ = time.Now(); net.Dial("", ""); os.Exit(1) }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := impurities(sourceFile{path: "x.go", syntax: syntax, set: set})
	if len(found) != 4 {
		t.Errorf("found %d impurities, want 4 (os, go, time.Now, net.Dial):\n%s", len(found), strings.Join(found, "\n"))
	}
}

func TestWhatGoesByAMachinesClockReadsNoOther(t *testing.T) {
	stale := maps.Clone(wall)
	for _, f := range goFiles(t) {
		if f.isTest() || !slices.Contains(paced, f.pkg()) {
			continue
		}
		allowOnly(t, f.path, clockReadings(f), wall, stale)
	}
	for path := range stale {
		t.Errorf("%s does not read the clock on the wall: take it out of the table", path)
	}
}

// allowOnly fails for what was found in a file that the table does not name, and
// takes one that it does name out of those that are stale.
func allowOnly(t *testing.T, path string, found []string, table, stale map[string]string) {
	t.Helper()
	if len(found) == 0 {
		return
	}
	if table[path] == "" {
		t.Error(strings.Join(found, "\n"))
	}
	delete(stale, path)
}

func TestAReadingOfTheClockIsFound(t *testing.T) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "x.go", `package x
import "time"
func f() time.Time { <-time.After(time.Second); time.NewTimer(1); return time.Now().Add(time.Minute) }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if found := clockReadings(sourceFile{path: "x.go", syntax: syntax, set: set}); len(found) != 3 {
		t.Errorf("found %q", found)
	}
}

// clockReadings are where a file reads the clock on the wall or waits by it.
func clockReadings(f sourceFile) []string {
	var found []string
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		e, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := e.X.(*ast.Ident); ok && pkg.Obj == nil && slices.Contains(clockCalls[pkg.Name], e.Sel.Name) {
			found = append(found, fmt.Sprintf("%s uses %s.%s where a machine has a clock of its own; use pace",
				f.at(e.Pos()), pkg.Name, e.Sel.Name))
		}
		return true
	})
	return found
}

// clockCalls are the functions, by their package, that know what time it is on the wall.
var clockCalls = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
	"pace": {"Wall"},
}

func impurities(f sourceFile) []string {
	var problems []string
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && slices.Contains(pureNot, path) {
			problems = append(problems, fmt.Sprintf(
				"%s imports %s in a pure package; take what it gives as an argument", f.at(spec.Pos()), path))
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.GoStmt:
			problems = append(problems, fmt.Sprintf("%s starts a goroutine in a pure package; let the caller do it",
				f.at(e.Pos())))
		case *ast.SelectorExpr:
			pkg, ok := e.X.(*ast.Ident)
			if !ok || pkg.Obj != nil {
				return true
			}
			if slices.Contains(pureCalls[pkg.Name], e.Sel.Name) {
				problems = append(problems, fmt.Sprintf(
					"%s uses %s.%s in a pure package; take the time or the randomness as an argument", f.at(e.Pos()),
					pkg.Name, e.Sel.Name))
			}
			if names, ok := pureNames[pkg.Name]; ok && !slices.Contains(names, e.Sel.Name) {
				problems = append(problems, fmt.Sprintf("%s uses %s.%s in a pure package, which may name only %v of it",
					f.at(e.Pos()), pkg.Name, e.Sel.Name, names))
			}
		}
		return true
	})
	return problems
}
