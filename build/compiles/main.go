// Command compiles finds errors of types, in this module and in its tests, on other systems than this one:
//
//	go run ./build/compiles windows darwin
//
// It reads other modules without the bodies of their functions, which takes seconds where go vet, which compiles them
// first, takes minutes.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

// needs is what it takes to find errors of types: all code, and what it imports.
const needs = packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
	packages.NeedDeps | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax

func main() {
	for _, system := range os.Args[1:] {
		loaded, err := packages.Load(&packages.Config{
			Mode: needs, Tests: true, Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"),
		}, "./...")
		if err != nil {
			fmt.Fprintln(os.Stderr, "compiles:", err)
			os.Exit(1)
		}
		if packages.PrintErrors(loaded) > 0 {
			fmt.Fprintln(os.Stderr, "compiles: the above on", system)
			os.Exit(1)
		}
	}
}
