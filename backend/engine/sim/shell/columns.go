package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// followEvery is how often tail -f looks at its file.
const followEvery = 200 * time.Millisecond

func cut(c *command) int {
	f, operands, err := c.parse("d:f:c:b:s", nil)
	if err != nil {
		return c.complain(err)
	}
	text, delimiter := f['f'], "\t"
	if f.has("d") {
		delimiter = f['d']
	}
	byChar := f.has("cb")
	if byChar {
		text = f['c'] + f['b']
	}
	ranges, err := parseRanges(text)
	if err != nil {
		return c.fail("%v", err)
	}
	return c.each(operands, func(_ string, r io.Reader) error {
		return lines(r, func(line string) error {
			if byChar {
				return c.println(strings.Join(pick(strings.Split(line, ""), ranges), ""))
			}
			if !strings.Contains(line, delimiter) {
				if f.has("s") {
					return nil
				}
				return c.println(line)
			}
			return c.println(strings.Join(pick(strings.Split(line, delimiter), ranges), delimiter))
		})
	})
}

// parseRanges reads a list such as 1,3-5,7-.
func parseRanges(text string) ([][2]int, error) {
	var ranges [][2]int
	for part := range strings.SplitSeq(text, ",") {
		from, to, ranged := strings.Cut(part, "-")
		r := [2]int{1, 1 << 30}
		var errFrom, errTo error
		if from != "" {
			r[0], errFrom = strconv.Atoi(from)
		}
		switch {
		case to != "":
			r[1], errTo = strconv.Atoi(to)
		case !ranged:
			r[1] = r[0]
		}
		if errFrom != nil || errTo != nil || r[0] < 1 || part == "" || part == "-" {
			return nil, errors.New("you must specify a list of bytes, characters, or fields")
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}

func pick(cells []string, ranges [][2]int) []string {
	var picked []string
	for i, cell := range cells {
		if slices.ContainsFunc(ranges, func(r [2]int) bool { return i+1 >= r[0] && i+1 <= r[1] }) {
			picked = append(picked, cell)
		}
	}
	return picked
}

func translate(c *command) int {
	f, operands, err := c.parse("ds", nil)
	if err != nil {
		return c.complain(err)
	}
	if len(operands) == 0 || len(operands) == 1 && !f.has("ds") {
		return c.usage("[-ds] SET1 [SET2]")
	}
	from := characterSet(operands[0])
	var to []rune
	if len(operands) > 1 {
		to = characterSet(operands[1])
	}
	data, err := slurp(c.stdin())
	if err != nil {
		return c.fail("%s", errText(err))
	}
	var b strings.Builder
	last := rune(-1)
	for _, char := range string(data) {
		at := slices.Index(from, char)
		switch {
		case at >= 0 && f.has("d"):
			continue
		case at >= 0 && len(to) > 0:
			char = to[min(at, len(to)-1)]
		}
		if f.has("s") && at >= 0 && char == last {
			continue
		}
		last = char
		b.WriteRune(char)
	}
	c.printf("%s", b.String())
	return 0
}

// characterSet expands a-z, classes and escapes.
func characterSet(text string) []rune {
	for class, chars := range map[string]string{"[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9",
		"[:space:]": " \t\n\r", "[:alpha:]": "A-Za-z", "[:alnum:]": "0-9A-Za-z"} {
		text = strings.ReplaceAll(text, class, chars)
	}
	text = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(text)
	runes := []rune(text)
	var set []rune
	for i := 0; i < len(runes); i++ {
		if i+2 < len(runes) && runes[i+1] == '-' && runes[i+2] >= runes[i] {
			for char := runes[i]; char <= runes[i+2]; char++ {
				set = append(set, char)
			}
			i += 2
			continue
		}
		set = append(set, runes[i])
	}
	return set
}

func tee(c *command) int {
	f, operands, err := c.parse("a", nil)
	if err != nil {
		return c.complain(err)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if f.has("a") {
		mode = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	code := 0
	writers := []io.Writer{c.out}
	for _, operand := range operands {
		file, err := c.world.FS.Open(c.path(operand), mode, 0o644)
		if err != nil {
			code = c.fail("%s: %s", operand, errText(err))
			continue
		}
		defer file.Close() //nolint:errcheck // writes were checked
		writers = append(writers, file)
	}
	if _, err := io.Copy(io.MultiWriter(writers...), c.stdin()); err != nil && c.ctx.Err() == nil {
		code = c.fail("%s", errText(err))
	}
	return code
}

func numberLines(c *command) int {
	f, operands, err := c.parse("b:", nil)
	if err != nil {
		return c.complain(err)
	}
	number := 0
	return c.each(operands, func(_ string, r io.Reader) error {
		return lines(r, func(line string) error {
			if line == "" && f['b'] != "a" {
				return c.println("")
			}
			number++
			return c.println(fmt.Sprintf("%6d\t%s", number, line))
		})
	})
}

func reverse(c *command) int {
	return c.each(c.args, func(_ string, r io.Reader) error {
		return lines(r, func(line string) error {
			runes := []rune(line)
			slices.Reverse(runes)
			return c.println(string(runes))
		})
	})
}

func sequence(c *command) int {
	numbers := []float64{}
	for _, arg := range c.args {
		n, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			return c.fail("invalid floating point argument: '%s'", arg)
		}
		numbers = append(numbers, n)
	}
	first, step := 1.0, 1.0
	var last float64
	switch len(numbers) {
	case 1:
		last = numbers[0]
	case 2:
		first, last = numbers[0], numbers[1]
	case 3:
		first, step, last = numbers[0], numbers[1], numbers[2]
	default:
		return c.usage("[FIRST [INCREMENT]] LAST")
	}
	if step == 0 {
		return c.fail("invalid Zero increment value")
	}
	buffered := &lineBuffer{c: c}
	for i := 0; ; i++ {
		n := first + float64(i)*step
		if step > 0 && n > last || step < 0 && n < last || c.ctx.Err() != nil {
			break
		}
		if buffered.add(strconv.FormatFloat(n, 'f', -1, 64)) != nil {
			break
		}
	}
	buffered.flush() //nolint:errcheck // a closed pipe is no failure of seq
	return 0
}

func yes(c *command) int {
	text := "y"
	if len(c.args) > 0 {
		text = strings.Join(c.args, " ")
	}
	buffered := &lineBuffer{c: c}
	for c.ctx.Err() == nil {
		if buffered.add(text) != nil {
			return 1
		}
	}
	return 130
}

// lineBuffer writes many lines in few pieces.
type lineBuffer struct {
	c    *command
	text []byte
}

func (b *lineBuffer) add(line string) error {
	b.text = append(append(b.text, line...), '\n')
	if len(b.text) < 16<<10 {
		return nil
	}
	return b.flush()
}

func (b *lineBuffer) flush() error {
	_, err := b.c.out.Write(b.text)
	b.text = b.text[:0]
	return err
}

// width is how many columns text takes on a terminal.
func width(text string) int {
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// runeWidth is 2 for East Asian wide characters and emoji, 0 for combining
// marks, else 1.
func runeWidth(r rune) int {
	switch {
	case r == utf8.RuneError, r < 0x300:
		return 1
	case r <= 0x36f, r >= 0x200b && r <= 0x200f, r >= 0xfe00 && r <= 0xfe0f:
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 &&
			r <= 0x1f64f,
		r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
