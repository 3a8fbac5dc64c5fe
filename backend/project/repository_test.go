package project

import (
	"slices"
	"strings"
	"testing"

	"slipway/backend/session"
)

func TestAddressesOfRepositories(t *testing.T) {
	for text, want := range map[string]Repository{
		"https://example.com/ada/paper.git":           {"https://example.com/ada/paper.git", "", "", "paper"},
		"https://example.com/ada/paper@v2#notebooks":  {"https://example.com/ada/paper", "v2", "notebooks", "paper"},
		"ssh://git@example.com:22/ada/paper.git@main": {"ssh://git@example.com:22/ada/paper.git", "main", "", "paper"},
		"git@example.com:ada/paper.git#a/b":           {"git@example.com:ada/paper.git", "", "a/b", "paper"},
		"git@example.com:paper":                       {"git@example.com:paper", "", "", "paper"},
		"file:///srv/paper.git/":                      {"file:///srv/paper.git/", "", "", "paper"},
	} {
		if got, err := ParseRepository(text); got != want || err != nil {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "paper", "./paper", "/srv/paper", "https://ada:secret@example.com/x.git",
		"-upload:x", "ext::sh -c id", "https://example.com/x@--upload-pack=id", "https://example.com/\nx",
		"https:///", "a@b:..",
		"C:\\paper"} {
		if got, err := ParseRepository(text); session.CodeOf(err) != session.CodeFileInvalid ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	want := []string{"clone", "--progress", "--branch", "v2", "--", "https://h/x", "dir"}
	if got := (Repository{Address: "https://h/x", Ref: "v2"}).Clone("dir"); !slices.Equal(got, want) {
		t.Errorf("git gets %q, want %q", got, want)
	}
}

func TestNamesOfFolders(t *testing.T) {
	for dir, want := range map[string]string{"/home/ada/paper": "paper", "a b (c)": "a-b-c", ".x.": "x",
		"..": "project", "논문": "project", strings.Repeat("o", 500): strings.Repeat("o",
			session.FolderNames.Max)} {
		if got := FolderName(dir); got != want {
			t.Errorf("%q becomes %q, want %q", dir, got, want)
		}
	}
}
