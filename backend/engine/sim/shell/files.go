package shell

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// utilities returns the programs of a session by name.
func utilities() map[string]utility {
	return map[string]utility{
		"ls": list, "cat": concatenate, "less": concatenate, "mkdir": makeDirectory, "rm": removeFiles, "cp": copyFiles,
		"mv": moveFiles, "touch": touch, "head": head, "tail": tail, "wc": count, "grep": grep, "seq": sequence,
		"ps": processes, "top": top, "nvidia-smi": nvidia, "free": free, "df": diskFree, "nproc": countCPUs,
		"env": environment, "date": date, "whoami": who, "hostname": hostName, "sleep": sleep, "clear": clearScreen,
		"sh": shellUtility, "bash": shellUtility, "train": train, "stress": stress, "httpd": serveFiles,
		builtinPrefix + "which": which, builtinPrefix + "help": help, builtinPrefix + "history": showHistory,
		builtinPrefix + "kill": kill,
	}
}

func (c *command) complain(err error) int { c.fail("%v", err); return 2 }

func list(c *command) int {
	f, operands, err := c.parse("la1hdtr", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	code := 0
	var files []listed
	var dirs []string
	look := c.world.FS.Stat
	if f.has("l") {
		look = c.world.FS.Lstat
	}
	for _, operand := range operands {
		info, err := look(c.path(operand))
		switch {
		case err != nil:
			c.fail("cannot access '%s': %s", operand, errText(err))
			code = 2
		case info.IsDir() && !f.has("d"):
			dirs = append(dirs, operand)
		default:
			files = append(files, listed{operand, info, c.path(operand)})
		}
	}
	c.show(f, files)
	for i, dir := range dirs {
		if len(dirs)+len(files) > 1 {
			if i > 0 || len(files) > 0 {
				c.printf("\n")
			}
			c.printf("%s:\n", dir)
		}
		code = max(code, c.listDirectory(f, dir))
	}
	return code
}

type listed struct {
	name string
	info fs.FileInfo
	path string
}

func (c *command) listDirectory(f flags, dir string) int {
	entries, err := c.world.FS.ReadDir(c.path(dir))
	if err != nil {
		c.fail("cannot open directory '%s': %s", dir, errText(err))
		return 2
	}
	var files []listed
	add := func(name string, info fs.FileInfo, err error) {
		if err == nil && (f.has("a") || !strings.HasPrefix(name, ".")) { // else it has gone meanwhile
			files = append(files, listed{name, info, path.Join(c.path(dir), name)})
		}
	}
	for _, dot := range []string{".", ".."} {
		info, err := c.world.FS.Stat(path.Join(c.path(dir), dot))
		add(dot, info, err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		add(entry.Name(), info, err)
	}
	if f.has("l") {
		blocks := int64(0)
		for _, file := range files {
			blocks += (file.info.Size() + 4095) / 4096 * 4
		}
		c.printf("total %d\n", blocks)
	}
	c.show(f, files)
	return 0
}

func (c *command) show(f flags, files []listed) {
	sort.SliceStable(files, func(i, j int) bool {
		a, b := files[i], files[j]
		if f.has("r") {
			a, b = b, a
		}
		if f.has("t") && !a.info.ModTime().Equal(b.info.ModTime()) {
			return a.info.ModTime().After(b.info.ModTime())
		}
		return a.name < b.name
	})
	if f.has("l") {
		c.showLong(f, files)
		return
	}
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file.name
	}
	if !c.tty || f.has("1") {
		for _, file := range files {
			c.printf("%s\n", c.coloured(file))
		}
		return
	}
	c.columns(names, func(i int) string { return c.coloured(files[i]) })
}

// coloured marks directories, links and programs on a terminal.
func (c *command) coloured(file listed) string {
	name := file.name
	switch mode := file.info.Mode(); {
	case !c.tty:
	case mode.IsDir():
		return "\x1b[1;34m" + name + "\x1b[0m"
	case mode&fs.ModeSymlink != 0:
		return "\x1b[1;36m" + name + "\x1b[0m"
	case mode&0o111 != 0:
		return "\x1b[1;32m" + name + "\x1b[0m"
	}
	return name
}

// columns writes names in as few rows as the terminal's width allows, each as
// text has it.
func (c *command) columns(names []string, text func(int) string) {
	total := max(20, c.shell.config.Cols())
	for rows := 1; rows <= len(names); rows++ {
		var widths []int
		sum := -2
		for column := range slices.Chunk(names, rows) {
			most := 0
			for _, name := range column {
				most = max(most, cells.StringWidth(name))
			}
			widths = append(widths, most)
			sum += most + 2
		}
		if sum > total && rows < len(names) {
			continue
		}
		for row := range rows {
			for i := row; i < len(names); i += rows {
				c.printf("%s", text(i))
				if i+rows < len(names) {
					c.printf("%*s", widths[i/rows]-cells.StringWidth(names[i])+2, "")
				}
			}
			c.printf("\n")
		}
		return
	}
}

func (c *command) showLong(f flags, files []listed) {
	sizes := make([]string, len(files))
	most := 0
	for i, file := range files {
		sizes[i] = strconv.FormatInt(file.info.Size(), 10)
		if f.has("h") {
			sizes[i] = human(file.info.Size())
		}
		most = max(most, len(sizes[i]))
	}
	for i, file := range files {
		at := file.info.ModTime().UTC()
		stamp := at.Format("Jan _2 15:04")
		if time.Since(at) > 180*24*time.Hour {
			stamp = at.Format("Jan _2  2006")
		}
		name := c.coloured(file)
		if file.info.Mode()&fs.ModeSymlink != 0 {
			if target, err := c.world.FS.Readlink(file.path); err == nil {
				name += " -> " + target
			}
		}
		links := 1
		if file.info.IsDir() {
			links = 2
		}
		owner := c.world.FS.owner(file.path, c.world.User)
		c.printf("%s %d %-*s %-*s %*s %s %s\n", modeText(file.info.Mode()), links, len(c.world.User), owner,
			len(c.world.User), owner, most, sizes[i], stamp, name)
	}
}

func modeText(mode fs.FileMode) string {
	kind := "-"
	switch {
	case mode.IsDir():
		kind = "d"
	case mode&fs.ModeSymlink != 0:
		kind = "l"
	}
	return kind + mode.Perm().String()[1:]
}

// human writes a size as ls -h does.
func human(size int64) string {
	if size < 1024 {
		return strconv.FormatInt(size, 10)
	}
	value := float64(size)
	for _, unit := range []string{"K", "M", "G", "T"} {
		value /= 1024
		if value < 9.95 {
			return fmt.Sprintf("%.1f%s", value, unit)
		}
		if value < 1023.5 || unit == "T" {
			return fmt.Sprintf("%.0f%s", value, unit)
		}
	}
	return ""
}

// apply does something to each operand and complains of what fails.
func (c *command) apply(operands []string, what string, do func(p string) error) int {
	if len(operands) == 0 {
		return c.fail("missing operand")
	}
	code := 0
	for _, operand := range operands {
		if err := do(c.path(operand)); err != nil {
			code = c.fail("cannot %s '%s': %s", what, operand, errText(err))
		}
	}
	return code
}

func makeDirectory(c *command) int {
	f, operands, err := c.parse("p", nil)
	if err != nil {
		return c.complain(err)
	}
	if f.has("p") {
		return c.apply(operands, "create directory", c.world.FS.MkdirAll)
	}
	return c.apply(operands, "create directory", c.world.FS.Mkdir)
}

func removeFiles(c *command) int {
	f, operands, err := c.parse("rRf", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 && f.has("f") {
		return 0
	}
	return c.apply(operands, "remove", func(p string) error {
		info, err := c.world.FS.Lstat(p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.has("f"):
			return nil
		case err != nil:
			return err
		case info.IsDir() && !f.has("rR"):
			return syscall.EISDIR
		case info.IsDir():
			return c.world.FS.RemoveAll(p)
		}
		return c.world.FS.Remove(p)
	})
}

// into returns where source lands when it is copied or moved to target.
func (c *command) into(source, target string) string {
	if info, err := c.world.FS.Stat(target); err == nil && info.IsDir() {
		return path.Join(target, path.Base(source))
	}
	return target
}

func (c *command) transfer(spec string, do func(f flags, from, to string) error) int {
	f, operands, err := c.parse(spec, nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) < 2 {
		return c.fail("missing file operand")
	}
	target := c.path(operands[len(operands)-1])
	sources := operands[:len(operands)-1]
	if info, err := c.world.FS.Stat(target); len(sources) > 1 && (err != nil || !info.IsDir()) {
		return c.fail("target '%s' is not a directory", operands[len(operands)-1])
	}
	code := 0
	for _, source := range sources {
		from := c.path(source)
		to := c.into(from, target)
		if from == to {
			code = c.fail("'%s' and '%s' are the same file", source, operands[len(operands)-1])
			continue
		}
		if strings.HasPrefix(to, from+"/") {
			code = c.fail("cannot put '%s' into itself", source)
			continue
		}
		if err := do(f, from, to); err != nil {
			code = c.fail("cannot %s '%s': %s", map[string]string{"cp": "copy", "mv": "move"}[c.name], source,
				errText(err))
		}
	}
	return code
}

func copyFiles(c *command) int {
	return c.transfer("rRa", func(f flags, from, to string) error { return c.copyTree(from, to, f.has("rRa")) })
}

func (c *command) copyTree(from, to string, recursive bool) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	info, err := c.world.FS.Stat(from)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.copyFile(from, to, info.Mode().Perm())
	}
	if !recursive {
		return errors.New("-r not specified; omitting directory")
	}
	if err := c.world.FS.MkdirAll(to); err != nil {
		return err
	}
	entries, err := c.world.FS.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.copyTree(path.Join(from, entry.Name()), path.Join(to, entry.Name()), true); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) copyFile(from, to string, mode fs.FileMode) error {
	in, err := c.world.FS.Open(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	out, err := c.world.FS.Open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, cancellable{ctx: c.ctx, r: in})
	return errors.Join(err, out.Close())
}

func moveFiles(c *command) int {
	return c.transfer("f", func(_ flags, from, to string) error {
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

func touch(c *command) int {
	return c.apply(c.args, "touch", func(p string) error {
		if _, err := c.world.FS.Stat(p); err == nil {
			return c.world.FS.Chtimes(p, time.Now())
		}
		file, err := c.world.FS.Open(p, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		return file.Close()
	})
}
