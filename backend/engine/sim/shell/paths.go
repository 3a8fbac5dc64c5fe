package shell

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

func link(c *command) int {
	f, operands, err := c.parse("sfnv", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) != 2 {
		return c.usage("-s TARGET NAME")
	}
	if !f.has("s") {
		return c.fail("only symbolic links are possible here, with -s")
	}
	name := c.into(operands[0], c.path(operands[1]))
	if f.has("f") {
		if info, err := c.world.FS.Lstat(name); err == nil && !info.IsDir() {
			if err := c.world.FS.Remove(name); err != nil {
				return c.fail("cannot remove '%s': %s", operands[1], errText(err))
			}
		}
	}
	if err := c.world.FS.Symlink(operands[0], name); err != nil {
		return c.fail("failed to create symbolic link '%s': %s", operands[1], errText(err))
	}
	return 0
}

func readLink(c *command) int {
	if len(c.args) != 1 {
		return c.usage("NAME")
	}
	text, err := c.world.FS.Readlink(c.path(c.args[0]))
	if err != nil {
		return 1
	}
	c.printf("%s\n", text)
	return 0
}

func changeMode(c *command) int {
	if len(c.args) < 2 {
		return c.usage("MODE FILE…")
	}
	if _, err := applyMode(0, c.args[0]); err != nil {
		return c.fail("invalid mode: '%s'", c.args[0])
	}
	return c.apply(c.args[1:], "change mode of", func(p string) error {
		info, err := c.world.FS.Stat(p)
		if err != nil {
			return err
		}
		mode, err := applyMode(info.Mode().Perm(), c.args[0])
		if err != nil {
			return err
		}
		return c.world.FS.Chmod(p, mode)
	})
}

// applyMode changes mode by an octal number or by terms such as u+x.
func applyMode(mode fs.FileMode, text string) (fs.FileMode, error) {
	if n, err := strconv.ParseUint(text, 8, 12); err == nil {
		return fs.FileMode(n).Perm(), nil
	}
	for term := range strings.SplitSeq(text, ",") {
		at := strings.IndexAny(term, "+-=")
		if at < 0 {
			return 0, fmt.Errorf("%q is not a mode", text)
		}
		who := fs.FileMode(0)
		for _, r := range term[:at] {
			mask, ok := map[rune]fs.FileMode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[r]
			if !ok {
				return 0, fmt.Errorf("%q is not a mode", text)
			}
			who |= mask
		}
		if at == 0 {
			who = 0o777
		}
		bits := fs.FileMode(0)
		for _, r := range term[at+1:] {
			mask, ok := map[rune]fs.FileMode{'r': 0o444, 'w': 0o222, 'x': 0o111}[r]
			if !ok {
				return 0, fmt.Errorf("%q is not a mode", text)
			}
			bits |= mask
		}
		switch term[at] {
		case '+':
			mode |= who & bits
		case '-':
			mode &^= who & bits
		default:
			mode = mode&^who | who&bits
		}
	}
	return mode, nil
}

// walk visits p and everything below it in order. fn returns false to leave a
// directory's contents out.
func (c *command) walk(p string, fn func(p string, info fs.FileInfo) bool) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	info, err := c.world.FS.Lstat(p)
	if err != nil {
		return err
	}
	if !fn(p, info) || !info.IsDir() {
		return nil
	}
	entries, err := c.world.FS.ReadDir(p)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.walk(path.Join(p, entry.Name()), fn); err != nil {
			return err
		}
	}
	return nil
}

