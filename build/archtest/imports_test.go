package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// view is one way to build the module; files that the others leave out are in it.
type view struct {
	name string
	env  []string
	tags string
}

var views = []view{
	{name: "linux", env: []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0"}},
	{name: "linux desktop", env: []string{"GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1"},
		tags: "desktop,production,webkit2_41"},
	{name: "darwin desktop", env: []string{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=1"}, tags: "desktop,production"},
	{name: "windows desktop", env: []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"},
		tags: "desktop,production"},
	{name: "darwin", env: []string{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"}},
	{name: "windows", env: []string{"GOOS=windows", "GOARCH=amd64", "CGO_ENABLED=0"}},
}

// goPackage is what go list says of a package.
type goPackage struct {
	ImportPath   string
	Name         string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// local is the path inside the module, "" for its root.
func (p goPackage) local() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

func listPackages(t *testing.T, root string, v view) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags="+v.tags, "-json=ImportPath,Name,Imports,TestImports,XTestImports",
		"./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), v.env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list for %s: %v\n%s", v.name, err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestPackagesImportWhatTheTableAllows(t *testing.T) {
	root := moduleRoot(t)
	for _, v := range views {
		t.Run(v.name, func(t *testing.T) {
			for _, p := range listPackages(t, root, v) {
				checkImports(t, p)
			}
		})
	}
}

func checkImports(t *testing.T, p goPackage) {
	t.Helper()
	at := slices.IndexFunc(table, func(r row) bool { return r.pkg == p.local() })
	if at < 0 {
		t.Errorf("package %s has no line in the table; decide what it may import and add it to "+
			"build/archtest/table_test.go", p.ImportPath)
		return
	}
	if slices.Contains(vagueNames, p.Name) {
		t.Errorf("package %s is named %s, which says nothing; name it for what it provides", p.ImportPath, p.Name)
	}
	for _, imported := range p.Imports {
		if !allowed(at, imported, false) {
			t.Errorf(
				"%s imports %s; move the code to where it may stand, or change the table and say why in the commit",
				p.ImportPath, imported)
		}
	}
	for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
		if !allowed(at, imported, true) {
			t.Errorf("a test of %s imports %s, which stands below it; move the test there or list it under tests in "+
				"the table", p.ImportPath, imported)
		}
	}
}

// allowed reports whether the package of table[at], or its tests, may import a package.
func allowed(at int, imported string, inTest bool) bool {
	from := table[at]
	if local, ok := strings.CutPrefix(imported, module+"/"); ok {
		above := slices.ContainsFunc(table[:at], func(r row) bool { return r.pkg == local })
		if slices.Contains(from.imports, local) {
			return true
		}
		return inTest && (above || local == from.pkg || slices.Contains(from.tests, local))
	}
	if !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") {
		return true
	}
	for _, f := range fences {
		if imported == f.module || strings.HasPrefix(imported, f.module+"/") {
			return slices.Contains(f.pkgs, from.pkg) || inTest && slices.Contains(f.tests, from.pkg)
		}
	}
	return false
}

func TestTheTableReadsDownward(t *testing.T) {
	for i, r := range table {
		if slices.ContainsFunc(table[:i], func(above row) bool { return above.pkg == r.pkg }) {
			t.Errorf("%q has two lines; keep one", r.pkg)
		}
		for _, imported := range r.imports {
			if !slices.ContainsFunc(table[:i], func(above row) bool { return above.pkg == imported }) {
				t.Errorf("%q may import %q, which does not stand above it; reorder the table", r.pkg, imported)
			}
		}
	}
}

func TestTheRulesCatchWhatTheyForbid(t *testing.T) {
	row := func(pkg string) int {
		return slices.IndexFunc(table, func(r row) bool { return r.pkg == pkg })
	}
	for _, c := range []struct {
		from, imported string
		inTest, want   bool
	}{
		{"backend/hub", "slipway/backend/session", false, true},
		{"backend/hub", "slipway/backend/agent", false, false},
		{"backend/hub", "slipway/backend/agent", true, true},
		{"backend/session", "slipway/backend/hub", true, false},
		{"backend/cli", "github.com/docker/docker/client", false, false},
		{"backend/engine/docker", "github.com/docker/docker/client", false, true},
		{"backend/guest", "github.com/creack/pty", false, true},
		{"backend/agent", "example.com/unheard/of", false, false},
		{"backend", "slipway/backend/service", false, true},
		{"backend", "slipway/app", false, false},
		{"gpu", "encoding/json", false, true},
	} {
		if got := allowed(row(c.from), c.imported, c.inTest); got != c.want {
			t.Errorf("allowed(%s, %s, in test %v) = %v, want %v", c.from, c.imported, c.inTest, got, c.want)
		}
	}
}

// moduleRoot is the directory of the module.
func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	return path.Dir(path.Dir(dir)), err
}
