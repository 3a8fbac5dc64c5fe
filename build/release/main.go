// Command release makes a release of this directory, and a site from which it can be installed:
//
//	go run ./build/release notes [VERSION]      print a section of the changelog; without VERSION, what is unreleased
//	go run ./build/release cut VERSION          date that section, write build/VERSION, commit and tag
//	go run ./build/release site [-key KEY] DIR  add build/bin/packages to a directory for a static host
//
// It pushes and uploads nothing. build/docs/releasing.md says how they follow one another.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(".", os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: release notes [VERSION] | cut VERSION | site [-key KEY] DIR")

func run(root string, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	key := flags.String("key", "", "key of gpg that signs the repositories")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch {
	case args[0] == "notes" && flags.NArg() <= 1:
		section, err := sectionOf(root, flags.Arg(0))
		if err == nil {
			fmt.Println(section.notes)
		}
		return err
	case args[0] == "cut" && flags.NArg() == 1:
		return cut(root, flags.Arg(0), time.Now().UTC().Format(time.DateOnly))
	case args[0] == "site" && flags.NArg() == 1:
		return makeSite(root, flags.Arg(0), *key)
	}
	return errUsage
}

// output runs a program in a directory and returns what it prints.
func output(dir string, input string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	var out, messages bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, strings.NewReader(input), &out, &messages
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, messages.String())
	}
	return out.String(), nil
}

// versionOf reads the version of a directory.
func versionOf(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, versionFile))
	return strings.TrimSpace(string(text)), err
}

const (
	versionFile   = "build/VERSION"
	changelogFile = "CHANGELOG.md"
)
