package cli

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"slipway/backend/session"

	"github.com/spf13/cobra"
)

// withDefaults gives a command and those below it what they do not define
// themselves: a command with subcommands prints its help, every other one checks
// and completes its arguments as its usage line says.
func (p *program) withDefaults(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		p.withDefaults(sub)
	}
	switch {
	case cmd.HasSubCommands():
		cmd.Args = noSuchCommand
		if cmd.RunE == nil {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		return
	case cmd.ValidArgsFunction == nil:
		cmd.ValidArgsFunction = p.completeArgument
	}
	cmd.Args = checkArguments
}

// options are the options in a usage line, with their values.
var options = regexp.MustCompile(`\[[^A-Z][^\]]*\]|--\S* \S+`)

// argumentsOf returns the arguments in the usage line of a command, such as
// SESSION, [APP] or [COMMAND…].
func argumentsOf(cmd *cobra.Command) []string {
	use := strings.NewReplacer("[-- COMMAND…]", "[COMMAND…]", "-- COMMAND…", "[COMMAND…]").Replace(cmd.Use)
	return strings.Fields(options.ReplaceAllString(use, ""))[1:]
}

// checkArguments compares arguments with the usage line. Those in brackets are
// optional, those with … repeatable.
func checkArguments(cmd *cobra.Command, args []string) error {
	names := argumentsOf(cmd)
	least, most := len(names), len(names)
	for _, name := range names {
		if strings.HasPrefix(name, "[") {
			least--
		}
		if strings.Contains(name, "…") {
			most = math.MaxInt
		}
	}
	var message string
	switch {
	case len(args) < least:
		message = "Missing argument: " + names[len(args)] + "."
	case len(args) > most:
		message = "Unexpected argument: " + args[most] + "."
	case slices.Contains(args[:min(len(args), len(names))], ""):
		message = "An argument is empty."
	default:
		return nil
	}
	return failAs(ExitUsage, session.CodeUsage, message, "Usage: "+cmd.UseLine())
}

// completeArgument offers names for the argument that is typed, by its name in
// the usage line.
func (p *program) completeArgument(cmd *cobra.Command, args []string, word string,
) ([]string, cobra.ShellCompDirective) {
	if names := argumentsOf(cmd); len(names) > 0 {
		at := min(len(args), len(names)-1)
		repeats := strings.Contains(names[at], "…")
		switch name := strings.Trim(names[at], "[…]"); {
		case at < len(args) && !repeats:
		case name == "SESSION":
			return p.completeSessions(liveSessions)(cmd, args, word)
		case name == "AGENT":
			return p.completeAgents(cmd, args, word)
		case name == "FOLDER":
			return p.completeFolders(cmd, args, word)
		}
	}
	return nil, cobra.ShellCompDirectiveDefault
}
