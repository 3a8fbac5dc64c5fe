package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// WriteReference writes every command with its flags as Markdown, for the
// documentation.
func WriteReference(w io.Writer) error {
	p := &program{Config: Config{Env: func(string) string { return "" }}}
	root := p.rootCommand()
	root.InitDefaultCompletionCmd()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\n```\n%s\n```\n", strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(root.Long), strings.TrimSpace(exitCodesHelp))), strings.TrimSpace(exitCodesHelp))
	fmt.Fprintf(&text, "\nEvery command also takes `-o json` (the API's own objects) and `--help`.\n")
	for _, command := range root.Commands() {
		writeCommand(&text, command)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// writeCommand writes a command and those below it; hidden ones are for programs.
func writeCommand(text *strings.Builder, command *cobra.Command) {
	if command.Hidden || command.Name() == "help" {
		return
	}
	fmt.Fprintf(text, "\n## %s\n\n%s.\n", command.CommandPath(), strings.TrimSuffix(command.Short, "."))
	if command.Runnable() && !command.HasSubCommands() {
		fmt.Fprintf(text, "\n```\n%s\n```\n", strings.TrimSuffix(command.UseLine(), " [flags]"))
	}
	if command.Long != "" {
		fmt.Fprintf(text, "\n```text\n%s\n```\n", strings.TrimSpace(command.Long))
	}
	if command.Example != "" {
		fmt.Fprintf(text, "\n```\n%s\n```\n", strings.TrimSpace(command.Example))
	}
	if flags := command.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\n```text\n%s\n```\n", strings.TrimRight(flags.FlagUsages(), "\n"))
	}
	for _, sub := range command.Commands() {
		writeCommand(text, sub)
	}
}
