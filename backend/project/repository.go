package project

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"

	"slipway/backend/session"
)

// Repository is what of a git repository is meant.
type Repository struct {
	Address string // as git takes it, without a password
	Ref     string // branch or tag; empty: the one that the repository names
	Path    string // of the project's directory in it; empty: all of it
	Name    string // of the directory that a clone makes
}

var repository = regexp.MustCompile(`^(https?|ssh|git|file)://|^[\w.-]+@[\w.-]+:`)

// IsRepository reports whether a text is the address of a repository, rather than a path.
func IsRepository(text string) bool { return repository.MatchString(text) }

// ParseRepository parses URL[@REF][#SUBDIRECTORY].
func ParseRepository(text string) (Repository, error) {
	wrong := func(message, hint string) (Repository, error) { return Repository{}, invalid("address", message, hint) }
	var r Repository
	r.Address, r.Path, _ = strings.Cut(text, "#")
	if at := strings.LastIndexByte(r.Address, '@'); at > strings.LastIndexByte(r.Address, '/') &&
		strings.Contains(r.Address, "://") {
		r.Address, r.Ref = r.Address[:at], r.Address[at+1:]
	}
	parsed, err := url.Parse(r.Address)
	if err == nil && parsed.User != nil {
		if _, has := parsed.User.Password(); has {
			return wrong("There is a password in the address.",
				"Leave it out: git asks for it, or knows it from its helper.")
		}
	}
	if !IsRepository(r.Address) || strings.HasPrefix(r.Ref, "-") || strings.ContainsAny(text, "\r\n\x00") {
		return wrong(fmt.Sprintf("%q is no address of a git repository.", session.Clip(text)),
			"Write it as for git clone, such as https://example.com/ada/paper.git.")
	}
	last := strings.TrimRight(r.Address[strings.LastIndexByte(r.Address, ':')+1:], "/")
	switch r.Name = strings.TrimSuffix(path.Base(last), ".git"); r.Name {
	case "", ".", "..", "/":
		return wrong(fmt.Sprintf("%q does not end in a name.", session.Clip(text)),
			"Clone it yourself, and use the directory.")
	}
	return r, nil
}

// Clone returns the arguments with which git clones it into a directory.
func (r Repository) Clone(dir string) []string {
	args := []string{"clone", "--progress"}
	if r.Ref != "" {
		args = append(args, "--branch", r.Ref)
	}
	return append(args, "--", r.Address, dir)
}

var notFolderName = regexp.MustCompile(`[^A-Za-z0-9_.-]+`)

// FolderName makes a name for the folder of a directory.
func FolderName(dir string) string {
	name := strings.Trim(notFolderName.ReplaceAllString(path.Base(dir), "-"), ".-")
	name = strings.Trim(name[:min(len(name), session.FolderNames.Max)], ".-")
	if session.FolderNames.Check(name) != nil {
		return "project"
	}
	return name
}
