package project

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"slipway/backend/session"
)

// Repository is what of a git repository is meant.
type Repository struct {
	Address string // as git takes it, without a secret
	Ref     string // branch or tag; empty: the one that the repository names
	Path    string // of the project's directory in it; empty: all of it
	Name    string // of the directory that a clone makes
}

var repository = regexp.MustCompile(`^(https?|ssh|git|file)://|^[\w.-]+@[\w.-]+:`)

// IsRepository reports whether a text is the address of a repository, rather than a path.
func IsRepository(text string) bool { return repository.MatchString(text) }

// ParseRepository parses URL[@REF][#SUBDIRECTORY]. What it accepts holds no secret: no password, no query, and a user
// only for SSH, because others have tokens as users. Its errors repeat nothing of the text.
func ParseRepository(text string) (Repository, error) {
	wrong := func(message, hint string) (Repository, error) { return Repository{}, invalid("address", message, hint) }
	const hint = "Write it as for git clone, such as https://example.com/ada/paper.git."
	var r Repository
	r.Address, r.Path, _ = strings.Cut(text, "#")
	if strings.Contains(r.Address, "?") { // also in the ref, where git allows none
		return wrong("There is a query in the address.",
			"Remove the ? and what follows: git asks for the name and the password, or knows them from its helper.")
	}
	if _, rest, full := strings.Cut(r.Address, "://"); full {
		at, slash := strings.LastIndexByte(rest, '@'), strings.LastIndexByte(rest, '/')
		if slash >= 0 && at > slash { // else it is behind a user
			at += len(r.Address) - len(rest)
			r.Address, r.Ref = r.Address[:at], r.Address[at+1:]
		}
	}
	parsed, err := url.Parse(r.Address)
	if err != nil && strings.Contains(r.Address, "://") {
		return wrong("The address of the repository is not valid.", hint)
	}
	if err == nil && parsed.User != nil {
		if _, has := parsed.User.Password(); has || parsed.Scheme != "ssh" {
			return wrong("There is a user or a password in the address.",
				"Remove it: git asks for the name and the password, or knows them from its helper.")
		}
	}
	if !IsRepository(r.Address) || strings.HasPrefix(r.Ref, "-") || strings.ContainsAny(text, "\r\n\x00") {
		return wrong("This is not the address of a git repository.", hint)
	}
	last := strings.TrimRight(r.Address[strings.LastIndexByte(r.Address, ':')+1:], "/")
	switch r.Name = strings.TrimSuffix(path.Base(last), ".git"); r.Name {
	case "", ".", "..", "/":
		return wrong("The address does not end in a name.",
			"Clone it yourself, and use the directory.")
	}
	return r, nil
}

// Clone returns the arguments with which git clones it into a directory. Each setting, NAME=VALUE, becomes one of the
// clone.
func (r Repository) Clone(dir string, settings ...string) []string {
	args := []string{"clone", "--progress"}
	for _, setting := range settings {
		args = append(args, "--config", setting)
	}
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
