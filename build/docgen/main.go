// Command docgen writes the references that are derived from the source into
// build/docs: the command line, the API, the settings and the error codes. Run
// it in the module with
//
//	go run ./build/docgen            write all of them
//	go run ./build/docgen -check     exit with 1 when one of them is out of date
//	go run ./build/docgen -man DIR   write the man pages into DIR instead
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"slipway/build/generated"
)

const note = "<!-- Written by build/docgen from the source; make gen writes it anew. -->\n"

func main() {
	check := flag.Bool("check", false, "write nothing; exit with 1 when a file is out of date")
	man := flag.String("man", "", "write the man pages into this directory and nothing else")
	flag.Parse()
	write := func() error { return run(*check) }
	if *man != "" {
		write = func() error { return writeManPages(*man) }
	}
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// page is one generated file of build/docs.
type page struct {
	name  string
	title string
	write func(*bytes.Buffer) error
}

func run(check bool) error {
	pages := []page{
		{"cli.md", "The command line", writeCommands},
		{"api.md", "The API", writeAPI},
		{"settings.md", "The settings", writeSettings},
	}
	files := map[string][]byte{}
	for _, p := range pages {
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s\n# %s\n\n", note, p.title)
		if err := p.write(&b); err != nil {
			return err
		}
		files[filepath.Join("build", "docs", p.name)] = b.Bytes()
	}
	return generated.Update(".", files, check)
}
