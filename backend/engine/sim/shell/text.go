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

func lines(r io.Reader) *bufio.Scanner {
	scanner := bufio.NewScanner(r)
	scanner.Buffer(make([]byte, 0, 64<<10), maxHeld)
	return scanner
}

func (c *command) println(line string) error { return c.copy(strings.NewReader(line + "\n")) }

// copy writes all of r. A closed output is errStop.
func (c *command) copy(r io.Reader) error {
	_, err := io.Copy(c.out, r)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe) {
		return errStop
	}
	return err
}

func concatenate(c *command) int {
	return c.each(c.operands, func(_ string, r io.Reader) error { return c.copy(r) })
}

func head(c *command) int {
	n, err := c.number("n", 10)
	size, errSize := c.number("c", 0)
	if err := errors.Join(err, errSize); err != nil {
		return c.fail("%v", err)
	}
	return c.each(c.operands, func(_ string, r io.Reader) error {
		if c.has("c") {
			return c.copy(io.LimitReader(r, int64(size)))
		}
		scanner := lines(r)
		for left := n; left > 0 && scanner.Scan(); left-- {
			if err := c.println(scanner.Text()); err != nil {
				return err
			}
		}
		return scanner.Err()
	})
}

func tail(c *command) int {
	n, err := c.number("n", 10)
	if err != nil {
		return c.fail("%v", err)
	}
	code := c.each(c.operands, func(_ string, r io.Reader) error {
		var kept []string
		scanner := lines(r)
		for scanner.Scan() {
			if kept = append(kept, scanner.Text()+"\n"); len(kept) > n {
				kept = kept[1:]
			}
		}
		return errors.Join(scanner.Err(), c.copy(strings.NewReader(strings.Join(kept, ""))))
	})
	if c.has("f") && len(c.operands) == 1 && code == 0 {
		return c.follow(c.path(c.operands[0]))
	}
	return code
}

// follow prints what is added to a file until the command is interrupted.
func (c *command) follow(p string) int {
	info, err := c.world.FS.Stat(p)
	if err != nil {
		return c.fail("%s", errText(err))
	}
	for offset := info.Size(); c.pause(200 * time.Millisecond); {
		opened, err := c.world.FS.Open(p, os.O_RDONLY, 0)
		if err != nil {
			continue
		}
		if file, ok := opened.(*os.File); ok {
			n, _ := io.Copy(c.out, io.NewSectionReader(file, offset, 1<<40)) // the rest is read next time
			offset += n
		}
		opened.Close() //nolint:errcheck // it was only read
	}
	return 130
}

func count(c *command) int {
	return c.each(c.operands, func(name string, r io.Reader) error {
		data, err := slurp(r)
		if err != nil {
			return err
		}
		var cells []string
		counts := []int{bytes.Count(data, []byte("\n")), len(bytes.Fields(data)), len(data)}
		for i, option := range []string{"l", "w", "c"} {
			if len(c.flags) == 0 || c.has(option) {
				cells = append(cells, strconv.Itoa(counts[i]))
			}
		}
		if name != "-" {
			cells = append(cells, name)
		}
		return c.println(strings.Join(cells, " "))
	})
}

// grep uses Go's regular expressions, which resemble those of grep -E.
func grep(c *command) int {
	if len(c.operands) == 0 {
		return c.usage("[-ivncE] PATTERN [FILE]…")
	}
	pattern := c.operands[0]
	if c.has("i") {
		pattern = "(?i)" + pattern
	}
	expression, err := regexp.Compile(pattern)
	if err != nil {
		c.fail("invalid pattern: %s", pattern)
		return 2
	}
	found := false
	code := c.each(c.operands[1:], func(name string, r io.Reader) error {
		prefix := ""
		if len(c.operands) > 2 {
			prefix = name + ":"
		}
		matches, scanner := 0, lines(r)
		for number := 1; scanner.Scan(); number++ {
			line := scanner.Text()
			if expression.MatchString(line) == c.has("v") {
				continue
			}
			matches++
			found = true
			if c.has("c") {
				continue
			}
			if c.has("n") {
				line = strconv.Itoa(number) + ":" + line
			}
			if err := c.println(prefix + line); err != nil {
				return err
			}
		}
		if c.has("c") {
			c.printf("%s%d\n", prefix, matches)
		}
		return scanner.Err()
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
	bounds := make([]int, len(c.operands))
	for i, operand := range c.operands {
		n, err := strconv.Atoi(operand)
		if err != nil {
			return c.fail("invalid number: '%s'", operand)
		}
		bounds[i] = n
	}
	first, step := 1, 1
	switch len(bounds) {
	case 1:
	case 2:
		first = bounds[0]
	case 3:
		first, step = bounds[0], bounds[1]
	}
	if len(bounds) < 1 || len(bounds) > 3 || step == 0 {
		return c.usage("[FIRST [INCREMENT]] LAST")
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
