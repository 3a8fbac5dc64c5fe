package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway/backend/session"
)

// codeShape is that of an error code.
var codeShape = regexp.MustCompile(`^[a-z]+_[a-z]+_[a-z][a-z-]*$`)

// noCodes look like codes and are columns of tables, and names of the kernel's files.
var noCodes = []string{
	"alloc_cpu_hours", "alloc_gpu_hours", "busy_gpu_hours", "vram_gib_hours", "vram_peak_bytes",
	"energy_dynamic_kwh", "energy_idle_kwh", "drm_render_minor", "gpu_busy_percent", "lmem_total_bytes",
	"total_inactive_file", "tcp_congestion_control",
}

// declaring are the files that declare codes. Those of tunnel, which cannot
// import session, are among session's.
var declaring = []string{"backend/session/codes.go", "backend/session/notices.go", "tunnel/codes.go"}

// Programs name a code by its constant, so that the table has every code that
// there is, and no code without a use.
func TestCodesStandInTheTableAlone(t *testing.T) {
	constants := map[string]session.Code{} // by name
	used := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() || strings.HasPrefix(file.path, "build/") {
			continue
		}
		declares := slices.Contains(declaring, file.path)
		ast.Inspect(file.syntax, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.ValueSpec:
				if !declares || len(node.Values) != 1 {
					return true
				}
				literal, ok := node.Values[0].(*ast.BasicLit)
				if !ok {
					return true
				}
				text, _ := strconv.Unquote(literal.Value)
				code := session.Code(text)
				if there, ok := constants[node.Names[0].Name]; ok && there != code || !code.Known() {
					t.Errorf("%s: %s is not the code of that name in the table", file.at(node.Pos()), text)
				}
				constants[node.Names[0].Name] = code
				return false
			case *ast.BasicLit:
				text, err := strconv.Unquote(node.Value)
				if node.Kind == token.STRING && err == nil && codeShape.MatchString(text) &&
					!slices.Contains(noCodes, text) {
					t.Errorf("%s: %q is written out; use its constant of backend/session", file.at(node.Pos()), text)
				}
			case *ast.Ident:
				if file.path != "backend/session/codestable.go" && file.path != "backend/session/notices.go" {
					used[node.Name] = true
				}
			}
			return true
		})
	}
	for name, code := range constants {
		if !used[name] {
			t.Errorf("nothing uses %s, %s", name, code)
		}
	}
	if all := len(session.Errors) + len(session.Notices); all != len(constants) {
		t.Errorf("the tables explain %d codes, and %d are declared", all, len(constants))
	}
}

func TestEveryCodeIsExplainedOnce(t *testing.T) {
	seen := map[session.Code]bool{}
	for i, class := range append(slices.Clip(session.Errors), session.Notices...) {
		isError := i < len(session.Errors)
		if seen[class.Code] || !codeShape.MatchString(string(class.Code)) {
			t.Errorf("%s is there twice, or not domain_operation_detail", class.Code)
		}
		if (class.Status >= 400) != isError || !strings.HasSuffix(class.Cause, ".") ||
			!strings.HasSuffix(class.Remedy, ".") {
			t.Errorf("%+v lacks a status, a cause or a remedy", class)
		}
		seen[class.Code] = true
	}
	if len(session.Errors) > 120 {
		t.Errorf("%d codes of errors are more than anybody tells apart", len(session.Errors))
	}
}
