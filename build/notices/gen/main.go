// Command gen writes build/notices/THIRD_PARTY_NOTICES: the works of others in Slipway's programs, for every platform,
// and in its pages. Run it in the module, after npm ci in frontend:
//
//	go run ./build/notices/gen          write it
//	go run ./build/notices/gen -check   exit with 1 when it is out of date
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"slipway/build/generated"
)

const target = "build/notices/THIRD_PARTY_NOTICES"

// work is something that others made.
type work struct {
	name, version string
	license       string // its identifier by SPDX
	source        string // where its source is
	text          string // its licence, as it is distributed
}

func main() {
	generated.Main("notices", func(root string) (map[string][]byte, error) {
		works, err := goModules(root)
		if err != nil {
			return nil, err
		}
		packages, err := npmPackages(root)
		if err != nil {
			return nil, err
		}
		works = append(works, packages...)
		python, err := cpython(root)
		if err != nil {
			return nil, err
		}
		text, err := write(append(works, python))
		return map[string][]byte{target: text}, err
	})
}

// cpython is in the files of Pyodide, whose package does not have its licence.
func cpython(root string) (work, error) {
	const name = "build/notices/texts/cpython.txt"
	text, err := os.ReadFile(filepath.Join(root, name))
	return work{name: "CPython", version: "as built by Pyodide", license: "PSF-2.0",
		source: "https://github.com/python/cpython", text: string(text)}, err
}

// named finds the files in which authors put what has to be passed on.
var named = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents|unlicense)([.-].*)?$`)

// passedOn returns those files of a directory, one after another.
func passedOn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !named.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", err
		}
		texts = append(texts, plain(string(text)))
	}
	return strings.Join(texts, "\n\n"), nil
}

// plain removes what differs between equal texts: line ends, and space at the end of lines and of the text.
func plain(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// identify returns the identifiers of the licences in a text.
func identify(text string) string {
	var ids []string
	for _, match := range licensecheck.Scan([]byte(text)).Match {
		if !match.IsURL && !slices.Contains(ids, match.ID) {
			ids = append(ids, match.ID)
		}
	}
	return strings.Join(ids, " and ")
}

// write lists the works, and then each text once, under the names of those that have it.
func write(works []work) ([]byte, error) {
	slices.SortFunc(works, func(a, b work) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name)),
			strings.Compare(a.version, b.version))
	})
	works = slices.Compact(works)
	var b bytes.Buffer
	b.WriteString(head)
	var texts []string
	holders := map[string][]string{}
	for _, w := range works {
		if w.text == "" || w.license == "" {
			return nil, fmt.Errorf("%s %s has no licence that is known: %q", w.name, w.version, w.license)
		}
		name := w.name + " " + w.version
		fmt.Fprintf(&b, "%s (%s)\n    %s\n", name, w.license, w.source)
		text := plain(w.text)
		if holders[text] == nil {
			texts = append(texts, text)
		}
		holders[text] = append(holders[text], name)
	}
	for _, text := range texts {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(holders[text], "\n"), text)
	}
	return b.Bytes(), nil
}

const head = `Slipway is made with the works below. Each is the property of its authors, who allow its use under the
licence that stands after the list. The source of each is at the address under its name. That is also where the source
of Pyodide (MPL-2.0) and of the fonts (OFL-1.1) is, which are passed on unchanged.

`
