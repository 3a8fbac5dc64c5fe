package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"slipway/backend/cli"
)

func TestEveryCommandHasASectionAndAManPage(t *testing.T) {
	t.Chdir(moduleRoot)
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	var reference bytes.Buffer
	if err := writeCommands(&reference); err != nil {
		t.Fatal(err)
	}
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := writeManPages(dir); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	var check func(*cobra.Command)
	check = func(command *cobra.Command) {
		if command.Hidden {
			return
		}
		count++
		if !strings.Contains(reference.String(), "\n## "+command.CommandPath()+"\n") && command.HasParent() {
			t.Errorf("cli.md has no section about %s", command.CommandPath())
		}
		name := strings.ReplaceAll(command.CommandPath(), " ", "-") + ".1"
		one, err := os.ReadFile(filepath.Join(first, name))
		if err != nil || !bytes.Contains(one, []byte("Nov 2023")) {
			t.Errorf("%s is missing or has another date (%v)", name, err)
		}
		if again, err := os.ReadFile(filepath.Join(second, name)); err != nil || !bytes.Equal(one, again) {
			t.Errorf("%s is not the same when it is written again (%v)", name, err)
		}
		for _, below := range command.Commands() {
			check(below)
		}
	}
	check(cli.Commands())
	if count < 80 {
		t.Errorf("only %d commands were found", count)
	}
}

// TestAllPackagesHaveTheManPages reads what makes the packages, since making them takes minutes.
func TestAllPackagesHaveTheManPages(t *testing.T) {
	t.Chdir(moduleRoot)
	for path, wanted := range map[string][]string{
		"build/packages/nfpm.yaml": {`src: "${STAGE}/share/**", dst: /usr/share`},
		"build/ci/package.sh": {`docgen -man "$share/man/man1"`, `gzip -9n "$share"/man/man1/*.1`,
			`cp -r "$share" "$stage/share"`, `"$share/man" "$work/$name"`},
	} {
		text, err := os.ReadFile(path)
		for _, piece := range wanted {
			if err != nil || !bytes.Contains(text, []byte(piece)) {
				t.Errorf("%s has no %q (%v)", path, piece, err)
			}
		}
	}
}
