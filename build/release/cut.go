package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"slipway/backend/updates"
)

// unreleased is the title of what the next release brings.
const unreleased = "Unreleased"

// section is a part of the changelog, which begins with "## Unreleased" or "## 1.2.0, 2026-11-27".
type section struct {
	before, after string // the rest of the changelog
	date          string // empty: unreleased
	notes         string
}

// sectionOf finds the section of a version; "": of what is unreleased.
func sectionOf(root, version string) (section, error) {
	data, err := os.ReadFile(filepath.Join(root, changelogFile))
	if err != nil {
		return section{}, err
	}
	if version == "" {
		version = unreleased
	}
	var found section
	lines := strings.SplitAfter(string(data), "\n")
	isTitle := func(line string) bool { return strings.HasPrefix(line, "## ") }
	at := slices.IndexFunc(lines, func(line string) bool {
		title, is := strings.CutPrefix(strings.TrimSpace(line), "## ")
		name, date, _ := strings.Cut(title, ", ")
		found.date = date
		return is && name == version
	})
	if at < 0 {
		return section{}, fmt.Errorf("%s has no section %s", changelogFile, version)
	}
	end := len(lines)
	if next := slices.IndexFunc(lines[at+1:], isTitle); next >= 0 {
		end = at + 1 + next
	}
	found.before, found.after = strings.Join(lines[:at], ""), strings.Join(lines[end:], "")
	found.notes = strings.TrimSpace(strings.Join(lines[at+1:end], ""))
	if found.notes == "" {
		return section{}, fmt.Errorf("the section %s of %s is empty", version, changelogFile)
	}
	return found, nil
}

// dated returns the changelog after a release: its section has a date, and that of the next one is empty.
func (s section) dated(version, date string) string {
	text := fmt.Sprintf("%s## %s\n\n## %s, %s\n\n%s\n", s.before, unreleased, version, date, s.notes)
	if s.after != "" {
		text += "\n" + s.after
	}
	return text
}

// cut makes the commit and the tag of a release.
func cut(root, version, date string) error {
	if err := follows(root, version); err != nil {
		return err
	}
	if changed, err := output(root, "", "git", "status", "--porcelain"); err != nil {
		return err
	} else if changed != "" {
		return fmt.Errorf("commit these changes first:\n%s", changed)
	}
	s, err := sectionOf(root, "")
	if err != nil {
		return err
	}
	for name, text := range map[string]string{changelogFile: s.dated(version, date), versionFile: version + "\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	subject := "release: version " + version
	if _, err := output(root, "", "git", "commit", "--all", "--quiet", "--message", subject); err != nil {
		return err
	}
	// Lines that begin with # are headings of the notes, not comments.
	_, err = output(root, "Slipway "+version+"\n\n"+s.notes+"\n", "git", "tag", "--annotate", "--cleanup=verbatim",
		"--file=-", "v"+version)
	return err
}

// follows fails unless a version may be the next one: it is newer than all that have a tag, and not older than that in
// the directory.
func follows(root, version string) error {
	if !updates.IsVersion(version) {
		return fmt.Errorf("%q is no version as of semver.org, such as 1.2.0 or 1.2.0-rc.1", version)
	}
	tags, err := output(root, "", "git", "tag", "--list", "v*")
	if err != nil {
		return err
	}
	for tag := range strings.FieldsSeq(tags) {
		if released := strings.TrimPrefix(tag, "v"); updates.IsVersion(released) && !updates.Newer(version, released) {
			return fmt.Errorf("%s is not newer than %s, which is released", version, released)
		}
	}
	current, err := versionOf(root)
	if err == nil && updates.Newer(current, version) {
		err = fmt.Errorf("%s is older than %s in %s", version, current, versionFile)
	}
	return err
}