func find(c *command) int {
	args := c.args
	var starts []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		starts, args = append(starts, args[0]), args[1:]
	}
	if len(starts) == 0 {
		starts = []string{"."}
	}
	name, kind, depth := "*", "", 1<<30
	for ; len(args) > 0; args = args[1:] {
		if args[0] == "-print" {
			continue
		}
		if len(args) < 2 {
			return c.fail("missing argument to '%s'", args[0])
		}
		switch args[0] {
		case "-name":
			name = args[1]
		case "-type":
			kind = args[1]
		case "-maxdepth":
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return c.fail("invalid argument '%s' to '-maxdepth'", args[1])
			}
			depth = n
		default:
			return c.fail("unknown predicate '%s'", args[0])
		}
		args = args[1:]
	}
	code := 0
	for _, start := range starts {
		root := c.path(start)
		err := c.walk(root, func(p string, info fs.FileInfo) bool {
			below := strings.TrimPrefix(strings.TrimPrefix(p, root), "/")
			level := 0
			shown := start
			if below != "" {
				level = strings.Count(below, "/") + 1
				shown = strings.TrimSuffix(start, "/") + "/" + below
			}
			matched, err := path.Match(name, path.Base(p))
			if err == nil && matched && level <= depth &&
				(kind == "" || strings.HasPrefix(strings.Replace(modeText(info.Mode()), "-", "f", 1), kind)) {
				c.printf("%s\n", shown)
			}
			return level < depth
		})
		if err != nil {
			code = c.fail("'%s': %s", start, errText(err))
		}
	}
	return code
}

func diskUsage(c *command) int {
	f, operands, err := c.parse("shacb", map[string]byte{"summarize": 's', "human-readable": 'h'})
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	show := func(size int64, name string) {
		if f.has("h") {
			c.printf("%s\t%s\n", human(size), name)
			return
		}
		c.printf("%d\t%s\n", size/1024, name)
	}
	code := 0
	for _, operand := range operands {
		if _, err := c.measure(c.path(operand), operand, f.has("s"), show); err != nil {
			code = c.fail("cannot access '%s': %s", operand, errText(err))
		}
	}
	return code
}

// measure adds up the space that a tree takes and shows each directory of it.
func (c *command) measure(p, shown string, summary bool, show func(int64, string)) (int64, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	info, err := c.world.FS.Lstat(p)
	if err != nil {
		return 0, err
	}
	total := (info.Size() + 4095) / 4096 * 4096
	if info.IsDir() {
		total = 4096
		entries, err := c.world.FS.ReadDir(p)
		if err != nil {
			return 0, err
		}
		for _, entry := range entries {
			quiet := show
			if summary || !entry.IsDir() {
				quiet = func(int64, string) {}
			}
			size, err := c.measure(path.Join(p, entry.Name()), strings.TrimSuffix(shown, "/")+"/"+entry.Name(), summary,
				quiet)
			if err != nil {
				return 0, err
			}
			total += size
		}
	}
	show(total, shown)
	return total, nil
}

func status(c *command) int {
	return c.apply(c.args, "stat", func(p string) error {
		info, err := c.world.FS.Lstat(p)
		if err != nil {
			return err
		}
		kind := "regular file"
		switch {
		case info.IsDir():
			kind = "directory"
		case info.Mode()&fs.ModeSymlink != 0:
			kind = "symbolic link"
		}
		c.printf("  File: %s\n  Size: %d\t%s\nAccess: (%04o/%s)\nModify: %s\n", p, info.Size(), kind,
			info.Mode().Perm(), modeText(info.Mode()),
			info.ModTime().UTC().Format("2006-01-02 15:04:05.000000000 -0700"))
		return nil
	})
}

func baseUtility(c *command) int {
	if len(c.args) == 0 {
		return c.fail("missing operand")
	}
	name := path.Base(c.args[0])
	if len(c.args) > 1 && name != c.args[1] {
		name = strings.TrimSuffix(name, c.args[1])
	}
	c.printf("%s\n", name)
	return 0
}

func dirUtility(c *command) int {
	if len(c.args) == 0 {
		return c.fail("missing operand")
	}
	for _, arg := range c.args {
		c.printf("%s\n", path.Dir(strings.TrimSuffix(arg, "/")))
	}
	return 0
}

func realPath(c *command) int {
	return c.apply(c.args, "resolve", func(p string) error {
		if _, err := c.world.FS.Stat(p); err != nil {
			return err
		}
		c.printf("%s\n", p)
		return nil
	})
}

func makeTemporary(c *command) int {
	f, _, err := c.parse("d", nil)
	if err != nil {
		return c.complain(err)
	}
	p := "/tmp/tmp." + rand.Text()[:10]
	if f.has("d") {
		err = c.world.FS.Mkdir(p)
	} else {
		file, openErr := c.world.FS.Open(p, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err = openErr; err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return c.fail("failed to create: %s", errText(err))
	}
	c.printf("%s\n", p)
	return 0
}
