// Package gitignore says which paths the files named .gitignore of a tree ignore, as git does. It does not know which
// files git tracks, and reads neither the person's own exclusions nor .git/info/exclude.
package gitignore

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Name is the name of a file with rules.
const Name = ".gitignore"

// Rules are those that apply in one directory: of its own file and of the files above it. Zero Rules ignore nothing.
type Rules struct{ files []file } // outermost first

type file struct {
	dir   string // with a slash at its end, unless it is the root
	lines []line
}

type line struct {
	match     *regexp.Regexp
	negated   bool
	directory bool // only directories match
	anchored  bool // it matches paths below its directory, and not names
}

// With returns the rules in a directory that has a file with this content. The directory of the root is "".
func (r Rules) With(dir string, content []byte) Rules {
	f := file{dir: strings.TrimPrefix(dir+"/", "/")}
	for text := range bytes.SplitSeq(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")), []byte("\n")) {
		if l, ok := parse(strings.TrimSuffix(string(text), "\r")); ok {
			f.lines = append(f.lines, l)
		}
	}
	if len(f.lines) == 0 {
		return r
	}
	return Rules{append(slices.Clip(r.files), f)}
}

// Ignores reports whether the rules of a directory ignore an entry of it, which is named by its path from the root.
func (r Rules) Ignores(name string, directory bool) bool {
	for _, f := range slices.Backward(r.files) {
		below, base := wide(strings.TrimPrefix(name, f.dir)), wide(path.Base(name))
		for _, l := range slices.Backward(f.lines) {
			subject := base
			if l.anchored {
				subject = below
			}
			if (directory || !l.directory) && l.match.MatchString(subject) {
				return !l.negated
			}
		}
	}
	return false
}

// wide returns a text with a character for each byte, since git matches bytes.
func wide(text string) string {
	runes := make([]rune, len(text))
	for i := range len(text) {
		runes[i] = rune(text[i])
	}
	return string(runes)
}

// parse reads one line. It fails if that is a comment, or never matches.
func parse(text string) (l line, ok bool) {
	if strings.HasPrefix(text, "#") {
		return l, false
	}
	text = trimSpaces(text)
	text, l.negated = strings.CutPrefix(text, "!")
	text, l.directory = strings.CutSuffix(text, "/")
	l.anchored = strings.Contains(text, "/")
	expression, ok := translate(strings.TrimPrefix(text, "/"), l.anchored)
	if !ok || text == "" {
		return l, false
	}
	var err error
	l.match, err = regexp.Compile(`(?s)\A` + expression + `\z`)
	return l, err == nil
}

// trimSpaces removes spaces at the end, except one after a backslash.
func trimSpaces(text string) string {
	end := 0
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' {
			i++
		} else if text[i] == ' ' {
			continue
		}
		end = min(i+1, len(text))
	}
	return text[:end]
}

var (
	token = regexp.MustCompile(`(?s)\A(?:\*+|\\?.)`)
	// element is what a set has: a class such as [:alpha:], a character, or the two ends of a range.
	element = regexp.MustCompile(`(?s)\A(?:(\[:[^\]]*:\])|\\?(.)(?:-(?:\\(.)|([^\]\\])))?)`)
)

// translate returns the regular expression of a pattern. It fails for one that never matches.
func translate(pattern string, anchored bool) (to string, ok bool) {
	const start = "start/" // git begins to match at the first special character
	before := start
	for rest := wide(pattern); rest != ""; {
		t := token.FindString(rest)
		rest = rest[len(t):]
		switch {
		case t == `\`:
			return "", false
		case t == "?":
			to += `[^/]`
		case t == "[":
			set, length := class(rest)
			to += set
			rest = rest[length:]
		case t[0] != '*':
			to += regexp.QuoteMeta(strings.TrimPrefix(t, `\`))
		case !anchored || t == "*" || !strings.HasSuffix(before, "/") ||
			rest != "" && rest[0] != '/' && !strings.HasPrefix(rest, `\/`):
			to += `[^/]*`
		case strings.HasPrefix(rest, "/"):
			to += `(?:.*/)?`
			rest = rest[1:]
		default:
			to += `.*`
		}
		if before != start || strings.ContainsAny(t[:1], `*?[\`) {
			before = t
		}
	}
	return to, true
}

// class returns the expression of a set, which is not valid if the set is not, and its length with the last bracket.
func class(text string) (set string, length int) {
	rest, set := text, `[\x{100}` // which is no byte
	if strings.HasPrefix(text, "!") || strings.HasPrefix(text, "^") {
		rest, set = text[1:], "[^/"
	}
	for first := true; first || !strings.HasPrefix(rest, "]"); first = false {
		e := element.FindStringSubmatch(rest)
		if e == nil {
			return "[", len(text)
		}
		rest = rest[len(e[0]):]
		if e[1] != "" {
			set += e[1]
			continue
		}
		from, to := []rune(e[2])[0], []rune(cmp.Or(e[3], e[4], e[2]))[0]
		for c := from; c <= to; c++ {
			if c != '/' {
				set += fmt.Sprintf(`\x{%x}`, c)
			}
		}
	}
	return set + "]", len(text) - len(rest) + 1
}
