package project

import (
	"fmt"
	"net/url"
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
		"https://example.com/ada/paper@v2@x":          {"https://example.com/ada/paper@v2", "x", "", "paper@v2"},
	} {
		if got, err := ParseRepository(text); got != want || err != nil {
			t.Errorf("%s is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "paper", "./paper", "/srv/paper", "-upload:x", "ext::sh -c id",
		"https://example.com/x@--upload-pack=id", "https://example.com/\nx", "https:///", "a@b:..", "C:\\paper"} {
		if got, err := ParseRepository(text); session.CodeOf(err) != session.CodeFileInvalid {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	want := []string{"clone", "--progress", "--config", "a.b=c", "--branch", "v2", "--", "https://h/x", "dir"}
	if got := (Repository{Address: "https://h/x", Ref: "v2"}).Clone("dir", "a.b=c"); !slices.Equal(got, want) {
		t.Errorf("git gets %q, want %q", got, want)
	}
}

func TestAddressesHoldNoSecret(t *testing.T) {
	for text, says := range map[string]string{
		"https://ada:secret@example.com/x.git":             "a user or a password",
		"https://:secret@example.com/x.git":                "a user or a password",
		"https://secret@example.com/x.git":                 "a user or a password",
		"http://secret@example.com/x.git@v2":               "a user or a password",
		"https://secret@example.com":                       "a user or a password",
		"https://secret@example.com#x":                     "a user or a password",
		"https://@example.com/x.git":                       "a user or a password",
		"git://secret@example.com/x.git":                   "a user or a password",
		"file://secret@localhost/x.git":                    "a user or a password",
		"ssh://git:secret@example.com/x.git":               "a user or a password",
		"https://ada:secret word@example.com/x.git":        "not valid",
		"https://example.com:secret/x.git":                 "not valid",
		"HTTPS://secret@example.com/x.git":                 "a user or a password",
		"https:/secret@example.com/x.git":                  "not the address",
		"ada:secret@example.com:x.git":                     "not the address",
		"https://example.com/secret@--upload-pack=secret":  "not the address",
		"https://example.com/x.git?private_token=secret":   "a query",
		"https://example.com/x.git?private_token=secret@a": "a query",
		"https://example.com/x.git@v2?secret":              "a query",
		"https://example.com/x.git?":                       "a query",
		"https://example.com?secret#x":                     "a query",
		"ssh://git@example.com/x.git?secret":               "a query",
		"git://example.com/x.git?secret":                   "a query",
		"file:///srv/x.git?secret":                         "a query",
		"git@example.com:x.git?secret":                     "a query",
	} {
		got, err := ParseRepository(text)
		if err == nil {
			t.Errorf("%s is %+v; want %q", text, got, says)
			continue
		}
		e := session.AsError(err, "")
		if e.Code != session.CodeFileInvalid || len(e.Fields) != 1 ||
			!strings.Contains(e.Fields[0].Message, says) {
			t.Errorf("%s is %+v, %+v; want %q", text, got, e, says)
		}
		if whole := fmt.Sprintf("%+v", e); strings.Contains(whole, "secret") || strings.Contains(whole, "com/x") {
			t.Errorf("the error of %s repeats it: %s", text, whole)
		}
	}
}

// FuzzRepository parses any text. An address that is accepted has no password and no query, and a user only for SSH.
func FuzzRepository(f *testing.F) {
	for _, text := range []string{"https://example.com/ada/paper@v2#notebooks", "ssh://git@example.com:22/x@main",
		"git@example.com:ada/paper.git", "https://t@h", "https://h/x?a=b", "file:///srv/paper.git/"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRepository(text)
		if err != nil {
			return
		}
		parsed, err := url.Parse(r.Address)
		switch {
		case strings.Contains(r.Address+r.Ref, "?"), err != nil && strings.Contains(r.Address, "://"),
			err == nil && parsed.User != nil && parsed.Scheme != "ssh":
			t.Errorf("%q is %+v", text, r)
		case err == nil && parsed.User != nil:
			if _, has := parsed.User.Password(); has {
				t.Errorf("%q is %+v", text, r)
			}
		}
	})
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
