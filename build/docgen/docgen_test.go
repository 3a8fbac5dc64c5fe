package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"slipway/backend/session"
)

// moduleRoot is where the module is, seen from this package.
const moduleRoot = "../.."

// What a document names as a code is one of the table.
func TestDocumentsNameCodesOfTheTable(t *testing.T) {
	named := regexp.MustCompile("`([a-z]+_[a-z]+_[a-z][a-z-]*)`")
	for at, text := range documents(t) {
		if filepath.Base(at) == "CHANGELOG.md" {
			continue
		}
		for _, match := range named.FindAllStringSubmatch(text, -1) {
			if match[1] != "domain_operation_detail" && !session.Code(match[1]).Known() {
				t.Errorf("%s names the code %s, which the table does not have", at, match[1])
			}
		}
	}
}
