package guest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"slipway/backend/session"
)

const (
	maxUserFile = 1 << 20 // bytes of a user file or a start file
	maxSkeleton = 100     // start files
)

// createUser adds the work user to the image's user files, which may be missing. It comes first, so that its number
// resolves to it even if the image has another user with that number. An administrator is the image's root.
func (c *container) createUser() error {
	etc, err := c.held.tree.image("/etc", true)
	if err != nil {
		return err
	}
	defer etc.close()
	passwd := fmt.Sprintf("%s:x:%d:%d:Slipway:%s:%s", User, c.uid, c.gid, homePath, cmp.Or(c.shell.path, "/bin/sh"))
	group := fmt.Sprintf("%s:x:%d:", User, c.gid)
	return errors.Join(
		editFile(etc, "passwd", 0o644, func(lines []string) []string {
			lines = withoutName(lines, User)
			if !c.admin {
				lines = append([]string{passwd}, lines...)
			}
			return ensureID(lines, 0, "root:x:0:0:root:/root:/bin/sh")
		}),
		editFile(etc, "group", 0o644, func(lines []string) []string {
			lines = withoutName(lines, User)
			lines = ensureID(lines, c.gid, group)
			return ensureID(lines, 0, "root:x:0:")
		}),
		// A password that nothing matches, if the image has such a file.
		editFile(etc, "shadow", 0, func(lines []string) []string {
			if c.admin {
				return withoutName(lines, User)
			}
			return append(withoutName(lines, User), User+":*:19000:0:99999:7:::")
		}),
	)
}

func withoutName(lines []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, name+":") })
}

// ensureID appends entry unless the third field of a line is id.
func ensureID(lines []string, id int, entry string) []string {
	for _, line := range lines {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == strconv.Itoa(id) {
			return lines
		}
	}
	return append(lines, entry)
}

// editFile atomically replaces a file of lines. It creates a missing file with mode, unless that is 0.
func editFile(dir *place, name string, mode fs.FileMode, edit func([]string) []string) error {
	old, oldMode, err := dir.read(name, maxUserFile)
	switch {
	case err == nil:
		mode = oldMode
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case mode == 0:
		return nil
	}
	lines := strings.FieldsFunc(string(old), func(r rune) bool { return r == '\n' })
	content := []byte(strings.Join(edit(lines), "\n") + "\n")
	if bytes.Equal(content, old) {
		return nil
	}
	return dir.replace(name, content, mode)
}

// prepareHome makes a new home and its content the work user's, except for mounts in it. A home that is the work user's
// is a folder, or was prepared before.
func (c *container) prepareHome() error {
	home := c.held.home
	switch {
	case int(home.stat.Uid) != c.uid || c.uid == 0:
		return errors.Join(home.give(c.uid, c.gid), c.copySkeleton(), c.addAuthor())
	case home.bare():
		return errors.Join(c.copySkeleton(), c.addAuthor())
	}
	return nil
}

// addAuthor gives a new home a configuration of git with the person's name and address, unless the image has one. What
// is configured for the image, in the person's other file or in a repository wins.
func (c *container) addAuthor() error {
	if c.author == (session.GitAuthor{}) {
		return nil
	}
	return c.addStartFile(".gitconfig", gitConfig(c.author))
}

func gitConfig(author session.GitAuthor) []byte {
	text := "# Slipway has written this from the git of your computer.\n[user]\n"
	for _, one := range [][2]string{{"name", author.Name}, {"email", author.Email}} {
		if one[1] != "" {
			value := strings.ReplaceAll(strings.ReplaceAll(one[1], `\`, `\\`), `"`, `\"`)
			text += "\t" + one[0] + " = \"" + strings.ReplaceAll(value, "\n", `\n`) + "\"\n"
		}
	}
	return []byte(text + "[include]\n\tpath = /etc/gitconfig\n\tpath = ~/.config/git/config\n")
}

// copySkeleton copies the image's start files, if it has any, to a new home, as useradd does, but only plain files.
func (c *container) copySkeleton() error {
	skel, err := c.held.tree.image("/etc/skel", false)
	if err != nil || skel.stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	defer skel.close()
	names, err := skel.names(maxSkeleton)
	if err != nil {
		return nil
	}
	for _, name := range names {
		data, _, err := skel.read(name, maxUserFile)
		if err != nil {
			continue
		}
		if err := c.addStartFile(name, data); err != nil {
			return err
		}
	}
	return nil
}

// addStartFile adds a file to the home, unless there is one of that name.
func (c *container) addStartFile(name string, content []byte) error {
	err := c.held.home.add(name, content, 0o644, c.uid, c.gid)
	switch {
	case err == nil:
		c.held.home.markStartFile(name)
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return err
}
