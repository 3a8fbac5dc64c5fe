package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// pathWriters are the packages that may write paths of the API: the one that
// declares the routes, and the one that writes about them.
var pathWriters = []string{"backend/api/route", "build/docgen"}

func TestPathsOfTheAPIAreDeclaredOnce(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.isTest() || slices.Contains(pathWriters, f.pkg()) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok && strings.Contains(text.Value, "/api/v1") {
				t.Errorf("%s writes a path of the API; use its route of backend/api/route", f.at(text.Pos()))
			}
			return true
		})
	}
}
