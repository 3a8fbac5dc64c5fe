package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxLine is the longest line that text utilities take, in bytes.
const maxLine = 16 << 20

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
	f, operands, err := c.parse("n:c:q", nil)
	if err != nil {
		return c.complain(err)
	}
	n, err := f.number('n', 10)
	bytes, errBytes := f.number('c', -1)
	if err != nil || errBytes != nil {
		return c.fail("invalid number")
	}
	return c.each(operands, func(name string, r io.Reader) error {
		if len(operands) > 1 && !f.has("q") {
			c.printf("==> %s <==\n", name)
		}
		if bytes >= 0 {
			_, err := io.CopyN(c.out, r, int64(bytes))
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
		left := n
		if left <= 0 {
			return nil
		}
		err := lines(r, func(line string) error {
			if err := c.println(line); err != nil {
				return err
			}
			if left--; left == 0 {
				return errEnough
			}
			return nil
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
	f, operands, err := c.parse("n:c:qfF", nil)
	if err != nil {
		return c.complain(err)
	}
	fromStart := strings.HasPrefix(f['n'], "+")
	n, err := f.number('n', 10)
	if err != nil {
		return c.fail("invalid number of lines: '%s'", f['n'])
	}
	code := c.each(operands, func(name string, r io.Reader) error {
		if len(operands) > 1 && !f.has("q") {
			c.printf("==> %s <==\n", name)
		}
		var kept []string
		number := 0
		err := lines(r, func(line string) error {
			number++
			if fromStart {
				if number >= n {
					return c.println(line)
				}
				return nil
			}
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
	f, operands, err := c.parse("lwcm", map[string]byte{"lines": 'l', "words": 'w', "bytes": 'c', "chars": 'm'})
	if err != nil {
		return c.complain(err)
	}
	if len(f) == 0 {
		f = flags{'l': "", 'w': "", 'c': ""}
	}
	show := func(l, w, b int64, name string) {
		var cells []string
		for _, cell := range []struct {
			letter string
			n      int64
		}{{"l", l}, {"w", w}, {"cm", b}} {
			if f.has(cell.letter) {
				cells = append(cells, strconv.FormatInt(cell.n, 10))
			}
		}
		if name != "-" {
			cells = append(cells, name)
		}
		c.printf("%s\n", strings.Join(cells, " "))
	}
	var lineSum, wordSum, byteSum int64
	code := c.each(operands, func(name string, r io.Reader) error {
		var l, w, b int64
		inWord := false
		buffered := bufio.NewReader(r)
		for {
			char, err := buffered.ReadByte()
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			b++
			space := char == ' ' || char >= '\t' && char <= '\r'
			if char == '\n' {
				l++
			}
			if !space && !inWord {
				w++
			}
			inWord = !space
		}
		lineSum, wordSum, byteSum = lineSum+l, wordSum+w, byteSum+b
		show(l, w, b, name)
		return nil
	})
	if len(operands) > 1 {
		show(lineSum, wordSum, byteSum, "total")
	}
	return code
}

func grep(c *command) int {
	f, operands, err := c.parse("ivncrREFlqwoshHe:x", map[string]byte{"ignore-case": 'i', "recursive": 'r',
		"count": 'c', "color": 's'})
	if err != nil {
		return c.complain(err)
	}
	pattern, ok := f['e']
	if !ok {
		if len(operands) == 0 {
			return c.usage("[OPTION]… PATTERN [FILE]…")
		}
		pattern, operands = operands[0], operands[1:]
	}
	expression, err := grepExpression(f, pattern)
	if err != nil {
		c.fail("invalid pattern: %s", pattern)
		return 2
	}
	if f.has("rR") {
		operands = c.expand(operands)
	}
	named := (len(operands) > 1 || f.has("rRH")) && !f.has("h")
	found := false
	code := c.each(operands, func(name string, r io.Reader) error {
		matches, number := 0, 0
		err := lines(r, func(line string) error {
			number++
			if expression.MatchString(line) == f.has("v") {
				return nil
			}
			matches++
			found = true
			if f.has("lq") {
				return errEnough
			}
			if f.has("c") {
				return nil
			}
			prefix := ""
			if named {
				prefix = name + ":"
			}
			if f.has("n") {
				prefix += strconv.Itoa(number) + ":"
			}
			if !f.has("o") || f.has("v") {
				return c.println(prefix + line)
			}
			for _, part := range expression.FindAllString(line, -1) {
				if err := c.println(prefix + part); err != nil {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		switch {
		case f.has("l") && matches > 0 && !f.has("q"):
			c.printf("%s\n", name)
		case f.has("c") && !f.has("q") && named:
			c.printf("%s:%d\n", name, matches)
		case f.has("c") && !f.has("q"):
			c.printf("%d\n", matches)
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

func grepExpression(f flags, pattern string) (*regexp.Regexp, error) {
	switch {
	case f.has("F"):
		pattern = regexp.QuoteMeta(pattern)
	case !f.has("E"):
		pattern = basicToExtended(pattern)
	}
	if f.has("w") {
		pattern = `\b(?:` + pattern + `)\b`
	}
	if f.has("x") {
		pattern = `^(?:` + pattern + `)$`
	}
	if f.has("i") {
		pattern = "(?i)" + pattern
	}
	return regexp.Compile(pattern)
}

// basicToExtended swaps the meaning of \( and (, and of the other operators
// that basic expressions write with a backslash.
func basicToExtended(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch char := pattern[i]; {
		case char == '\\' && i+1 < len(pattern) && strings.IndexByte("(){}+?|", pattern[i+1]) >= 0:
			i++
			b.WriteByte(pattern[i])
		case char == '\\' && i+1 < len(pattern):
			b.WriteString(pattern[i : i+2])
			i++
		case strings.IndexByte("(){}+?|", char) >= 0:
			b.WriteByte('\\')
			b.WriteByte(char)
		default:
			b.WriteByte(char)
		}
	}
	return b.String()
}

// expand replaces directories by the files below them.
func (c *command) expand(operands []string) []string {
	if len(operands) == 0 {
		operands = []string{"."}
	}
	var files []string
	for _, operand := range operands {
		root := c.path(operand)
		err := c.walk(root, func(p string, info os.FileInfo) bool {
			if info.Mode().IsRegular() {
				name := operand + strings.TrimPrefix(p, root)
				files = append(files, strings.TrimPrefix(name, "./"))
			}
			return true
		})
		if err != nil {
			files = append(files, operand)
		}
	}
	return files
}

// gather reads all lines of the operands.
func (c *command) gather(operands []string) (all []string, code int) {
	held := 0
	code = c.each(operands, func(_ string, r io.Reader) error {
		return lines(r, func(line string) error {
			if held += len(line) + 16; held > maxHeld {
				return errTooMuch
			}
			all = append(all, line)
			return nil
		})
	})
	return all, code
}

func sortLines(c *command) int {
	f, operands, err := c.parse("rnufhk:t:", nil)
	if err != nil {
		return c.complain(err)
	}
	all, code := c.gather(operands)
	key := sortKey(f)
	slices.SortStableFunc(all, func(a, b string) int {
		order := 0
		if f.has("nh") {
			x, y := leadingNumber(key(a)), leadingNumber(key(b))
			switch {
			case x < y:
				order = -1
			case x > y:
				order = 1
			}
		} else {
			order = strings.Compare(key(a), key(b))
		}
		if order == 0 && f.has("k") {
			order = strings.Compare(a, b)
		}
		if f.has("r") {
			order = -order
		}
		return order
	})
	if f.has("u") {
		all = slices.Compact(all)
	}
	for _, line := range all {
		if c.println(line) != nil {
			return code
		}
	}
	return code
}

// sortKey returns what of a line is compared.
func sortKey(f flags) func(string) string {
	field, err := strconv.Atoi(strings.SplitN(f['k'], ",", 2)[0])
	return func(line string) string {
		if f.has("f") {
			line = strings.ToLower(line)
		}
		if !f.has("k") || err != nil || field < 1 {
			return line
		}
		fields := strings.Fields(line)
		if f.has("t") {
			fields = strings.Split(line, f['t'])
		}
		if field > len(fields) {
			return ""
		}
		return fields[field-1]
	}
}

func leadingNumber(text string) float64 {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == '.' || end == 0 && text[end] == '-') {
		end++
	}
	n, err := strconv.ParseFloat(text[:end], 64)
	if err != nil {
		return 0
	}
	scale := 1.0
	if end < len(text) {
		scale = map[byte]float64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}[text[end]]
		if scale == 0 {
			scale = 1
		}
	}
	return n * scale
}

func unique(c *command) int {
	f, operands, err := c.parse("cdu", nil)
	if err != nil {
		return c.complain(err)
	}
	all, code := c.gather(operands)
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		line := all[i]
		i += n
		if f.has("d") && n == 1 || f.has("u") && n > 1 {
			continue
		}
		if f.has("c") {
			line = fmt.Sprintf("%7d %s", n, line)
		}
		if c.println(line) != nil {
			break
		}
	}
	return code
}
