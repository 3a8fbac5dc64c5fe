// Command docgen writes the references of the command line, the API and the settings into build/docs. Run it in the
// module with
//
//	go run ./build/docgen            write all of them
//	go run ./build/docgen -check     exit with 1 when one of them is out of date
//	go run ./build/docgen -man DIR   write the man pages into DIR instead
package main

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"

	"slipway/build/generated"
)

const note = "<!-- Written by build/docgen from the source; make gen writes it anew. -->\n"

func main() {
	man := flag.String("man", "", "write the man pages into this directory and nothing else")
	generated.Main("docgen", func(string) (map[string][]byte, error) {
		if *man != "" {
			return nil, writeManPages(*man)
		}
		return generate()
	})
}

func generate() (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, title := range map[string]string{"cli.md": "The command line", "api.md": "The API",
		"settings.md": "The settings"} {
		b := bytes.NewBufferString(fmt.Sprintf("%s\n# %s\n\n", note, title))
		write := writePage
		if name == "cli.md" {
			write = func(b *bytes.Buffer, _ string) error { return writeCommands(b) }
		}
		if err := write(b, name); err != nil {
			return nil, err
		}
		files[filepath.Join("build", "docs", name)] = b.Bytes()
	}
	return files, nil
}
