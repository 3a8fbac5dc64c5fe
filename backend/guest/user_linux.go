package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// account is the work user of one container.
type account struct {
	uid, gid int
	shell    string
}

// create enters the account into the image's user files, which may be missing,
// below root ("" in a container). It comes first, so that its number means it
// even where the image has a user of that number.
func (a account) create(root string) error {
	etc := root + "/etc"
	if err := os.MkdirAll(etc, 0o755); err != nil {
		return err
	}
	shell := a.shell
	if shell == "" {
		shell = "/bin/sh"
	}
	passwd := fmt.Sprintf("%s:x:%d:%d:Slipway:%s:%s", User, a.uid, a.gid, homePath, shell)
	group := fmt.Sprintf("%s:x:%d:", User, a.gid)
	return errors.Join(
		editFile(etc+"/passwd", 0o644, func(lines []string) []string {
			lines = append([]string{passwd}, withoutName(lines, User)...)
			return ensureID(lines, 0, "root:x:0:0:root:/root:/bin/sh")
		}),
		editFile(etc+"/group", 0o644, func(lines []string) []string {
			lines = withoutName(lines, User)
			lines = ensureID(lines, a.gid, group)
			return ensureID(lines, 0, "root:x:0:")
		}),
		a.editShadow(etc+"/shadow"),
	)
}

// editShadow gives the account a password that nothing matches, where the
// image has such a file.
func (a account) editShadow(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return editFile(path, 0o640, func(lines []string) []string {
		return append(withoutName(lines, User), User+":*:19000:0:99999:7:::")
	})
}

func withoutName(lines []string, name string) []string {
	var kept []string
	for _, line := range lines {
		if !strings.HasPrefix(line, name+":") {
			kept = append(kept, line)
		}
	}
	return kept
}

// ensureID appends entry unless a line has that number in its third field.
func ensureID(lines []string, id int, entry string) []string {
	for _, line := range lines {
		if fields := strings.Split(line, ":"); len(fields) > 2 && fields[2] == strconv.Itoa(id) {
			return lines
		}
	}
	return append(lines, entry)
}

// editFile replaces a file of lines at once, or in place where it cannot be
// replaced, as when it is a mount of its own.
func editFile(path string, mode fs.FileMode, edit func([]string) []string) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var lines []string
	for line := range strings.SplitSeq(string(old), "\n") {
		if line != "" {
			lines = append(lines, line)
		}
	}
	content := []byte(strings.Join(edit(lines), "\n") + "\n")
	if bytes.Equal(content, old) {
		return nil
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := replaceFile(path, content, mode); err == nil {
		return nil
	}
	return os.WriteFile(path, content, mode)
}

func replaceFile(path string, content []byte, mode fs.FileMode) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".slipway-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // gone already when all went well
	_, err = file.Write(content)
	err = errors.Join(err, file.Chmod(mode), file.Close())
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// prepareHome makes the home the account's own below root. What the engine or
// the image put there as root, when it is new, becomes the account's too; what
// is mounted there is left alone.
func (a account) prepareHome(root string) error {
	home := root + homePath
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	var info unix.Stat_t
	if err := unix.Stat(home, &info); err != nil {
		return err
	}
	if int(info.Uid) == a.uid && a.uid != 0 {
		return nil // it was prepared before
	}
	mounts := mountPoints()
	err := filepath.WalkDir(home, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // an unreadable corner is no reason to stop
		}
		if path != home && mounts[path] {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return os.Lchown(path, a.uid, a.gid)
	})
	return errors.Join(err, a.copySkeleton(root+"/etc/skel", home))
}

// copySkeleton gives a new home the image's start files, as useradd does.
func (a account) copySkeleton(from, home string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil // an image need not have any
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		if err := a.copyNew(filepath.Join(from, entry.Name()), filepath.Join(home, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (a account) copyNew(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return nil
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Chown(a.uid, a.gid), file.Close())
}

// mountPoints returns the places where something is mounted. See proc(5): the
// fifth field of mountinfo, with spaces and the like in octal.
func mountPoints() map[string]bool {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	points := map[string]bool{}
	for line := range strings.SplitSeq(string(data), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 {
			points[unescapeOctal(fields[4])] = true
		}
	}
	return points
}

func unescapeOctal(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if code, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				out.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
