package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"slipway/backend/cli"
)

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
