// Command tsgen writes what is derived from the wire types of backend/api: the
// types of the user interface (frontend/src/api/types.gen.ts) and the OpenAPI
// document (backend/api/openapi.json); the bounds and patterns of fields that
// the user interface needs while they are entered
// (frontend/src/api/rules.gen.ts); and the English words of what an agent says
// in phrases (frontend/src/i18n/en/phrases.json), which are its own
// (backend/session/phrases.json). Run it in the module with
//
//	go run ./build/tsgen          write all
//	go run ./build/tsgen -check   exit with 1 when one of them is out of date
//
// The types are those of the bodies of [slipway/backend/api/route], wherever they
// are declared. Their comments and the members of enumerations are read from the
// source, so that none of them is written twice.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// output is one generated file, by its path in the module.
type output struct {
	path    string
	content []byte
}

func main() {
	check := flag.Bool("check", false, "write nothing; exit with 1 when a file is out of date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "tsgen:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	outputs, err := generate(root)
	if err != nil {
		return err
	}
	if check {
		return checkCurrent(root, outputs)
	}
	for _, out := range outputs {
		if err := write(filepath.Join(root, out.path), out.content); err != nil {
			return err
		}
	}
	return nil
}

// generate makes every output for the module at root.
func generate(root string) ([]output, error) {
	source, err := readSource(root)
	if err != nil {
		return nil, err
	}
	document, err := openAPI(source)
	if err != nil {
		return nil, err
	}
	phrases, err := os.ReadFile(filepath.Join(root, "backend/session/phrases.json"))
	if err != nil {
		return nil, err
	}
	return []output{
		{"frontend/src/api/types.gen.ts", typeScript(source)},
		{"frontend/src/api/rules.gen.ts", typeScriptRules()},
		{"frontend/src/i18n/en/phrases.json", phrases},
		{"backend/api/openapi.json", document},
	}, nil
}

// checkCurrent fails with the names of the outputs that differ from the tree.
func checkCurrent(root string, outputs []output) error {
	var stale []string
	for _, out := range outputs {
		have, err := os.ReadFile(filepath.Join(root, out.path))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if !bytes.Equal(have, out.content) {
			stale = append(stale, out.path)
		}
	}
	if len(stale) > 0 {
		return fmt.Errorf("out of date: %v; run go run ./build/tsgen and commit the result", stale)
	}
	return nil
}

func write(path string, content []byte) error {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, content) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}

// moduleRoot is the nearest directory at or above the working directory that
// holds go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !slices.Contains([]string{"/", "."}, dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		dir = filepath.Dir(dir)
	}
	return "", errors.New("no go.mod above the working directory; run it inside the module")
}
