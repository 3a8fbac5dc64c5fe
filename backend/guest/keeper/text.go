package keeper

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText is how many bytes of a stream's text are kept: as many from its beginning as from its end.
const maxText = 16 << 20

// text is what a program has printed as a page shows it: a carriage return goes back to the beginning of the line,
// whose text is then overwritten, and a backspace removes a character.
type text struct {
	head, tail []byte // whole lines; tail is used once head is full
	dropped    int    // bytes between them
	line       []rune // the last line, which has no end yet
	at         int    // where in it the next character comes
}

func (t *text) add(printed string) {
	for printed != "" {
		part, rest, ended := strings.Cut(printed, "\n")
		if ended && len(t.line) == 0 && !strings.ContainsAny(part, "\r\b") { // as most lines are
			t.keep(printed[:len(part)+1])
			printed = rest
			continue
		}
		t.overwrite(part)
		if ended || len(t.line) > maxText/utf8.UTFMax {
			end := ""
			if ended {
				end = "\n"
			}
			t.keep(string(t.line) + end)
			t.line, t.at = t.line[:0], 0
		}
		printed = rest
	}
}

func (t *text) overwrite(part string) {
	for _, r := range part {
		switch {
		case r == '\r':
			t.at = 0
		case r == '\b' && t.at > 0:
			t.at--
			t.line = append(t.line[:t.at], t.line[t.at+1:]...)
		case r == '\b':
		case t.at < len(t.line):
			t.line[t.at] = r
			t.at++
		default:
			t.line = append(t.line, r)
			t.at++
		}
	}
}

func (t *text) keep(line string) {
	const half = maxText / 2
	if len(t.tail) == 0 && len(t.head)+len(line) <= half {
		t.head = append(t.head, line...)
		return
	}
	t.tail = append(t.tail, line...)
	if over := len(t.tail) - half; over > half {
		t.dropped += over
		t.tail = append(t.tail[:0], t.tail[over:]...)
	}
}

// noteStream is the stream of a note that something was left out.
const noteStream = "stderr"

func leftOut(bytes int) string { return fmt.Sprintf("[Slipway left out %d bytes here.]\n", bytes) }

func (t *text) size() int { return len(t.head) + len(t.tail) + len(t.line) }

// resumable returns the text so that what is printed next can follow it in a page, from where it would be overwritten.
func (t *text) resumable() string {
	if t.at == len(t.line) {
		return t.String()
	}
	return t.String() + "\r" + string(t.line[:t.at])
}

func (t *text) String() string {
	gap := ""
	if t.dropped > 0 {
		gap = "\n" + leftOut(t.dropped)
	}
	return strings.ToValidUTF8(string(t.head)+gap+string(t.tail)+string(t.line), "\uFFFD")
}
