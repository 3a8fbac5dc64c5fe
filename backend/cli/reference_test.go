package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	// shellLine is a line of a block of commands, or what stands between
	// backquotes in a sentence.
	shellLine = regexp.MustCompile("(?m)^    +((?:slipway|build/bin/slipway) [^\n]*)$|`(slipway [^`\n]*)`")
	// oneCommand is a command of Slipway's among those of a line.
	oneCommand = regexp.MustCompile(`(?:^|[;&|] *)slipway ([^;&|#]*)`)
)

// Whoever types what the documents say meets commands and options that are there.
func TestDocumentsNameCommandsThatAreThere(t *testing.T) {
	root := Commands()
	for _, wrong := range []string{"frobnicate", "agent frobnicate", "ps --frobnicate", "agent list -J",
		"run --image x --frobnicate=1 -- ls --all"} {
		if wrongIn(root, strings.Fields(wrong)) == "" {
			t.Errorf("slipway %s would pass", wrong)
		}
	}
	tried := 0
	chapters, err := filepath.Glob(filepath.Join("..", "..", "build", "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(chapters, filepath.Join("..", "..", "README.md")) {
		if filepath.Base(name) == "cli.md" {
			continue // it is made of the commands, and its usage lines have placeholders
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range shellLine.FindAllStringSubmatch(string(text), -1) {
			for _, one := range oneCommand.FindAllStringSubmatch(line[1]+line[2], -1) {
				tried++
				if wrong := wrongIn(root, strings.Fields(one[1])); wrong != "" {
					t.Errorf("%s: slipway %s: %s", name, one[1], wrong)
				}
			}
		}
	}
	if tried < 30 {
		t.Errorf("only %d commands were found", tried)
	}
}

// wrongIn says what in a command line is not there.
func wrongIn(root *cobra.Command, words []string) string {
	command, rest, err := root.Find(words)
	switch {
	case err != nil:
		return err.Error()
	case command == root:
		return "it is no command"
	case len(rest) > 0 && command.HasSubCommands() && !strings.HasPrefix(rest[0], "-"):
		return rest[0] + " is no command of it"
	}
	command.InitDefaultHelpFlag()
	for _, word := range rest {
		if word == "--" {
			break
		}
		long, isLong := strings.CutPrefix(word, "--")
		long, _, _ = strings.Cut(long, "=")
		switch {
		case isLong && command.Flag(long) == nil && !strings.HasSuffix(long, "…"):
			return word + " is no option of it"
		case !isLong && len(word) == 2 && word[0] == '-' && command.Flags().ShorthandLookup(word[1:]) == nil &&
			command.InheritedFlags().ShorthandLookup(word[1:]) == nil:
			return word + " is no option of it"
		}
	}
	return ""
}
