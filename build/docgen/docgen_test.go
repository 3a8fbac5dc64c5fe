package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// moduleRoot is where the module is, seen from this package.
const moduleRoot = "../.."

// What a document names as a code is one of the table.
func TestDocumentsNameCodesOfTheTable(t *testing.T) {
	named := regexp.MustCompile("`([a-z]+_[a-z]+_[a-z][a-z-]*)`")
	all := documents(t)
	table := all["build/docs/errors.md"]
	for at, text := range all {
		if filepath.Base(at) == "CHANGELOG.md" {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if match[1] != "domain_operation_detail" && !strings.Contains(table, "\n| "+match[0]+" |") {
				t.Errorf("%s names the code %s, which the table does not have", at, match[1])
			}
		}
	}
}
