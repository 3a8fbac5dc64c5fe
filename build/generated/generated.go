// Package generated updates generated files.
package generated

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Main is the program of a generator, run at the root of the module. With -check it only reports outdated files.
func Main(name string, generate func(root string) (map[string][]byte, error)) {
	check := flag.Bool("check", false, "write nothing; exit with 1 when a file is out of date")
	flag.Parse()
	files, err := generate(".")
	if err == nil {
		err = Update(".", files, *check)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Parse reads the files of dir, sorted, that are neither tests nor generated.
func Parse(dir string) (files []*ast.File, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		name := entry.Name()
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") ||
			strings.HasSuffix(name, ".gen.go") {
			continue
		}
		var file *ast.File
		file, err = parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		files = append(files, file)
	}
	return files, err
}

// Update writes the files that differ from those at root, by their paths. With check it fails instead.
func Update(root string, files map[string][]byte, check bool) error {
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return errors.New("run it at the root of the module")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		at := filepath.Join(root, path)
		have, err := os.ReadFile(at)
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		case bytes.Equal(have, files[path]):
			continue
		case check:
			return fmt.Errorf("%s is out of date; run make gen and commit the result", path)
		}
		if err := os.WriteFile(at, files[path], 0o644); err != nil {
			return err
		}
	}
	return nil
}
