package shell

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxLine is the longest line that text utilities take, in bytes.
const maxLine = 16 << 20

// followEvery is how often tail -f looks at its file.
const followEvery = 200 * time.Millisecond

// lines calls fn with every line of r, without its end.
func lines(r io.Reader, fn func(line string) error) error {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxLine)
	for scanner.Scan() {
		if err := fn(scanner.Text()); err != nil {
			return err
		}
	}
	return scanner.Err()
}

// println writes a line and stops the loop when nobody reads any more.
func (c *command) println(line string) error {
	if _, err := io.WriteString(c.out, line+"\n"); err != nil {
		return errStop
	}
	return nil
}

func concatenate(c *command) int {
	_, operands, err := c.parse("", nil)
	if err != nil {
		return c.complain(err)
	}
	return c.each(operands, func(_ string, r io.Reader) error {
		_, err := io.Copy(c.out, r)
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
			return errStop
		}
		return err
	})
}

// legacyCount turns head -5 into head -n 5.
func (c *command) legacyCount() {
	if len(c.args) > 0 && len(c.args[0]) > 1 && c.args[0][0] == '-' {
		if _, err := strconv.Atoi(c.args[0][1:]); err == nil {
			c.args = append([]string{"-n", c.args[0][1:]}, c.args[1:]...)
		}
	}
}

func head(c *command) int {
	c.legacyCount()
	f, operands, err := c.parse("n:c:", nil)
	if err != nil {
		return c.complain(err)
	}
	n, err := f.number('n', 10)
	size, errSize := f.number('c', 0)
	if err != nil || errSize != nil {
		return c.fail("invalid number")
	}
	return c.each(operands, func(_ string, r io.Reader) error {
		if f.has("c") {
			_, err := io.Copy(c.out, io.LimitReader(r, int64(size)))
			return err
		}
		left := n
		err := lines(r, func(line string) error {
			if left--; left < 0 {
				return errEnough
			}
			return c.println(line)
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	})
}

// errEnough ends reading a file whose rest does not matter.
var errEnough = errors.New("enough lines")

func tail(c *command) int {
	c.legacyCount()
	f, operands, err := c.parse("n:fF", nil)
	if err != nil {
		return c.complain(err)
	}
	n, err := f.number('n', 10)
	if err != nil {
		return c.fail("invalid number of lines: '%s'", f['n'])
	}
	code := c.each(operands, func(_ string, r io.Reader) error {
		var kept []string
		err := lines(r, func(line string) error {
			if kept = append(kept, line); len(kept) > max(n, 0) {
				kept = kept[1:]
			}
			return nil
		})
		for _, line := range kept {
			if err := c.println(line); err != nil {
				return err
			}
		}
		return err
	})
	if f.has("fF") && len(operands) == 1 && code == 0 {
		return c.follow(c.path(operands[0]))
	}
	return code
}

// follow writes what is added to a file until the command is interrupted.
func (c *command) follow(p string) int {
	info, err := c.world.FS.Stat(p)
	if err != nil {
		return c.fail("%s", errText(err))
	}
	offset := info.Size()
	for c.pause(followEvery) {
		file, err := c.world.FS.Open(p, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if seeker, ok := file.(io.ReadSeeker); ok {
			if _, err := seeker.Seek(offset, io.SeekStart); err == nil {
				n, _ := io.Copy(c.out, seeker) // what cannot be read now is read the next time
				offset += n
			}
		}
		file.Close() //nolint:errcheck // it was only read
	}
	return 130
}

func count(c *command) int {
	f, operands, err := c.parse("lwc", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(f) == 0 {
		f = flags{'l': "", 'w': "", 'c': ""}
	}
	show := func(counts [3]int, name string) {
		var cells []string
		for i, letter := range []string{"l", "w", "c"} {
			if f.has(letter) {
				cells = append(cells, strconv.Itoa(counts[i]))
			}
		}
		if name != "-" {
			cells = append(cells, name)
		}
		c.printf("%s\n", strings.Join(cells, " "))
	}
	var sum [3]int
	code := c.each(operands, func(name string, r io.Reader) error {
		data, err := slurp(r)
		if err != nil {
			return err
		}
		counts := [3]int{bytes.Count(data, []byte("\n")), len(bytes.Fields(data)), len(data)}
		for i, n := range counts {
			sum[i] += n
		}
		show(counts, name)
		return nil
	})
	if len(operands) > 1 {
		show(sum, "total")
	}
	return code
}

// grep takes Go's regular expressions, which are those of grep -E.
func grep(c *command) int {
	f, operands, err := c.parse("ivncE", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 {
		return c.usage("[-ivnc] PATTERN [FILE]…")
	}
	pattern := operands[0]
	operands = operands[1:]
	if f.has("i") {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		c.fail("invalid pattern: %s", pattern)
		return 2
	}
	prefix, found := "", false
	code := c.each(operands, func(name string, r io.Reader) error {
		if len(operands) > 1 {
			prefix = name + ":"
		}
		matches, number := 0, 0
		err := lines(r, func(line string) error {
			number++
			if expression.MatchString(line) == f.has("v") {
				return nil
			}
			matches++
			found = true
			switch {
			case f.has("c"):
				return nil
			case f.has("n"):
				return c.println(prefix + strconv.Itoa(number) + ":" + line)
			}
			return c.println(prefix + line)
		})
		if f.has("c") {
			c.printf("%s%d\n", prefix, matches)
		}
		return err
	})
	switch {
	case code != 0:
		return 2
	case !found:
		return 1
	}
	return 0
}

func sequence(c *command) int {
	bounds := []int{}
	for _, arg := range c.args {
		n, err := strconv.Atoi(arg)
		if err != nil {
			return c.fail("invalid number: '%s'", arg)
		}
		bounds = append(bounds, n)
	}
	first, step := 1, 1
	switch len(bounds) {
	case 1:
	case 2:
		first = bounds[0]
	case 3:
		first, step = bounds[0], bounds[1]
	default:
		return c.usage("[FIRST [INCREMENT]] LAST")
	}
	if step == 0 {
		return c.fail("invalid zero increment")
	}
	last := bounds[len(bounds)-1]
	out := bufio.NewWriterSize(c.out, 16<<10)
	for n := first; (step > 0 && n <= last || step < 0 && n >= last) && c.ctx.Err() == nil; n += step {
		if _, err := fmt.Fprintln(out, n); err != nil {
			break
		}
	}
	out.Flush() //nolint:errcheck // a closed pipe is no failure of seq
	return 0
}
