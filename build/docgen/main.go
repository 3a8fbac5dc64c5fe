// Command docgen writes the references of the command line, the API and the settings into build/docs. Run it in the
// module with
//
//	go run ./build/docgen            write all of them
//	go run ./build/docgen -check     exit with 1 when one of them is out of date
//	go run ./build/docgen -man DIR   write the man pages into DIR instead
package main

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"slipway/backend/api/route"
	"slipway/backend/cli"
	"slipway/backend/settings"
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
	shapes, err := shapes()
	if err != nil {
		return nil, err
	}
	var commands bytes.Buffer
	if err := writeCommands(&commands); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, page := range map[string]struct {
		title string
		data  any
	}{
		"cli.md":      {"The command line", commands.String()},
		"api.md":      {"The API", map[string]any{"Groups": groups(), "Shapes": shapes}},
		"settings.md": {"The settings", settings.Fields()},
	} {
		b := bytes.NewBufferString(fmt.Sprintf("%s\n# %s\n\n", note, page.title))
		if err := templates.ExecuteTemplate(b, name, page.data); err != nil {
			return nil, err
		}
		files[filepath.Join("build", "docs", name)] = b.Bytes()
	}
	return files, nil
}

//go:embed pages.tmpl
var templateText string

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"cell": cell, "value": value, "body": bodyLink, "answer": answer, "join": strings.Join,
	"path": func(one route.Description) string { return strings.TrimPrefix(one.Path(), route.Root) },
}).Parse(templateText))

func value(f settings.Field) string {
	switch {
	case f.Choices != nil:
		return strings.Join(f.Choices, ", ")
	case f.Most > 0:
		return fmt.Sprintf("%s, %v to %v", f.Kind, f.Least, f.Most)
	case f.Example != "":
		return "such as `" + f.Example + "`"
	}
	return string(f.Kind)
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(text)
}

// writeCommands writes every command for people as a section of one page, parents first.
func writeCommands(b *bytes.Buffer) error {
	root := cli.Commands()
	root.DisableAutoGenTag = true
	return writeCommand(b, root)
}

func writeCommand(b *bytes.Buffer, command *cobra.Command) error {
	section := func(file string) string {
		return "#" + strings.ReplaceAll(strings.TrimSuffix(file, ".md"), "_", "-")
	}
	if err := doc.GenMarkdownCustom(command, b, section); err != nil {
		return err
	}
	for _, below := range command.Commands() {
		if below.IsAvailableCommand() && !below.IsAdditionalHelpTopicCommand() {
			if err := writeCommand(b, below); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeManPages writes one page for each command. cobra dates them with SOURCE_DATE_EPOCH.
func writeManPages(dir string) error {
	version, err := os.ReadFile(filepath.Join("build", "VERSION"))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.Commands()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{
		Section: "1", Source: "Slipway " + strings.TrimSpace(string(version)), Manual: "Slipway",
	}, dir)
}
