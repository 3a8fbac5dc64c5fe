package shell

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type listed struct {
	fs.FileInfo
	name string
	path string
}

func list(c *command) int {
	if len(c.operands) == 0 {
		c.operands = []string{"."}
	}
	code := 0
	var files []listed
	var dirs []string
	for _, operand := range c.operands {
		info, err := c.world.FS.Stat(c.path(operand))
		switch {
		case err != nil:
			c.fail("cannot access '%s': %s", operand, errText(err))
			code = 2
		case info.IsDir() && !c.has("d"):
			dirs = append(dirs, operand)
		default:
			files = append(files, listed{info, operand, c.path(operand)})
		}
	}
	c.show(files)
	for _, dir := range dirs {
		if len(c.operands) > 1 {
			c.printf("%s:\n", dir)
		}
		inside, err := c.inside(c.path(dir))
		if err != nil {
			c.fail("cannot open directory '%s': %s", dir, errText(err))
			code = 2
		}
		c.show(inside)
	}
	return code
}

func (c *command) inside(dir string) ([]listed, error) {
	entries, err := c.world.FS.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := []string{".", ".."}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	var files []listed
	for _, name := range names {
		p := path.Join(dir, name)
		info, err := c.world.FS.Lstat(p)
		if err == nil && (c.has("a") || !strings.HasPrefix(name, ".")) { // else it has gone meanwhile
			files = append(files, listed{info, name, p})
		}
	}
	return files, nil
}

func (c *command) show(files []listed) {
	slices.SortFunc(files, func(a, b listed) int {
		order := strings.Compare(a.name, b.name)
		if c.has("t") {
			order = cmp.Or(b.ModTime().Compare(a.ModTime()), order)
		}
		if c.has("r") {
			return -order
		}
		return order
	})
	separator := "\n"
	if c.tty && !c.has("1") && !c.has("l") {
		separator = "  "
	}
	var names []string
	for _, file := range files {
		if c.has("l") {
			names = append(names, c.long(file))
		} else {
			names = append(names, file.name)
		}
	}
	if len(names) > 0 {
		c.printf("%s\n", strings.Join(names, separator))
	}
}

func (c *command) long(file listed) string {
	size, name, stamp := strconv.FormatInt(file.Size(), 10), file.name, "Jan _2 15:04"
	if c.has("h") {
		size = human(file.Size())
	}
	if time.Since(file.ModTime()) > 180*24*time.Hour {
		stamp = "Jan _2  2006"
	}
	if target, err := c.world.FS.Readlink(file.path); err == nil {
		name += " -> " + target
	}
	kind := map[fs.FileMode]string{fs.ModeDir: "d", fs.ModeSymlink: "l"}[file.Mode().Type()]
	owner := c.world.FS.owner(file.path, c.world.User)
	return fmt.Sprintf("%s%s %-4s %-4s %9s %s %s", cmp.Or(kind, "-"), file.Mode().Perm().String()[1:], owner, owner,
		size, file.ModTime().UTC().Format(stamp), name)
}

// human formats a size like ls -h.
func human(size int64) string {
	value, unit := float64(size), 0
	for ; value >= 1023.5 && unit < 4; unit++ {
		value /= 1024
	}
	if unit > 0 && value < 9.95 {
		return fmt.Sprintf("%.1f%c", value, " KMGT"[unit])
	}
	return strings.TrimSpace(fmt.Sprintf("%.0f%c", value, " KMGT"[unit]))
}

// apply calls do for each operand and reports errors.
func (c *command) apply(what string, do func(p string) error) int {
	if len(c.operands) == 0 && !c.has("f") {
		return c.fail("missing operand")
	}
	code := 0
	for _, operand := range c.operands {
		if err := do(c.path(operand)); err != nil {
			code = c.fail("cannot %s '%s': %s", what, operand, errText(err))
		}
	}
	return code
}

func makeDirectory(c *command) int {
	if c.has("p") {
		return c.apply("create directory", c.world.FS.MkdirAll)
	}
	return c.apply("create directory", c.world.FS.Mkdir)
}

func removeFiles(c *command) int {
	return c.apply("remove", func(p string) error {
		info, err := c.world.FS.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && c.has("f"):
			return nil
		case err != nil:
			return err
		case info.IsDir() && !c.has("r"):
			return syscall.EISDIR
		}
		return c.world.FS.RemoveAll(p)
	})
}

func touch(c *command) int {
	return c.apply("touch", func(p string) error {
		file, err := c.world.FS.Open(p, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), c.world.FS.Chtimes(p, time.Now()))
	})
}

// transfer copies or moves operands to the last one.
func (c *command) transfer(what string, do func(from, to string) error) int {
	last := len(c.operands) - 1
	if last < 1 {
		return c.fail("missing file operand")
	}
	target := c.path(c.operands[last])
	info, err := c.world.FS.Stat(target)
	into := err == nil && info.IsDir()
	if last > 1 && !into {
		return c.fail("target '%s' is not a directory", c.operands[last])
	}
	c.operands = c.operands[:last]
	return c.apply(what, func(from string) error {
		to := target
		if into {
			to = path.Join(target, path.Base(from))
		}
		if strings.HasPrefix(to+"/", from+"/") {
			return errors.New("into itself")
		}
		return do(from, to)
	})
}

func copyFiles(c *command) int {
	return c.transfer("copy", func(from, to string) error { return c.copyTree(from, to, c.has("r") || c.has("a")) })
}

func moveFiles(c *command) int {
	return c.transfer("move", func(from, to string) error {
		err := c.world.FS.Rename(from, to)
		if !errors.Is(err, syscall.EXDEV) {
			return err
		}
		if err := c.copyTree(from, to, true); err != nil {
			return err
		}
		return c.world.FS.RemoveAll(from)
	})
}

func (c *command) copyTree(from, to string, recursive bool) error {
	info, err := c.world.FS.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		in, err := c.world.FS.Open(from, os.O_RDONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(c.create(to, info.Mode().Perm(), in), in.Close())
	}
	if !recursive {
		return errors.New("-r not specified; omitting directory")
	}
	entries, err := c.world.FS.ReadDir(from)
	if err == nil {
		err = c.world.FS.MkdirAll(to)
	}
	for _, entry := range entries {
		if err == nil {
			err = c.copyTree(path.Join(from, entry.Name()), path.Join(to, entry.Name()), true)
		}
	}
	return err
}
