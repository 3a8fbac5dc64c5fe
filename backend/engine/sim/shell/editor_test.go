package shell

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzEditor types anything at any width: the editor never panics, keeps its
// cursor in the line and its line whole.
func FuzzEditor(f *testing.F) {
	for _, seed := range []string{"ls -l\r", "a\x1b[D\x1b[Db\x7f", "\x1b[A\x1b[B\x1b[3~\x03\x04", "한글🙂\x01\x0b\x19\t\t",
		"\x1b[1;5Dx\x1b\x7f\x15\x17\x0c", "\x1b[", "\xff\xfe"} {
		f.Add(seed, uint8(20))
	}
	f.Fuzz(func(t *testing.T, typed string, cols uint8) {
		var shown strings.Builder
		e := &editor{
			write: func(text string) { shown.WriteString(text) }, cols: func() int { return max(int(cols), 1) },
			complete: func(line string) (int, []string) {
				return strings.LastIndexByte(line, ' ') + 1, []string{line[strings.LastIndexByte(line, ' ')+1:] + "x",
					line[strings.LastIndexByte(line, ' ')+1:] + "y"}
			},
		}
		e.begin("$ ")
		rest := []byte(typed)
		for len(rest) > 0 {
			var happened event
			if happened, rest = e.feed(rest); happened != eventNone {
				e.remember(string(e.line))
				e.begin("$ ")
			}
		}
		if e.cursor < 0 || e.cursor > len(e.line) || !utf8.ValidString(string(e.line)) {
			t.Errorf("cursor %d in a line of %d, %q", e.cursor, len(e.line), string(e.line))
		}
	})
}
