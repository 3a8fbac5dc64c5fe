package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/spf13/cobra"

	"slipway/backend/cli"
)

// TestEveryCommandThatIsNamedExists reads all that tells people what to type, in
// the program, the interface and the documents, and looks each command and flag
// up in the tree of commands.
func TestEveryCommandThatIsNamedExists(t *testing.T) {
	root := cli.Commands()
	root.InitDefaultCompletionCmd("bash") // as it does for itself when it runs
	found := 0
	check := func(where, text string) {
		for _, line := range commandLines(text) {
			if slices.Contains(notCommands, line[0]) {
				continue
			}
			found++
			if wrong := judgeLine(root, line); wrong != "" {
				t.Errorf("%s: slipway %s: %s", where, strings.Join(line, " "), wrong)
			}
		}
	}
	eachText(t, filepath.Join("..", ".."), check)
	if found < 300 {
		t.Errorf("only %d commands are found; the test looks in the wrong place", found)
	}
}

// notCommands follow the name of the program where it is that of something else:
// "the slipway program", a package's files, what keys sign and are mixed with, and
// the [flags] of its usage line.
var notCommands = []string{"program", "slipway-desktop", "key", "pair", "from", "for", "flags"}

// proseWords follow a command that has others below it, and are none of them:
// those of sentences, and the [flags] of usage lines.
var proseWords = []string{"lists", "runs", "flags"}

var wordRule = regexp.MustCompile(`^[a-z][a-z-]*$`)

// eachText calls check with every text for people below a folder.
func eachText(t *testing.T, root string, check func(where, text string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		hidden := len(name) > 2 && name[0] == '.' // and not the folder itself
		if entry.IsDir() && (hidden || slices.Contains([]string{"node_modules", "dist", "testdata", "bin"}, name)) {
			return fs.SkipDir
		}
		isTest := strings.HasSuffix(name, "_test.go") || strings.Contains(name, ".test.")
		if entry.IsDir() || isTest || name == "CHANGELOG.md" { // what it says was so in its time
			return nil
		}
		switch filepath.Ext(name) {
		case ".go":
			return eachLiteral(path, check)
		case ".md", ".json", ".ts", ".tsx", ".sh", ".yaml", ".desktop":
			data, err := os.ReadFile(path)
			check(path, string(data))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// eachLiteral calls check with the texts in a source file.
func eachLiteral(path string, check func(where, text string)) error {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if text, err := strconv.Unquote(literal.Value); err == nil {
				check(files.Position(literal.Pos()).String(), text)
			}
		}
		return true
	})
	return nil
}

// namedRule finds the program's name where it begins a command line: in prose it
// has a capital letter, and in paths, addresses and labels something beside it.
var namedRule = regexp.MustCompile("(?m)(?:^|[\\s`'\"(>|])slipway ([^\\n`\"<]+)")

// commandLines are the words of each command that a text names, without the rest
// of the sentence that it stands in.
func commandLines(text string) [][]string {
	var all [][]string
	for rest := text; ; {
		at := namedRule.FindStringSubmatchIndex(rest)
		if at == nil {
			return all
		}
		line := rest[at[2]:at[3]]
		if next := strings.Index(line, "slipway "); next >= 0 {
			line = line[:next]
		}
		rest = rest[at[2]:]
		var words []string
		for _, word := range strings.Fields(line) {
			trimmed := strings.TrimRight(word, ".,;:)'|&")
			if trimmed == "" || trimmed == "--" || strings.HasPrefix(trimmed, "#") {
				break
			}
			if at := strings.IndexFunc(trimmed, func(r rune) bool {
				return r > unicode.MaxASCII &&
					r != '…'
			}); at >= 0 {
				trimmed = trimmed[:at] // a particle in Korean, or a drawing
			}
			if trimmed == "" {
				break
			}
			words = append(words, strings.Trim(trimmed, "[]("))
			if trimmed != word { // the end of a clause
				break
			}
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
}

// judgeLine says what is wrong with the words of a command; empty: nothing.
func judgeLine(root *cobra.Command, words []string) string {
	cmd, descending := root, true
	for _, word := range words {
		if strings.ContainsAny(word, "…$>") { // a part of it is left to the reader
			return ""
		}
		if flag, isFlag := strings.CutPrefix(word, "-"); isFlag {
			if !hasFlag(cmd, flag) {
				return cmd.CommandPath() + " has no flag " + word
			}
			continue
		}
		if !descending {
			continue
		}
		next := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool {
			return c.Name() == word ||
				c.HasAlias(word)
		})
		if next < 0 {
			judged := wordRule.MatchString(word) && !slices.Contains(proseWords, word)
			if cmd == root || judged && cmd.HasSubCommands() && cmd.ValidateArgs([]string{word}) != nil {
				return cmd.CommandPath() + " has no command " + word
			}
			descending = false
			continue
		}
		cmd = cmd.Commands()[next]
	}
	return ""
}

func hasFlag(cmd *cobra.Command, flag string) bool {
	name, isLong := strings.CutPrefix(flag, "-")
	name, _, _ = strings.Cut(name, "=")
	if name == "help" || name == "version" || name == "h" {
		return true
	}
	own, inherited := cmd.Flags(), cmd.InheritedFlags()
	if !isLong && name != "" {
		return own.ShorthandLookup(name[:1]) != nil || inherited.ShorthandLookup(name[:1]) != nil
	}
	return name == "" || own.Lookup(name) != nil || inherited.Lookup(name) != nil
}

func TestACommandThatIsNotThereIsFound(t *testing.T) {
	root := cli.Commands()
	for text, wrong := range map[string]bool{
		"Run slipway login for a link.":                                     false,
		"Find out why with slipway doctor, or start it with slipway serve.": false,
		"see `slipway run --cpu 2 python:3.13`":                             false,
		"slipway run -d --name x IMAGE -- python --no-such":                 false,
		"Slipway runs; the folder ~/.local/share/slipway is":                false,
		"slipway:// links and slipway-custom/ada images":                    false,
		"Run slipway log-in for a link.":                                    true,
		"slipway run --no-such-flag":                                        true,
		"slipway doctor says why; slipway server starts it.":                true,
		"slipway agent add --no-such HOST":                                  true,
	} {
		found := ""
		for _, line := range commandLines(text) {
			found += judgeLine(root, line)
		}
		if (found != "") != wrong {
			t.Errorf("%q: %q", text, found)
		}
	}
}
