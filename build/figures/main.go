// Command figures counts what shows whether the module stays simple, such as its lines, its largest struct and its
// error codes. build/figures/figures.txt has each figure and its goal. Run it in the module with
//
//	go run ./build/figures           fail when a figure is worse than in the file
//	go run ./build/figures -update   record figures that became better
//
// To record a figure that has to become worse, edit the file by hand and say why in the commit.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

type figure struct {
	name string
	now  int    // as counted, or as the file says
	goal int    // what it must become at most
	what string // where the count is found
}

const record = "build/figures/figures.txt"

func main() {
	update := flag.Bool("update", false, "write down figures that became better")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	tree, err := read(root)
	if err != nil {
		return err
	}
	old, err := load(filepath.Join(root, record))
	if err != nil {
		return err
	}
	counted := tree.figures()
	var worse []error
	for i := range counted {
		f := &counted[i]
		before, known := old[f.name]
		if !known {
			continue
		}
		if f.now > before.now {
			worse = append(worse, fmt.Errorf("%s: %d, at most %d: %s", f.name, f.now, before.now, f.what))
		}
	}
	if err := errors.Join(worse...); err != nil {
		return fmt.Errorf("worse than %s says:\n%w", record, err)
	}
	text := table(counted)
	fmt.Print(text)
	if !update {
		return nil
	}
	return os.WriteFile(filepath.Join(root, record), []byte(text), 0o644)
}

func table(figures []figure) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, f := range figures {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", f.name, f.now, f.goal, f.what)
	}
	w.Flush() //nolint:errcheck // it writes into a buffer
	return b.String()
}

// load reads the file; without a file there are no figures.
func load(path string) (map[string]figure, error) {
	known := map[string]figure{}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return known, nil
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, "  ")
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			return nil, fmt.Errorf("%s: cannot read %q", path, line)
		}
		now, err := strconv.Atoi(fields[0])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		known[name] = figure{name: name, now: now}
	}
	return known, err
}
