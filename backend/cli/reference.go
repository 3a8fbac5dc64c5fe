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
	fmt.Fprintf(&text, "%s\n\n```\n%s\n```\n",
		strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(root.Long), strings.TrimSpace(exitCodesHelp))),
		strings.TrimSpace(exitCodesHelp))
	fmt.Fprintf(&text, "\nEvery command also takes `-o json` (the API's own objects) and `--help`.\n")
	text.WriteString("\n| command | does |\n|---|---|\n")
	everyCommand(root, func(command *cobra.Command) {
		path := command.CommandPath()
		fmt.Fprintf(&text, "| [%s](#%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), command.Short)
	})
	everyCommand(root, func(command *cobra.Command) { writeCommand(&text, command) })
	_, err := io.WriteString(w, text.String())
	return err
}

// everyCommand calls fn for the commands that are for people, each before those below it.
func everyCommand(above *cobra.Command, fn func(*cobra.Command)) {
	for _, command := range above.Commands() {
		if !command.Hidden && command.Name() != "help" {
			fn(command)
			everyCommand(command, fn)
		}
	}
}

func writeCommand(text *strings.Builder, command *cobra.Command) {
	fmt.Fprintf(text, "\n## %s\n\n%s.\n", command.CommandPath(), strings.TrimSuffix(command.Short, "."))
	if command.Runnable() {
		fmt.Fprintf(text, "\n```\n%s\n```\n", strings.TrimSuffix(command.UseLine(), " [flags]"))
	}
	if command.Long != "" {
		fmt.Fprintf(text, "\n```text\n%s\n```\n", strings.TrimSpace(command.Long))
	}
	if command.Example != "" {
		fmt.Fprintf(text, "\nFor example:\n\n```\n%s\n```\n", outdent(command.Example))
	}
	if flags := command.LocalNonPersistentFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(text, "\n```text\n%s\n```\n", strings.TrimRight(flags.FlagUsages(), "\n"))
	}
}

// outdent takes away what all lines of an example begin with in the help.
func outdent(example string) string {
	return strings.TrimSpace(strings.ReplaceAll("\n"+example, "\n  ", "\n"))
}
