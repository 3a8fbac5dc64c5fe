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
)

const (
	maxUserFile = 1 << 20 // bytes of a user file or a start file
	maxSkeleton = 100     // start files
)

// account is the work user of one container.
type account struct {
	uid, gid int
	shell    string
}

// create adds the account to the image's user files, which may be missing. It comes first, so that its number resolves
// to it even if the image has another user with that number.
func (a account) create(t *tree) error {
	etc, err := t.image("/etc", true)
	if err != nil {
		return err
	}
	defer etc.close()
	passwd := fmt.Sprintf("%s:x:%d:%d:Slipway:%s:%s", User, a.uid, a.gid, homePath, cmp.Or(a.shell, "/bin/sh"))
	group := fmt.Sprintf("%s:x:%d:", User, a.gid)
	return errors.Join(
		editFile(etc, "passwd", 0o644, func(lines []string) []string {
			lines = append([]string{passwd}, withoutName(lines, User)...)
			return ensureID(lines, 0, "root:x:0:0:root:/root:/bin/sh")
		}),
		editFile(etc, "group", 0o644, func(lines []string) []string {
			lines = withoutName(lines, User)
			lines = ensureID(lines, a.gid, group)
			return ensureID(lines, 0, "root:x:0:")
		}),
		// A password that nothing matches, if the image has such a file.
		editFile(etc, "shadow", 0, func(lines []string) []string {
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

// prepareHome makes a new home and its content the account's, except for mounts in it.
func (a account) prepareHome(t *tree, home *place) error {
	if int(home.stat.Uid) == a.uid && a.uid != 0 {
		return nil // it was prepared before
	}
	return errors.Join(home.give(a.uid, a.gid), a.copySkeleton(t, home))
}

// copySkeleton copies the image's start files, if it has any, to a new home, as useradd does, but only plain files.
func (a account) copySkeleton(t *tree, home *place) error {
	skel, err := t.image("/etc/skel", false)
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
		if err := home.add(name, data, 0o644, a.uid, a.gid); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
