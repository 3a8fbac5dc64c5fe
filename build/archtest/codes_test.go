package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"slipway/backend/session"
)

// codeShape is that of an error code.
var codeShape = regexp.MustCompile(`^[a-z]+_[a-z]+_[a-z][a-z-]*$`)

// noCodes look like codes and are columns of tables, names of the kernel's files, and codes of others.
var noCodes = []string{
	"alloc_cpu_hours", "alloc_gpu_hours", "busy_gpu_hours", "vram_gib_hours", "vram_peak_bytes",
	"energy_dynamic_kwh", "energy_idle_kwh", "drm_render_minor", "gpu_busy_percent", "lmem_total_bytes",
	"total_inactive_file", "tcp_congestion_control", "not_found_error", "not_supported_error",
	"prompt_tokens_total", "tokens_predicted_total",
	"pre_start_actions", "max_wait_time", "expected_status_code", // fields of a model-definition.yaml
	"invalid_request_error", "invalid_api_key", "model_not_found", "rate_limit_exceeded", // OpenAI's, not Slipway's
}

// declaring are the files that declare codes. Those of tunnel, which cannot
// import session, are among session's.
var declaring = []string{"backend/session/codes.go", "tunnel/codes.go"}

// explained are the rows of the page of codes: the code, the HTTP status of an
// error, cause or meaning, and remedy.
var explained = regexp.MustCompile("(?m)^\\| `([^`]+)` (?:\\| (\\d+) )?\\| ([^|]+) \\| ([^|]+) \\|$")

// Programs name a code by its constant, so that the page explains every code that
// there is, with its status, and no code is without a use.
func TestEveryCodeIsExplainedAndUsed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(moduleRoot(t), "build/docs/errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[session.Code]bool{}
	ofErrors := 0
	for _, row := range explained.FindAllStringSubmatch(string(page), -1) {
		code, status := session.Code(row[1]), row[2]
		if rows[code] || !codeShape.MatchString(row[1]) {
			t.Errorf("%s is there twice, or not domain_operation_detail", code)
		}
		if rows[code] = true; status != "" {
			ofErrors++
			if status != strconv.Itoa(code.Status()) {
				t.Errorf("the page gives %s the status %s, and it has %d", code, status, code.Status())
			}
		}
		if !strings.HasSuffix(row[3], ".") || !strings.HasSuffix(row[4], ".") {
			t.Errorf("%s lacks a cause or a remedy", code)
		}
	}
	if ofErrors > 120 {
		t.Errorf("%d codes of errors are more than anybody tells apart", ofErrors)
	}
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
				if there, ok := constants[node.Names[0].Name]; ok && there != code || !rows[code] {
					t.Errorf("%s: build/docs/errors.md does not explain %s, or its name has another code",
						file.at(node.Pos()), text)
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
				if file.path != "backend/session/codes.go" {
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
	if len(rows) != len(constants) {
		t.Errorf("the page explains %d codes, and %d are declared", len(rows), len(constants))
	}
}
