package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestErrorsAreReadAsTheyAreWritten(t *testing.T) {
	root := t.TempDir()
	for _, room := range []string{"backend", "gpu", "tunnel", "app"} {
		if err := os.Mkdir(filepath.Join(root, room), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	source := `package x
var _ = Error{Code: "image_pull_failed", Message: fmt.Sprintf("%q of %s could not be pulled.", a, b), Hint: "Try " + name + " again."}
var _ = Error{Code: "image_pull_failed", Message: text, Hint: hint}
var _ = Error{Code: "no code", Message: "left out"}`
	if err := os.WriteFile(filepath.Join(root, "backend", "x.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := findErrors(root)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	if k := found[0]; k.code != "image_pull_failed" || strings.Join(k.messages, "|") != "… of … could not be pulled." || strings.Join(k.hints, "|") != "Try … again." {
		t.Errorf("found %+v", k)
	}
}
